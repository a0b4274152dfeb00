"""Node type `json_reply`: ask a model until it answers with a JSON object."""

from collections.abc import Mapping
from typing import Annotated

import attrs
import msgspec

from vsr.errors import GraphFailed
from vsr.graph.bind import SECONDS
from vsr.graph.block import Node
from vsr.graph.context import CallOptions, NodeContext
from vsr.graph.env import Bound, known_of
from vsr.graph.value import ModelRef
from vsr.graph.worst import Estimator, Paths
from vsr.graph.worst_call import call_worst, named_models
from vsr.registry import Extension

_DEFAULT_ROUNDS = 2


@attrs.frozen
class JsonReplyNode:
    """Asks until the answer is a JSON object, so many times at most; its value is the object."""

    model: str | ModelRef
    prompt: str
    """A message of the user's, behind those of the request."""
    rounds: int = attrs.field(default=_DEFAULT_ROUNDS, validator=attrs.validators.ge(1))
    again: str = "Answer with one JSON object and nothing else."
    """Said behind an answer that is none."""
    timeout: Annotated[float | None, SECONDS] = None
    """Of each round."""

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return the worst case: every round is needed."""
        call = call_worst(named_models(bound), bound, estimator)
        rounds = known_of(bound["rounds"]).most if "rounds" in bound else _DEFAULT_ROUNDS
        return Paths(call.times(rounds or 1))

    async def run(self, ctx: NodeContext) -> Mapping[str, object]:
        """Return the object.

        Raises:
            GraphFailed: no answer was one.
            VsrError: a call failed.
        """
        model = self.model.called_name if isinstance(self.model, ModelRef) else self.model
        body = ctx.inputs.request.append_user(self.prompt)
        for _ in range(self.rounds):
            reply = await ctx.call(model, body, CallOptions(self.timeout))
            try:
                return msgspec.json.decode(reply.content, type=dict[str, object])
            except (msgspec.DecodeError, msgspec.ValidationError):
                body = body.append_user(self.again)
        raise GraphFailed(f"no JSON object in {self.rounds} answers")


JSON_REPLY = Extension[Node](name="json_reply", config=JsonReplyNode)
