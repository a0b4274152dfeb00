"""Node type `rate`: say how good a reply was found, for those who look at the graph's calls."""

from typing import ClassVar

import attrs

from vsr.graph.block import Node
from vsr.graph.context import NodeContext
from vsr.graph.ledger import Verdict
from vsr.graph.reading import MaybeReply, reply_of, success_of
from vsr.graph.suspend.record import Keeps
from vsr.graph.value import BranchOutcome, Failure
from vsr.registry import Extension


@attrs.frozen
class RateNode:
    """Notes in the record of a reply's call what the graph found of it; traces and metrics tell it.

    Its value is whether the score reaches the threshold. Nothing else is changed by it.
    """

    keeps: ClassVar[Keeps] = "nothing"
    reply: MaybeReply
    score: float | BranchOutcome[float] | Failure | None
    """A missing one is noted as not good enough, without a score."""
    threshold: float

    async def run(self, ctx: NodeContext) -> bool:
        """Note it, and return whether the score is good enough."""
        found = success_of(self.score)
        score = float(found) if isinstance(found, int | float) else None
        is_accepted = score is not None and score >= self.threshold
        verdict = Verdict(is_accepted, score, self.threshold)
        ctx.run.ledger.judge(reply_of(self.reply), verdict)
        return is_accepted


RATE = Extension[Node](name="rate", config=RateNode)
