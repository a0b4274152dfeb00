"""Node type `aggregate`: from the outcomes of several branches to one value."""

from collections.abc import Mapping
from typing import ClassVar

import attrs

from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.bind import REGISTRY
from vsr.graph.block import Node
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound
from vsr.graph.kinds import Kind
from vsr.graph.suspend.record import Keeps
from vsr.graph.value import BranchOutcome, Failure
from vsr.registry import Extension


@attrs.frozen
class AggregateNode:
    """Lets a strategy judge outcomes; the strategy's own fields stand beside its name."""

    keeps: ClassVar[Keeps] = "nothing"
    strategy: Aggregate = attrs.field(metadata={REGISTRY: "aggregate"})
    from_: tuple[object, ...] = ()
    """Outcomes of a parallel step, or plain values, each of which counts as a success."""

    @staticmethod
    def result_kind(bound: Mapping[str, Bound]) -> Kind:
        """Return the type of the strategy's value."""
        return bound["strategy"].kind

    async def run(self, ctx: NodeContext) -> object:
        """Return what the strategy makes of the outcomes.

        Raises:
            GraphFailed: it makes nothing of them.
        """
        outcomes = [_outcome(index, value) for index, value in enumerate(self.from_)]
        return self.strategy(outcomes, ctx.inputs)


def _outcome(index: int, value: object) -> BranchOutcome[object]:
    if isinstance(value, BranchOutcome):
        return value
    if isinstance(value, Failure):
        return BranchOutcome(index, None, value, index)
    return BranchOutcome(index, value, None, index)


AGGREGATE = Extension[Node](name="aggregate", config=AggregateNode)
