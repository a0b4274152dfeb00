"""Events of a backend's stream as a translation reads them: tolerantly, and in any split."""

import re
from typing import TypeVar

import msgspec

from vsr.codec.sse import MAX_EVENT_BYTES, SseSplitter, parse_event

T = TypeVar("T")

_BLOCK_END = b"\n\n"
_DATA = b"data: "
_NAME = b"event: "
_NAMED_LINES = 2
# Halves of a character that a backend cut in two are no JSON for the decoder, and no character.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_REPLACEMENT = rb"\ufffd"


class BackendEvent(msgspec.Struct):
    """One event, or a comment."""

    name: str
    """Empty if not given."""
    data: bytes
    """UTF-8 in one line; empty in a comment."""


class BackendEvents:
    """Reads the events of a stream; any split of the bytes gives the same events."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.is_oversized = False
        """The event behind those that were returned is over the bound; this cannot be read on."""
        self._max_event_bytes = max_event_bytes
        self._splitter = SseSplitter(max_event_bytes)
        self._is_first = True

    def feed(self, chunk: bytes) -> list[BackendEvent]:
        """Return the events and comments that `chunk` ends."""
        events: list[BackendEvent] = []
        if self._is_of_whole_events(chunk):
            for raw in chunk[: -len(_BLOCK_END)].split(_BLOCK_END):
                _add_event(events, _plain_event(raw) or _read_block(raw + _BLOCK_END))
            return events
        for block in self._splitter.feed(chunk):
            if not block.is_whole:
                self.is_oversized = True
                break
            _add_event(events, _read_block(block.raw, is_first=self._is_first))
            self._is_first = False
        return events

    def close(self) -> list[BackendEvent]:
        """Return what the stream's end cut off, if it is an event but for the empty line.

        By the standard it is none, but some backends do not end their last line.
        """
        rest = self._splitter.close()
        events: list[BackendEvent] = []
        if rest:
            _add_event(events, _read_block(rest, is_first=self._is_first))
        return events

    def _is_of_whole_events(self, chunk: bytes) -> bool:
        """Return whether `chunk` can be cut without looking at it twice, as most can."""
        return (
            chunk.endswith(_BLOCK_END)
            and not self._is_first
            and self._splitter.is_between_blocks
            and b"\r" not in chunk
            and len(chunk) <= self._max_event_bytes
        )


def read_event(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    """Decode an event's data; None if it is malformed, which is to be skipped."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        repaired = _ESCAPE.sub(lambda found: _REPLACEMENT if found["half"] else found[0], data)
    try:
        return decoder.decode(repaired) if repaired != data else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _add_event(events: list[BackendEvent], event: BackendEvent | None) -> None:
    if event is not None:
        if not event.data.isascii():  # by the standard, what is no UTF-8 is replaced
            event.data = event.data.decode("utf-8", "replace").encode()
        events.append(event)


def _plain_event(block: bytes) -> BackendEvent | None:
    """Read a block of the usual lines; None if it takes a closer look."""
    if b"\n" not in block:
        return BackendEvent("", block[len(_DATA) :]) if block.startswith(_DATA) else None
    lines = block.split(b"\n")
    if len(lines) != _NAMED_LINES:
        return None
    name, data = lines
    if not name.startswith(_NAME) or not data.startswith(_DATA):
        return None
    return BackendEvent(name[len(_NAME) :].decode("utf-8", "replace"), data[len(_DATA) :])


def _read_block(raw: bytes, *, is_first: bool = False) -> BackendEvent | None:
    """Read any block; None if there is nothing in it that matters."""
    event = parse_event(raw, is_first=is_first)
    if event.data is not None:
        return BackendEvent(event.event, event.data.replace(b"\n", b" "))
    text = raw.strip()
    if text.startswith(b"{"):  # a server's error in the middle of a stream, without `data:`
        return BackendEvent("", b" ".join(text.splitlines()))
    return BackendEvent("", b"") if text.startswith(b":") else None
