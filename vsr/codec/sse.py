"""Server-sent events without I/O: blocks of a stream, the event in a block, and back to bytes.

Source: WHATWG HTML, 9.2.5 "Parsing an event stream" and 9.2.6 "Interpreting an event stream".
"""

import re

import msgspec

MAX_EVENT_BYTES = 1 << 20
"""Of one event as received; a chunk of a completion has some hundred bytes."""

_BOM = b"\xef\xbb\xbf"
_LINES = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|\Z)")
# A line's end and an empty line behind it. A CR at the end of the input may be half a CRLF, so it
# waits for the next byte; behind another CR it surely ends a line, so a stream of CR never waits.
_BLANK_LINE = re.compile(rb"\n\n|\n\r\n|\n\r(?=[^\n])|\r\r")
_BREAK = re.compile(rb"\r\n|\n|\r")
_LONGEST_UNDECIDED = 2


class SseEventTooLarge(ValueError):
    """An event is longer than the bound, so it cannot be read."""


class Block(msgspec.Struct):
    """The bytes of a stream up to an empty line, which is in them."""

    raw: bytes
    is_whole: bool
    """False for a piece of a block that is longer than the bound."""


class SseEvent(msgspec.Struct):
    """What one block says."""

    raw: bytes
    """As received; all raws of a stream are the stream."""
    data: bytes | None
    """Lines joined by LF; None if the block has no `data` field, so that it is no event."""
    event: str
    """The event's type; empty if not given."""
    event_id: str | None
    retry_ms: int | None


class SseSplitter:
    """Cuts a stream into blocks; any split of the bytes gives the same whole blocks."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._pending = bytearray()
        self._searched_to = 0
        self._has_cr = False
        self._is_oversized = False

    @property
    def is_between_blocks(self) -> bool:
        """Return whether nothing of a block is held, nor of one that is being let through."""
        return not self._pending and not self._is_oversized

    def feed(self, chunk: bytes) -> list[Block]:
        """Return the blocks that `chunk` ends, and pieces of one that is too long."""
        self._has_cr = self._has_cr or b"\r" in chunk
        pending = self._pending
        pending += chunk
        blocks: list[Block] = []
        start = 0
        search_from = self._searched_to
        while (end := self._find_end(max(start, search_from))) > 0:
            blocks.append(self._block(bytes(pending[start:end])))
            self._is_oversized = False
            start = end
        del pending[:start]
        if len(pending) > self._max_event_bytes or self._is_oversized:
            self._is_oversized = True
            cut = max(len(pending) - _LONGEST_UNDECIDED, 0)
            if cut:
                blocks.append(Block(bytes(pending[:cut]), is_whole=False))
                del pending[:cut]
        self._searched_to = max(len(pending) - _LONGEST_UNDECIDED, 0)
        return blocks

    def close(self) -> bytes:
        """Return what the stream's end cut off; by the standard it is no event."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest

    def _find_end(self, at: int) -> int:
        """Return the index behind the next empty line, or 0."""
        if not self._has_cr:
            found_at = self._pending.find(b"\n\n", at)
            return found_at + 2 if found_at >= 0 else 0
        found = _BLANK_LINE.search(self._pending, at)
        return found.end() if found else 0

    def _block(self, raw: bytes) -> Block:
        return Block(raw, not self._is_oversized and len(raw) <= self._max_event_bytes)


class SseDecoder:
    """Reads the events of a stream; any split of the bytes gives the same events."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._splitter = SseSplitter(max_event_bytes)
        self._is_first = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the blocks that `chunk` ends, those that are no event among them.

        Raises:
            SseEventTooLarge: one is over the bound; the stream can't be read on.
        """
        events = []
        for block in self._splitter.feed(chunk):
            if not block.is_whole:
                raise SseEventTooLarge("an event of the stream is over the bound")
            events.append(parse_event(block.raw, is_first=self._is_first))
            self._is_first = False
        return events

    def close(self) -> bytes:
        """Return what the stream's end cut off; by the standard it is no event."""
        return self._splitter.close()


def parse_event(raw: bytes, *, is_first: bool = False) -> SseEvent:
    """Read one block; the first one of a stream may begin with a byte order mark."""
    data: list[bytes] = []
    event = SseEvent(raw, None, "", None, None)
    for line, _ in _lines(raw, is_first=is_first):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event.event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            event.event_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            event.retry_ms = int(value[:18])
    if data:
        event.data = b"\n".join(data)
    return event


def encode_event(data: bytes, *, event: str = "") -> bytes:
    """Return the bytes of an event; `event` has no line break in it."""
    name = b"event: " + event.encode() + b"\n" if event else b""
    return name + _data_lines(data, b"\n") + b"\n\n"


def encode_comment(text: str) -> bytes:
    """Return the bytes of a comment, which no client takes for an event.

    The empty line behind it lets readers that cut streams at empty lines see it at once.
    """
    words = text.replace("\r", " ").replace("\n", " ")
    return f": {words}\n\n".encode("utf-8", "replace")


def replace_data(raw: bytes, data: bytes, *, is_first: bool = False) -> bytes:
    """Return the block with other data; its other lines and its way to end lines stay."""
    pieces = [_BOM] if is_first and raw.startswith(_BOM) else []
    is_written = False
    for line, end in _lines(raw, is_first=is_first):
        if line.partition(b":")[0] != b"data":
            pieces += (line, end)
        elif not is_written:
            pieces += (_data_lines(data, end or b"\n"), end)
            is_written = True
    return b"".join(pieces)


def leading_breaks(raw: bytes) -> bytes:
    """Return the empty lines in front of a block's first field; they belong to no event."""
    return raw[: len(raw) - len(raw.lstrip(b"\r\n"))]


def _data_lines(data: bytes, separator: bytes) -> bytes:
    return separator.join(b"data: " + line for line in _BREAK.split(data))


def _lines(raw: bytes, *, is_first: bool) -> list[tuple[bytes, bytes]]:
    """Return each line and what ends it."""
    at = len(_BOM) if is_first and raw.startswith(_BOM) else 0
    lines: list[tuple[bytes, bytes]] = _LINES.findall(raw, at)
    return lines
