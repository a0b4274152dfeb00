"""An Anthropic stream as chat completion chunks.

Source: the reference's rules "Anthropic SSE to chat SSE", except that an error and a stream that
just ends become an error event, with no `[DONE]` behind it; that usage is told only to who asked
for it, with the counts of `message_start` in it; and that server tools do not become calls,
which a buffered answer's don't either.
"""

import msgspec

from vsr.codec.anthropic.backend_events import BackendEvent, BackendEvents, read_event
from vsr.codec.anthropic.json_value import JsonValue, encode, is_text, text_of
from vsr.codec.anthropic.response_to_chat import FINISH_REASONS
from vsr.codec.anthropic.stream_failure import (
    OVERSIZED,
    TRUNCATED,
    StreamFailure,
    openai_error_event,
)
from vsr.codec.anthropic.usage_tally import UsageTally
from vsr.codec.sse import MAX_EVENT_BYTES, encode_event
from vsr.codec.stream_usage import ReportedUsage
from vsr.codec.strict_json import NULL

MAX_OPEN_TOOLS = 1000
"""Anthropic's own streams have one block open at a time."""

_EMPTY_STRING = msgspec.Raw(b'""')
_NO_INPUT = (NULL, msgspec.Raw(b"{}"))
_MORE = b',"finish_reason":null}]}\n\n'
_TOO_MANY_TOOLS = StreamFailure("the backend's stream has too many open blocks")
_NO_MESSAGE = StreamFailure("the backend's stream does not begin with a message")


class _Message(msgspec.Struct):
    id: msgspec.Raw = NULL
    model: msgspec.Raw = NULL
    usage: msgspec.Raw = NULL


class _Block(msgspec.Struct):
    type: str | None = None
    text: msgspec.Raw = NULL
    thinking: msgspec.Raw = NULL
    id: msgspec.Raw = NULL
    name: msgspec.Raw = NULL
    input: msgspec.Raw = NULL


class _Delta(msgspec.Struct):
    type: str | None = None
    text: msgspec.Raw = NULL
    thinking: msgspec.Raw = NULL
    partial_json: msgspec.Raw = NULL
    stop_reason: str | None = None


class _Event(msgspec.Struct):
    type: str | None = None
    index: int | None = None
    message: msgspec.Raw = NULL
    """Of a `message_start`; some backends say in it what went wrong."""
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


class _Tool(msgspec.Struct):
    """A tool use that is open."""

    place: int
    """Among the message's calls."""
    has_input: bool
    """It came whole with the block's start, or begins to come in pieces."""
    is_whole: bool


_MESSAGE = msgspec.json.Decoder(_Message)
_EVENT = msgspec.json.Decoder(_Event)
_NO_DELTA = _Delta()


class AnthropicStreamToChat:
    """Translates a stream as its bytes come; any split of them gives the same chunks."""

    def __init__(
        self,
        *,
        created: int,
        include_usage: bool,
        model: str | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        """Start a stream.

        Args:
            created: Unix seconds.
            include_usage: the client asked for it; it comes with the finish reason.
            model: shown in place of the backend's.
            max_event_bytes: of one event as received.
        """
        self.is_complete = False
        """The client has the whole message, and `[DONE]`."""
        self._created = created
        self._include_usage = include_usage
        self._model = model
        self._events = BackendEvents(max_event_bytes)
        self._tally = UsageTally()
        self._head = b""
        """Of every chunk, up to its delta; empty until the message starts."""
        self._has_ended = False
        self._tools: dict[int | None, _Tool] = {}
        self._tool_count = 0
        self._stop_reason = ""

    @property
    def usage(self) -> ReportedUsage | None:
        """Return what was reported so far; None until then."""
        return self._tally.reported

    def feed(self, chunk: bytes) -> bytes:
        """Return the chunks that `chunk` gives; an error, or the message's end, is the last."""
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
        """Return what is left to say; without the message's end, that is an error."""
        if self._has_ended:
            return b""
        last = self._translate_all(self._events.close())
        return last if self._has_ended else last + self._fail(TRUNCATED)

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
        event = read_event(_EVENT, received.data) or _Event()
        kind = event.type or ("error" if event.error != NULL else "")
        if "error" in {kind, received.name}:
            self._has_ended = True
            return openai_error_event(received.data)
        if kind.startswith("content_block_"):
            return self._translate_block(kind, event) if self._head else self._fail(_NO_MESSAGE)
        return self._translate_message(kind, event)

    def _translate_block(self, kind: str, event: _Event) -> bytes:
        match kind:
            case "content_block_delta":
                return self._add_delta(event.index, event.delta or _NO_DELTA)
            case "content_block_start":
                return self._open_block(event.index, event.content_block or _Block())
            case "content_block_stop":
                return self._close_tool(event.index)
        return b""

    def _translate_message(self, kind: str, event: _Event) -> bytes:
        match kind:
            case "message_start":
                return self._start(read_event(_MESSAGE, bytes(event.message)) or _Message())
            case "message_delta":
                self._stop_reason = (event.delta or _NO_DELTA).stop_reason or self._stop_reason
                self._tally.update(event.usage)
            case "message_stop":
                return self._finish() if self._head else self._fail(_NO_MESSAGE)
        return b""

    def _start(self, message: _Message) -> bytes:
        self._tally.start(message.usage)
        if self._head:
            return b""
        members: dict[str, JsonValue] = {
            "id": message.id if is_text(message.id) else "",
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": message.model if self._model is None else self._model,
        }
        head = bytes(encode(members)).removesuffix(b"}")
        self._head = b"data: " + head + b',"choices":[{"index":0,"delta":'
        return self._chunk(b'{"role":"assistant"}')

    def _open_block(self, index: int | None, block: _Block) -> bytes:
        match block.type:
            case "text" if is_text(block.text):
                return self._chunk(b'{"content":' + block.text + b"}")
            case "thinking":
                thinking = block.thinking if is_text(block.thinking) else _EMPTY_STRING
                return self._chunk(b'{"reasoning_content":' + thinking + b"}")
            case "tool_use":
                return self._close_tool(index) + self._open_tool(index, block)
        return b""

    def _open_tool(self, index: int | None, block: _Block) -> bytes:
        if len(self._tools) >= MAX_OPEN_TOOLS:
            return self._fail(_TOO_MANY_TOOLS)
        is_whole = block.input not in _NO_INPUT
        arguments = text_of(block.input) if is_whole else ""
        call: dict[str, JsonValue] = {
            "index": self._tool_count,
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": arguments},
        }
        self._tools[index] = _Tool(self._tool_count, has_input=is_whole, is_whole=is_whole)
        self._tool_count += 1
        return self._chunk(encode({"tool_calls": [call]}))

    def _close_tool(self, index: int | None) -> bytes:
        """Return the arguments of a call that has none, since a chat client parses them."""
        tool = self._tools.pop(index, None)
        return b"" if tool is None or tool.has_input else self._arguments(tool, b'"{}"')

    def _add_delta(self, index: int | None, delta: _Delta) -> bytes:
        match delta.type:
            case "text_delta" if is_text(delta.text):
                return self._chunk(b'{"content":' + delta.text + b"}")
            case "thinking_delta" if is_text(delta.thinking):
                return self._chunk(b'{"reasoning_content":' + delta.thinking + b"}")
            case "input_json_delta":
                tool = self._tools.get(index)
                if tool is None or tool.is_whole:
                    return b""
                has_text = is_text(delta.partial_json)
                tool.has_input = tool.has_input or has_text
                return self._arguments(tool, delta.partial_json if has_text else _EMPTY_STRING)
        return b""

    def _arguments(self, tool: _Tool, literal: bytes | msgspec.Raw) -> bytes:
        head = b'{"tool_calls":[{"index":%d,"function":{"arguments":' % tool.place
        return self._chunk(head + literal + b"}}]}")

    def _chunk(self, delta: bytes | msgspec.Raw) -> bytes:
        return self._head + delta + _MORE

    def _finish(self) -> bytes:
        pieces = [self._close_tool(index) for index in list(self._tools)]
        reason = FINISH_REASONS.get(self._stop_reason, "stop")
        if reason == "stop" and self._tool_count:
            reason = "tool_calls"
        pieces.append(self._head + b'{},"finish_reason":"' + reason.encode() + b'"}]}\n\n')
        usage = self._tally.chat_usage
        if self._include_usage and usage is not None:
            # A chunk of its own without choices, as OpenAI's API has it and its clients expect.
            head = self._head.partition(b'"choices":')[0]
            pieces.append(head + b'"choices":[],"usage":' + encode(usage) + b"}\n\n")
        pieces.append(encode_event(b"[DONE]"))
        self._has_ended = self.is_complete = True
        return b"".join(pieces)

    def _fail(self, failure: StreamFailure) -> bytes:
        self._has_ended = True
        return failure.openai_event
