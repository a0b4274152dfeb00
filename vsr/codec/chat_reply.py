"""A backend's answer to a chat completion, whole or streamed, as graph steps read it."""

import msgspec


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a client's tool."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""


class ReplyUsage(msgspec.Struct, frozen=True):
    """The three counters as reported; a missing one is 0."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class TokenLogprob(msgspec.Struct, frozen=True):
    """One token of an answer, with what else could have stood there."""

    token: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()
    """`top_logprobs` in the order in which they were given."""


class Reply(msgspec.Struct, frozen=True):
    """The value of a call step.

    Source of every rule: looper-algorithms 3.3.
    """

    model: str
    """The name that was called, whatever the backend says."""
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    has_tool_calls: bool = False
    """Also for a legacy `function_call`, which is not among `tool_calls`."""
    finish_reason: str = ""
    usage: ReplyUsage | None = None
    """None where nothing was reported."""
    logprobs: tuple[TokenLogprob, ...] = ()
    body: bytes = b""
    """The whole answer as a chat completion, or as an event stream if `is_stream`."""
    is_stream: bool = False
