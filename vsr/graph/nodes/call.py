"""Node type `call`: ask one model."""

import attrs

from vsr.graph.context import NodeContext, Reply, TailCall
from vsr.graph.nodes.node import Node, param_of, resolve
from vsr.registry import Extension
from vsr.resources.reliability import CallOverride


@attrs.frozen
class CallNode:
    """Calls the model that `model` names or refers to; its value is a `Reply`."""

    model: str
    reliability: CallOverride | None = None
    """What is changed here of the timeouts and retries that the layers above leave."""
    _param: str | None = attrs.field(init=False)
    """The parameter that names the model, if one does."""

    @_param.default
    def _find_param(self) -> str | None:
        return param_of(self.model)

    async def run(self, ctx: NodeContext) -> Reply:
        """Make the call and wait for the whole answer."""
        return await ctx.call(str(resolve(self.model, ctx)), self.reliability)

    def hand_out(self, ctx: NodeContext) -> TailCall:
        """Reserve for the call and leave it to the adapter to make it, stream and all."""
        param = self._param
        model = str(resolve(self.model, ctx)) if param is None else ctx.params[param]
        return TailCall(model, ctx.open_call(model), self.reliability)


CALL = Extension[Node](name="call", config=CallNode)
