"""A backend's answer to a chat completion, whole or streamed, as graph steps read it."""

from collections.abc import Sequence

import msgspec

from vsr.codec.backend_json import (
    Members,
    first_choice,
    list_at,
    object_at,
    object_in,
    read_odd,
    string_at,
    text_at,
)
from vsr.codec.chat_stream import read_payloads
from vsr.errors import GraphFailed


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
    tool_rounds: tuple[tuple[str, ...], ...] = ()
    """Ids of the tool calls that the client answered in the course of this call, round by round."""


class _Alternative(msgspec.Struct, kw_only=True, gc=False):
    token: str = ""
    logprob: float


class _Token(msgspec.Struct, kw_only=True, gc=False):
    token: str = ""
    logprob: float
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct, gc=False):
    content: list[_Token] | None = None


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_COUNT = msgspec.json.Decoder(int)
_LOGPROBS = msgspec.json.Decoder(_Logprobs | None)
_REASONING = ("reasoning_content", "reasoning")
_TEXT_PARTS = frozenset({"", "text", "output_text"})
_MAX_COUNT = 10**15  # so that a sum of many can still be written


def read_reply(model: str, body: bytes, *, is_stream: bool) -> Reply:
    """Read a backend's answer with status 200.

    Members that are absent or odd count as empty: an answer without choices is one, too.

    Args:
        model: the name that was called.
        body: whole, as a chat completion or as an event stream.
        is_stream: whether a stream was asked for. A completion that came all the same is read as
            one, and the reply is then no stream.

    Raises:
        GraphFailed: it is neither; the message holds nothing of the body.
    Source: looper-algorithms 3.3 and 19, "call".
    """
    if is_stream and not body.lstrip().startswith(b"{"):
        return _read_stream(model, body)
    try:
        body.decode()
        members = _MEMBERS.decode(body)
    except msgspec.ValidationError as error:
        raise GraphFailed("failed to parse response: it is no JSON object") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GraphFailed("failed to parse response: it is not JSON") from error
    return _read_completion(model, body, members)


def _read_completion(model: str, body: bytes, members: Members) -> Reply:
    choice = first_choice(members)
    message = object_at(choice, "message")
    calls = list_at(message, "tool_calls")
    called = text_at(object_at(message, "function_call"), "name")
    return Reply(
        model=model,
        content=_content(message),
        reasoning=_reasoning(message) or _reasoning(choice),
        tool_calls=tuple(_read_call(raw) for raw in calls),
        has_tool_calls=bool(calls or called),
        finish_reason=text_at(choice, "finish_reason"),
        usage=_read_usage(members),
        logprobs=_read_logprobs(choice.get("logprobs")),
        body=body,
    )


def _read_stream(model: str, body: bytes) -> Reply:
    """Join the chunks' texts; a chunk that cannot be read says nothing."""
    payloads = read_payloads(body)
    if not payloads:
        raise GraphFailed("failed to parse response: it is no event stream")
    contents: list[str] = []
    reasonings: list[str] = []
    usage = None
    finish_reason = ""
    for payload in payloads:
        members = object_in(payload)
        choice = first_choice(members)
        delta = _delta(choice)
        contents.append(text_at(delta, "content"))
        reasonings += [text for name in _REASONING if (text := text_at(delta, name))][:1]
        finish_reason = text_at(choice, "finish_reason") or finish_reason
        usage = _read_usage(members) or usage
    return Reply(
        model=model,
        content="".join(contents),
        reasoning="".join(reasonings),
        finish_reason=finish_reason,
        usage=usage,
        body=body,
        is_stream=True,
    )


def _delta(choice: Members) -> Members:
    """Return what holds a chunk's text: some backends send a message, or put it into the choice."""
    for name in ("delta", "message"):
        inner = read_odd(_MEMBERS, choice.get(name))
        if inner is not None:
            return inner
    return choice


def _content(message: Members) -> str:
    """Return the text, of a list its text parts' joined."""
    text = string_at(message, "content")
    if text is not None:
        return text
    parts = [object_in(raw) for raw in list_at(message, "content")]
    return "".join(text_at(part, "text") for part in parts if text_at(part, "type") in _TEXT_PARTS)


def _reasoning(members: Members) -> str:
    texts = (text_at(members, name) for name in _REASONING)
    return next((text for text in texts if text.strip()), "")


def _read_call(raw: msgspec.Raw) -> ToolCall:
    members = object_in(raw)
    function = object_at(members, "function")
    arguments = string_at(function, "arguments")
    if arguments is None:  # some backends send the object itself
        arguments = bytes(function["arguments"]).decode() if "arguments" in function else ""
    return ToolCall(text_at(members, "id"), text_at(function, "name"), arguments)


def _read_usage(members: Members) -> ReplyUsage | None:
    usage = read_odd(_MEMBERS, members.get("usage"))
    if usage is None:
        return None
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    counts = [read_odd(_COUNT, usage.get(name)) or 0 for name in names]
    return ReplyUsage(*(min(max(count, 0), _MAX_COUNT) for count in counts))


def _read_logprobs(raw: msgspec.Raw | None) -> tuple[TokenLogprob, ...]:
    """Return the tokens' evidence; none if any of it is malformed, since a part would mislead."""
    logprobs = read_odd(_LOGPROBS, raw)
    tokens: Sequence[_Token] = (logprobs.content if logprobs else None) or ()
    return tuple(
        TokenLogprob(
            token.token,
            token.logprob,
            tuple((other.token, other.logprob) for other in token.top_logprobs or ()),
        )
        for token in tokens
    )
