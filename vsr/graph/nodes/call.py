"""Node type `call`: ask one model."""

import attrs

from vsr.graph.context import NodeContext, Reply, TailCall
from vsr.graph.nodes.node import Node, resolve
from vsr.registry import Extension


@attrs.frozen
class CallNode:
    """Calls the model that `model` names or refers to; its value is a `Reply`."""

    model: str

    async def run(self, ctx: NodeContext) -> Reply:
        """Make the call and wait for the whole answer."""
        return await ctx.call(str(resolve(self.model, ctx)))

    def hand_out(self, ctx: NodeContext) -> TailCall:
        """Reserve for the call and leave it to the adapter to make it, stream and all."""
        model = str(resolve(self.model, ctx))
        return TailCall(model, ctx.open_call(model))


CALL = Extension[Node](name="call", config=CallNode)
