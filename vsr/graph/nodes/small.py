"""Node types `set`, `break` and `fail`."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs

from vsr.errors import GraphFailed
from vsr.graph.block import BROKEN, Broken, Node
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound, Constant, Env
from vsr.graph.late import Expression
from vsr.graph.suspend.record import Keeps
from vsr.graph.text import TextTemplate
from vsr.registry import Extension


@attrs.frozen
class SetNode:
    """Gives variables of a loop around it new values."""

    keeps: ClassVar[Keeps] = "nothing"
    values: Mapping[str, Expression]

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with it where it stands."""
        values = bound["values"]
        names = values.value if isinstance(values, Constant) else None
        for name in names if isinstance(names, Mapping) else ():
            known = env.names.get(name)
            if known is None or not known.is_variable:
                yield f"{name!r} is no variable of a loop around this step"
            elif known.zone != env.zone:
                yield f"{name!r} is shared by the branches of a parallel step: none may change it"

    async def run(self, ctx: NodeContext) -> None:
        """Assign them, all at once."""
        found = {name: each.value(ctx.scope) for name, each in self.values.items()}
        for name, value in found.items():
            ctx.scope.assign(name, value)


@attrs.frozen
class BreakNode:
    """Leaves the loop around it; the round yields nothing."""

    keeps: ClassVar[Keeps] = "nothing"

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with it where it stands."""
        del bound
        if not env.in_loop:
            yield "there is no loop around this step that it could leave"

    @staticmethod
    def always_ends(bound: Mapping[str, Bound]) -> bool:
        """Return that nothing behind it in its list is reached."""
        del bound
        return True

    async def run(self, ctx: NodeContext) -> Broken:
        """Return what leaves the loop."""
        del ctx
        return BROKEN


@attrs.frozen
class FailNode:
    """Fails, and the graph with it unless a step around goes on."""

    keeps: ClassVar[Keeps] = "nothing"
    message: TextTemplate
    status: int = attrs.field(
        default=500, validator=[attrs.validators.ge(400), attrs.validators.le(599)]
    )

    @staticmethod
    def always_ends(bound: Mapping[str, Bound]) -> bool:
        """Return that nothing behind it in its list is reached."""
        del bound
        return True

    async def run(self, ctx: NodeContext) -> None:
        """Raise the failure.

        Raises:
            GraphFailed: always.
        """
        raise GraphFailed(self.message.render(ctx.scope), status=self.status)


SET = Extension[Node](name="set", config=SetNode)
BREAK = Extension[Node](name="break", config=BreakNode)
FAIL = Extension[Node](name="fail", config=FailNode)
