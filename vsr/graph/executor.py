"""Runs a compiled graph for one request."""

from math import inf

import trio

from vsr.errors import BudgetExhausted, DeadlineExceeded, RoutingFailed
from vsr.graph.best_answer import run_or_best
from vsr.graph.block import Answer, Suspension
from vsr.graph.compiled import CompiledGraph
from vsr.graph.context import NodeContext
from vsr.graph.ending import Ending
from vsr.graph.run import GraphRun, TailCall
from vsr.graph.scope import Scope
from vsr.resources.graph import OnExhausted
from vsr.routing.outcome import Cause


async def execute(
    graph: CompiledGraph, run: GraphRun, params: dict[str, object] | None = None
) -> Answer | TailCall | Suspension:
    """Run `graph` until it answers, hands out its tail call, or waits for the client's tools.

    Args:
        graph: what to run.
        run: its deadline and budget are those of the graph.
        params: of a graph that was compiled without any.

    Raises:
        BudgetExhausted, DeadlineExceeded: of the graph as a whole.
        VsrError: a step failed.
    """
    ending = Ending(deadline_at=run.deadline.at)
    if graph.on_exhausted is OnExhausted.FAIL:
        run.on_refusal = lambda: ending.end(Cause.BUDGET)
    names: dict[str, object] = {
        "params": graph.params if params is None else params,
        "request": None if run.inputs is None else run.inputs.request,
    }
    with trio.CancelScope(deadline=min(run.deadline.at, inf)) as scope:
        ending.scope = scope
        ctx = NodeContext(run, Scope(names), ending)
        value = await run_or_best(graph, ctx)
        if ending.cause is Cause.BUDGET:
            raise BudgetExhausted  # a step went on all the same
        if isinstance(value, (Answer, TailCall, Suspension)):
            return value
        raise RoutingFailed  # unreachable in a graph that was compiled: every way ends with respond
    if ending.cause is Cause.BUDGET:
        raise BudgetExhausted
    raise DeadlineExceeded("graph")
