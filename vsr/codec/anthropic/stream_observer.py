"""An Anthropic stream on its way to an Anthropic client: nothing changes, its usage is read."""

import msgspec

from vsr.codec.anthropic.backend_events import read_event
from vsr.codec.anthropic.stream_failure import TRUNCATED
from vsr.codec.anthropic.usage_tally import UsageTally
from vsr.codec.sse import MAX_EVENT_BYTES, SseSplitter, parse_event
from vsr.codec.stream_usage import ReportedUsage
from vsr.codec.strict_json import NULL

_BLOCK_ENDS = (b"\n\n", b"\r\n\r\n")
_USAGE = b'"usage"'
_STOP = b"message_stop"


class _Message(msgspec.Struct):
    usage: msgspec.Raw = NULL


class _Event(msgspec.Struct):
    type: str | None = None
    message: _Message | None = None
    usage: msgspec.Raw = NULL


_EVENT = msgspec.json.Decoder(_Event)


class AnthropicStreamObserver:
    """Reads a stream as its bytes pass; of an event over the bound nothing is read."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.is_complete = False
        """The backend said that the message is whole."""
        self.is_whole = True
        """A stream of the client's own protocol is as whole as the backend made it."""
        self._tally = UsageTally()
        self._splitter = SseSplitter(max_event_bytes)
        self._is_first = True

    @property
    def usage(self) -> ReportedUsage | None:
        """Return what was reported so far; None until then."""
        return self._tally.reported

    def feed(self, chunk: bytes) -> bytes:
        """Return `chunk`."""
        is_silent = _USAGE not in chunk and _STOP not in chunk
        if is_silent and chunk.endswith(_BLOCK_ENDS) and self._splitter.is_between_blocks:
            self._is_first = False
            return chunk
        for block in self._splitter.feed(chunk):
            if block.is_whole:
                self._read(block.raw)
            self._is_first = False
        return chunk

    def close(self) -> bytes:
        """Read what the stream's end cut off; all bytes are out already."""
        self._read(self._splitter.close())
        return b""

    def break_off(self) -> bytes:
        """Return an error event, if the client has no event begun."""
        return TRUNCATED.anthropic_event if self._splitter.is_between_blocks else b""

    def _read(self, raw: bytes) -> None:
        if _USAGE not in raw and _STOP not in raw:
            return
        data = parse_event(raw, is_first=self._is_first).data
        event = None if data is None else read_event(_EVENT, data)
        if event is None:
            return
        match event.type:
            case "message_start" if event.message is not None:
                self._tally.start(event.message.usage)
            case "message_delta":
                self._tally.update(event.usage)
            case "message_stop":
                self.is_complete = True
