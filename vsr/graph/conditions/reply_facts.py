"""Conditions `logprob_at_least`, `tool_calls` and `has_tools`: tools, and how sure a model was."""

import attrs

from vsr.graph.conditions.condition import Condition
from vsr.graph.reading import MaybeReply, reply_of
from vsr.graph.token_scores import mean_logprob
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class LogprobAtLeast:
    """Holds if the tokens of a reply have a mean logprob that reaches the threshold.

    The threshold is a plain mean, so at most 0. A reply without token logprobs does not reach any.
    """

    value: MaybeReply
    threshold: float

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether the logprobs are there and high enough."""
        reply = reply_of(self.value)
        if reply is None or not reply.logprobs:
            return False
        return mean_logprob(reply.logprobs) >= self.threshold


@attrs.frozen
class ToolCalls:
    """Holds for a reply that calls tools, be it in the legacy way."""

    value: MaybeReply

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether the client is asked to call something."""
        reply = reply_of(self.value)
        return reply is not None and reply.has_tool_calls


@attrs.frozen
class HasTools:
    """Holds if the request offers tools: `{has_tools: $request.has_tools}`."""

    value: bool

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return what is given."""
        return self.value


@attrs.frozen
class Resumed:
    """Holds if the run goes on with answers of the client's tools: `{resumed: true}`.

    Steps before a call that waits for tools run again then, so none of them may depend on it.
    """

    value: bool

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return whether it is as `value` says."""
        return inputs.is_resumed is self.value


LOGPROB_AT_LEAST = Extension[Condition](name="logprob_at_least", config=LogprobAtLeast)
TOOL_CALLS = Extension[Condition](name="tool_calls", config=ToolCalls)
RESUMED = Extension[Condition](name="resumed", config=Resumed)
HAS_TOOLS = Extension[Condition](name="has_tools", config=HasTools)
