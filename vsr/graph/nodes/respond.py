"""Node type `respond`: end the graph with an answer."""

import attrs

from vsr.graph.context import NodeContext, Reply
from vsr.graph.nodes.node import Node, resolve
from vsr.registry import Extension
from vsr.routing.effect import HeaderEdit, ImmediateResponse


@attrs.frozen
class RespondNode:
    """Answers with the reply of the step that `from_` refers to."""

    from_: str

    async def run(self, ctx: NodeContext) -> ImmediateResponse:
        """Return the answer; the executor stops here."""
        reply = resolve(self.from_, ctx)
        if not isinstance(reply, Reply):
            raise TypeError(f"{self.from_} is not a call's reply")
        content_type = reply.headers.get(b"content-type", b"application/json")
        return ImmediateResponse(
            reply.status, (HeaderEdit(b"content-type", content_type),), reply.body
        )


RESPOND = Extension[Node](name="respond", config=RespondNode)
