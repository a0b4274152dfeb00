"""What a graph answers with whose budget ends it: `on_exhausted: respond_best`."""

import msgspec

from vsr.errors import DeadlineExceeded, InvalidRequest, VsrError
from vsr.graph.block import Answer
from vsr.graph.compiled import CompiledGraph
from vsr.graph.context import NodeContext
from vsr.graph.nodes.respond import RespondNode
from vsr.graph.suspend.waiting import ResumeFailed
from vsr.resources.graph import OnExhausted

_NOT_FOR_THE_BUDGET = InvalidRequest, ResumeFailed
"""Failures that more budget would not have mended, as a deadline's; after the last the client may
try again."""


async def run_or_best(graph: CompiledGraph, ctx: NodeContext) -> object:
    """Run the steps of `graph`; where its budget makes them fail, answer as its limits say.

    The best reply is the one to the client's own question, with a text or calls of the client's
    tools, whose call began last. The failure stands where the budget refused nothing, or where no
    call has brought one.

    Args:
        graph: the one to run.
        ctx: of the whole graph.

    Raises:
        VsrError: a step failed.
    """
    run = ctx.run
    responds = graph.on_exhausted is OnExhausted.RESPOND_BEST
    run.keeps_best |= responds
    try:
        return await graph.block.run(ctx)
    except VsrError as error:
        answer = await _best_answer(ctx, error) if responds else None
        if answer is None:
            raise
        return answer


async def _best_answer(ctx: NodeContext, error: VsrError) -> Answer | None:
    run = ctx.run
    best = run.best
    if best is None or not run.was_refused or isinstance(error, _NOT_FOR_THE_BUDGET):
        return None
    if error.code == DeadlineExceeded.code:
        return None  # in whatever words of a step
    answer = await RespondNode(best.reply).run(ctx)
    return msgspec.structs.replace(answer, is_exhausted=True)
