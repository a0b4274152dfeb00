"""Chat completion chunks as an Anthropic stream.

Source: the reference's rules "Chat SSE to Anthropic SSE", except that blocks do not overlap; that
the end waits for the usage, `[DONE]` or the stream's end; and that neither an error nor a stream
that just ends has `message_stop` behind it.
"""

from collections.abc import Sequence

import msgspec

from vsr.codec.anthropic.backend_events import BackendEvent, BackendEvents, read_event
from vsr.codec.anthropic.block_queue import BlockKind, BlockQueue
from vsr.codec.anthropic.call_deltas import CallDelta, ToolCalls
from vsr.codec.anthropic.chat_parts import text_literals
from vsr.codec.anthropic.json_value import JsonValue, UntranslatableResponse, encode, is_text
from vsr.codec.anthropic.protocol_warning import WarningLog
from vsr.codec.anthropic.response_to_anthropic import stop_reason_for
from vsr.codec.anthropic.stream_failure import (
    OVERSIZED,
    TRUNCATED,
    StreamFailure,
    anthropic_error_event,
)
from vsr.codec.sse import MAX_EVENT_BYTES, encode_event
from vsr.codec.stream_usage import ReportedUsage, read_reported
from vsr.codec.strict_json import NULL

_DONE = b"[DONE]"
_CUT_OFF = "length"
_ERROR = msgspec.Raw(b'"error"')
_NO_ERROR = tuple(map(msgspec.Raw, (b"null", b"false", b"{}", b'""')))
_NO_CONTENT = (NULL, msgspec.Raw(b'""'))
_PING = encode_event(b'{"type":"ping"}', event="ping")
_STOP = encode_event(b'{"type":"message_stop"}', event="message_stop")
_EMPTY = StreamFailure("the backend's stream has no answer in it")
_FAILED = StreamFailure("the backend failed in the middle of its answer")


class _Delta(msgspec.Struct):
    content: msgspec.Raw = NULL
    reasoning_content: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL
    tool_calls: list[CallDelta] | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    id: msgspec.Raw = NULL
    object: msgspec.Raw = NULL
    model: msgspec.Raw = NULL
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


_CHUNK = msgspec.json.Decoder(_Chunk)
_NO_CHOICES: list[_Choice] = []


class ChatStreamToAnthropic:
    """Translates a stream as its bytes come; any split of them gives the same events."""

    def __init__(self, *, model: str | None = None, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        """Start a stream.

        Args:
            model: shown in place of the backend's.
            max_event_bytes: of one event as received.
        """
        self.is_complete = False
        """The client has the whole message, and `message_stop`."""
        self.usage: ReportedUsage | None = None
        """What was reported last; None until then."""
        self._model = model
        self._events = BackendEvents(max_event_bytes)
        self._blocks = BlockQueue()
        self._calls = ToolCalls(self._blocks)
        self._has_started = False
        self._has_ended = False
        self._finish_reason = ""

    def feed(self, chunk: bytes) -> bytes:
        """Return the events that `chunk` gives; an error, or the message's end, is the last."""
        if self._has_ended:
            return b""
        return self._translate_all(self._events.feed(chunk))

    @property
    def is_whole(self) -> bool:
        """Return whether the client has the whole message."""
        return self.is_complete

    def break_off(self) -> bytes:
        """Return what is left to say when the backend has broken off."""
        return self.close()

    def close(self) -> bytes:
        """Return what is left to say; without a finish reason or `[DONE]`, that is an error."""
        if self._has_ended:
            return b""
        last = self._translate_all(self._events.close())
        if self._has_ended:
            return last
        return last + (self._guarded_finish() if self._finish_reason else self._fail(TRUNCATED))

    def _translate_all(self, events: list[BackendEvent]) -> bytes:
        pieces: list[bytes] = []
        for event in events:
            pieces.append(self._translate(event))
            if self._has_ended:
                return b"".join(pieces)
        if self._events.is_oversized:
            pieces.append(self._fail(OVERSIZED))
        return b"".join(pieces)

    def _translate(self, received: BackendEvent) -> bytes:
        data = received.data
        if not data:
            # The backend's sign of life; a client that has no message yet may not expect one.
            return _PING if self._has_started else b""
        if data.strip() == _DONE:
            return self._guarded_finish() if self._has_started else self._fail(_EMPTY)
        chunk = read_event(_CHUNK, data) or _Chunk()
        is_error = chunk.error not in _NO_ERROR or chunk.object == _ERROR
        if is_error or received.name == "error":
            self._has_ended = True
            return anthropic_error_event(data)
        return self._add_chunk(chunk)

    def _add_chunk(self, chunk: _Chunk) -> bytes:
        reported = None if chunk.usage == NULL else read_reported(chunk.usage)
        self.usage = reported or self.usage
        has_usage = reported is not None and bool(
            reported.prompt_tokens or reported.completion_tokens
        )
        choices = chunk.choices or _NO_CHOICES
        if not choices and not has_usage:
            return b""
        start = b"" if self._has_started else self._start(chunk)
        try:
            for choice in choices:
                if not choice.index:  # the Messages API has one choice
                    self._add_choice(choice)
        except UntranslatableResponse as error:
            return start + self._blocks.take() + self._fail(StreamFailure(str(error)))
        if has_usage and (self._finish_reason or (not choices and self._blocks.has_begun)):
            return start + self._guarded_finish()
        return start + self._blocks.take()

    def _start(self, chunk: _Chunk) -> bytes:
        self._has_started = True
        usage = self.usage or ReportedUsage()
        message: dict[str, JsonValue] = {
            "id": chunk.id if is_text(chunk.id) else "",
            "type": "message",
            "role": "assistant",
            "model": chunk.model if self._model is None else self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            # As Anthropic counts at the start: one token at least is under way.
            "usage": {**_input_usage(usage), "output_tokens": usage.completion_tokens or 1},
        }
        return _event("message_start", {"message": message})

    def _add_choice(self, choice: _Choice) -> None:
        delta = choice.delta
        if delta is not None:
            blocks = self._blocks
            if delta.reasoning_content is not NULL and is_text(delta.reasoning_content):
                blocks.add_text(BlockKind.THINKING, delta.reasoning_content)
            for text in _texts(delta.content):
                blocks.add_text(BlockKind.TEXT, text)
            if delta.refusal is not NULL and is_text(delta.refusal):
                blocks.add_text(BlockKind.TEXT, delta.refusal)
            for call in delta.tool_calls or ():
                self._calls.add(call)
        self._finish_reason = choice.finish_reason or self._finish_reason

    def _guarded_finish(self) -> bytes:
        """Return the message's end, or an error if what came is no message."""
        if self._finish_reason == "error":
            return self._blocks.take() + self._fail(_FAILED)
        try:
            self._blocks.end(is_cut_off=self._finish_reason == _CUT_OFF)
        except UntranslatableResponse as error:
            return self._blocks.take() + self._fail(StreamFailure(str(error)))
        self._has_ended = self.is_complete = True
        return self._blocks.take() + self._message_delta() + _STOP

    def _message_delta(self) -> bytes:
        calls_tool = bool(self._calls.count)
        reason = stop_reason_for(self._finish_reason, WarningLog(), calls_tool=calls_tool)
        usage = self.usage or ReportedUsage()
        counts: dict[str, JsonValue] = {
            **_input_usage(usage),
            "output_tokens": usage.completion_tokens or 0,
            "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens or 0},
        }
        delta: JsonValue = {"stop_reason": reason, "stop_sequence": None}
        return _event("message_delta", {"delta": delta, "usage": counts})

    def _fail(self, failure: StreamFailure) -> bytes:
        self._has_ended = True
        return failure.anthropic_event


def _texts(content: msgspec.Raw) -> Sequence[msgspec.Raw]:
    """Return the content's texts; some backends send parts."""
    if is_text(content):
        return (content,)
    return () if content in _NO_CONTENT else text_literals(content, "", WarningLog())


def _input_usage(usage: ReportedUsage) -> dict[str, JsonValue]:
    """Return the prompt's counts; the Messages API has no form for unknown ones, so those are 0."""
    cached, cache_written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    prompt = usage.prompt_tokens
    return {
        "input_tokens": 0 if prompt is None else prompt - cached - cache_written,
        "cache_creation_input_tokens": cache_written,
        "cache_read_input_tokens": cached,
    }


def _event(name: str, members: dict[str, JsonValue]) -> bytes:
    return encode_event(bytes(encode({"type": name, **members})), event=name)
