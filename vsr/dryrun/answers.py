"""What scripted models write: chat completions, whole or streamed, in their backend's protocol."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.chat_reply import TokenLogprob, ToolCall
from vsr.demo.reply import Reply
from vsr.dryrun.read_turns import tokens_of
from vsr.dryrun.scenario import ReplyScript
from vsr.routing.outcome import Usage

_CREATED = 1_700_000_000
_BYTES_PER_TOKEN = 4
_ASSUMED_LOGPROB = -0.1
_JSON = (b"content-type", b"application/json")
_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_PIECE = re.compile(r"\s*\S+|\s+$")
_MESSAGES = b"/messages"


class Asked(msgspec.Struct):
    """What a model reads of a request."""

    model: str = ""
    stream: bool | None = None
    stream_options: Mapping[str, object] | None = None
    logprobs: bool | None = None

    @property
    def wants_usage(self) -> bool:
        """Return whether a stream ends in usage."""
        return (self.stream_options or {}).get("include_usage") is True


_ASKED = msgspec.json.Decoder(Asked)


def read_asked(body: bytes) -> Asked:
    """Return what a model reads of a request; a strange one asks for nothing."""
    try:
        return _ASKED.decode(body)
    except msgspec.DecodeError:
        return Asked()


class Written(msgspec.Struct, frozen=True):
    """One answer, ready to be put into the form that was asked for."""

    id: str
    model: str
    reply: ReplyScript
    usage: Usage | None
    """None: not told."""

    def render(self, asked: Asked, path: bytes) -> Reply:
        """Return the answer as the backend that serves `path` gives it."""
        is_anthropic = path.endswith(_MESSAGES)
        if not asked.stream:
            body = self._whole()
            if is_anthropic:
                body = chat_response_to_anthropic(body, model=self.model).body
            return Reply(200, (_JSON,), body)
        events = self._events(wants_usage=asked.wants_usage or is_anthropic)
        if is_anthropic:
            events = _translated(events, self.model)
        return Reply(200, (_STREAM,), events=events)

    @property
    def finish_reason(self) -> str:
        """Return why the model stopped."""
        return self.reply.finish_reason or ("tool_calls" if self.reply.tool_calls else "stop")

    def _whole(self) -> bytes:
        reply = self.reply
        message: dict[str, object] = {
            "role": "assistant",
            "content": None if reply.tool_calls and not reply.content else reply.content,
        }
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.tool_calls:
            message["tool_calls"] = [_call(call) for call in reply.tool_calls]
        logprobs = None if reply.logprobs is None else {"content": _tokens(reply.logprobs)}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self.finish_reason,
        }
        members = {**self._frame("chat.completion"), "choices": [choice]}
        if self.usage is not None:
            members["usage"] = _usage(self.usage)
        return msgspec.json.encode(members)

    def _events(self, *, wants_usage: bool) -> Iterator[bytes]:
        frame = self._frame("chat.completion.chunk")
        for delta, finish_reason in self._deltas():
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            yield _event({**frame, "choices": [choice]})
        if wants_usage and self.usage is not None:
            yield _event({**frame, "choices": [], "usage": _usage(self.usage)})
        yield b"data: [DONE]\n\n"

    def _deltas(self) -> Iterator[tuple[Mapping[str, object], str | None]]:
        reply = self.reply
        yield {"role": "assistant", "content": ""}, None
        if reply.reasoning:
            yield {"reasoning_content": reply.reasoning}, None
        for piece in _PIECE.findall(reply.content):
            yield {"content": piece}, None
        for at, call in enumerate(reply.tool_calls):
            yield {"tool_calls": [{"index": at, **_call(call)}]}, None
        yield {}, self.finish_reason

    def _frame(self, kind: str) -> dict[str, object]:
        return {"id": self.id, "object": kind, "created": _CREATED, "model": self.model}


def assumed_reply(model: str) -> ReplyScript:
    """Return what a model says of which nothing is said."""
    return ReplyScript(f"An assumed answer of {model}.")


def assumed_logprobs(reply: ReplyScript) -> ReplyScript:
    """Return the reply with logprobs of a model that is sure of what it says."""
    return msgspec.structs.replace(reply, logprobs=tokens_of(reply.content, _ASSUMED_LOGPROB))


def assumed_usage(body: bytes, reply: ReplyScript) -> Usage:
    """Return the tokens that a request and its answer may have."""
    said = "".join((reply.reasoning, reply.content, *(call.arguments for call in reply.tool_calls)))
    return Usage(_tokens_in(len(body)), _tokens_in(len(said.encode())))


def _tokens_in(size_bytes: int) -> int:
    return max(math.ceil(size_bytes / _BYTES_PER_TOKEN), 1)


def _translated(events: Iterator[bytes], model: str) -> Iterator[bytes]:
    stream = ChatStreamToAnthropic(model=model)
    for event in events:
        translated = stream.feed(event)
        if translated:
            yield translated
    rest = stream.close()
    if rest:
        yield rest


def _event(members: Mapping[str, object]) -> bytes:
    return b"data: %b\n\n" % json.dumps(members, separators=(",", ":")).encode()


def _usage(usage: Usage) -> Mapping[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def _call(call: ToolCall) -> Mapping[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tokens(tokens: Sequence[TokenLogprob]) -> list[Mapping[str, object]]:
    return [
        {
            "token": each.token,
            "logprob": each.logprob,
            "top_logprobs": [{"token": t, "logprob": p} for t, p in each.alternatives],
        }
        for each in tokens
    ]
