"""Node type `branch`: take the first arm whose condition holds."""

from collections.abc import Mapping
from typing import ClassVar

import attrs

from vsr.graph.block import Block, Node, ends
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound, Constant
from vsr.graph.kinds import Kind, united
from vsr.graph.late import Condition
from vsr.graph.suspend.record import Keeps
from vsr.graph.worst import Estimator, Paths
from vsr.registry import Extension


@attrs.frozen
class Case:
    """One arm."""

    when: Condition
    then: Block


@attrs.frozen
class BranchNode:
    """Runs one list of steps, or none; its value is the last one of that list."""

    keeps: ClassVar[Keeps] = "nothing"
    cases: tuple[Case, ...]
    else_: Block | None = None

    @staticmethod
    def result_kind(bound: Mapping[str, Bound]) -> Kind:
        """Return the type of the step's value: that of an arm which comes to its end."""
        kinds = [block.kind for block in _arms(bound) if not ends(block)]
        if not _is_given(bound):
            kinds.append(type(None))
        return united(kinds)

    @staticmethod
    def always_ends(bound: Mapping[str, Bound]) -> bool:
        """Return whether no arm comes to its end."""
        return _is_given(bound) and all(ends(block) for block in _arms(bound))

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return the ways through one of the arms, or past all of them."""
        paths = Paths(None) if _is_given(bound) else Paths()
        for block in _arms(bound):
            paths = paths.either(estimator.block(block))
        return paths

    async def run(self, ctx: NodeContext) -> object:
        """Return the value of the arm that was taken, None if none was."""
        for number, case in enumerate(self.cases):
            if case.when.holds(ctx.scope, ctx.inputs):
                return await case.then.run(ctx.inside(number=number))
        if self.else_ is None:
            return None
        return await self.else_.run(ctx.inside(number=len(self.cases)))


def _arms(bound: Mapping[str, Bound]) -> list[Block]:
    cases, otherwise = bound.get("cases"), bound.get("else_")
    arms: list[Block] = []
    if isinstance(cases, Constant) and isinstance(cases.value, tuple):
        arms += [case.then for case in cases.value if isinstance(case, Case)]
    if isinstance(otherwise, Constant) and isinstance(otherwise.value, Block):
        arms.append(otherwise.value)
    return arms


def _is_given(bound: Mapping[str, Bound]) -> bool:
    otherwise = bound.get("else_")
    return isinstance(otherwise, Constant) and otherwise.value is not None


BRANCH = Extension[Node](name="branch", config=BranchNode)
