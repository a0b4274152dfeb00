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


def resolve(field: str, ctx: NodeContext) -> object:
    """Return what a field means: `$params.NAME`, `$STEP`, or else the literal itself.

    References were checked when the graph was compiled, so a missing one is a bug.
    """
    if not field.startswith("$"):
        return field
    if field.startswith("$params."):
        return ctx.params[field.removeprefix("$params.")]
    return ctx.values[field[1:]]
