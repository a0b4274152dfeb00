"""What every node type provides."""

from typing import Protocol

from vsr.graph.context import NodeContext


class Node(Protocol):
    """One step's behaviour: configuration but no state, since two requests may run it at once."""

    async def run(self, ctx: NodeContext) -> object:
        """Return the step's value.

        Raises:
            VsrError: the step failed; the graph ends with this error.
        """
        ...


_PARAMS = "$params."


def param_of(field: str) -> str | None:
    """Return the parameter that a field refers to, None if it refers to none."""
    return field.removeprefix(_PARAMS) if field.startswith(_PARAMS) else None


def resolve(field: str, ctx: NodeContext) -> object:
    """Return what a field means: `$params.NAME`, `$STEP`, or else the literal itself.

    References were checked when the graph was compiled, so a missing one is a bug.
    """
    if not field.startswith("$"):
        return field
    param = param_of(field)
    if param is not None:
        return ctx.params[param]
    return ctx.values[field[1:]]
