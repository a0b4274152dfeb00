"""The server side of an HTTP/1.1 connection, without I/O: bytes in, events out, and back."""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from http import HTTPStatus
from typing import Final

import httptools

from vsr.headers import HeaderLine
from vsr.http.framing import (
    CHUNK_LINE_BYTES,
    HEAD_END,
    MAX_CHUNK_OVERHEAD_BYTES,
    MAX_HEAD_BYTES,
    FramingError,
    RequestHead,
    read_request_head,
)
from vsr.http.plain_head import PlainHeads

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


class End(Enum):
    """Marks the end of a request's body among the events."""

    REQUEST = "end of request"


Event = RequestHead | bytes | End | FramingError
"""A head, some body, the end of the body, or a fault after which nothing more comes."""


class ServerConnection:
    """One client connection; requests come out in order, one after the other.

    The parser can't be paused, so events of later requests queue up, bounded by what the caller
    feeds ahead. A fault comes out as an event of its own, behind what was sound before it.

    With `heads`, a request that came whole and in the ordinary shape has its body in its head, and
    no event follows; without, every body and its end are events.
    """

    def __init__(self, heads: PlainHeads | None = None) -> None:
        self._heads = heads
        self._events: deque[Event] = deque()
        self._faulty = False
        self._in_head = True
        self._has_begun = False
        """Whether the parser is inside a request."""
        self._is_spent = False
        """Whether the last request ends the connection: the parser refuses what follows."""
        self._head_bytes = 0
        self._body_before_head = -1
        """Bytes of an earlier body that stand before the head in what is fed; -1: no head."""
        self._heads_in_feed = 0
        self._is_chunked = False
        self._chunk_overhead = 0
        self._body_in_feed = 0
        self._chunks_in_feed = 0
        self._hides_next_end = False
        self._hides_next_head = False
        self._target = b""
        self._lines: list[HeaderLine] = []
        self._parser = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> None:
        """Take bytes from the client; never raises, see `Event`."""
        heads = self._heads
        if heads is not None and not (
            self._events or self._head_bytes or self._has_begun or self._is_spent or self._faulty
        ):
            head = heads.read_request(data)
            if head is not None:
                self._events.append(head)
                return
        ends = data.count(HEAD_END)
        if ends > 1 or (ends and self._is_chunked and not self._in_head):
            # Heads and chunked bodies end where a segment ends, so that what lies between is
            # known to belong to one message.
            for segment in _segments(data):
                self._feed_segment(segment)
        else:
            self._feed_segment(data)

    def _feed_segment(self, data: bytes) -> None:
        if self._faulty:
            return
        was_in_head = self._in_head
        self._body_before_head = 0 if was_in_head else -1
        self._heads_in_feed = self._body_in_feed = self._chunks_in_feed = 0
        self._parse(data)
        if self._body_before_head >= 0 and not self._faulty:
            self._count_head(data)
        if self._is_chunked and not self._faulty and (self._heads_in_feed or not was_in_head):
            self._count_chunk_overhead(data)

    def next_event(self) -> Event | None:
        """Return the next event, None when more bytes are needed."""
        return self._events.popleft() if self._events else None

    def take_whole_body(self) -> bytes | None:
        """Return the body if all of it has arrived in one piece, or None and take nothing."""
        events = self._events
        if len(events) < 2 or events[1] is not End.REQUEST:  # noqa: PLR2004  # body and its end
            return None
        body = events[0]
        if not isinstance(body, bytes):
            return None
        events.popleft()
        events.popleft()
        return body

    def take_more(self, begun: bytes) -> bytes:
        """Return `begun`, a piece of a body, with what has arrived of that body behind it."""
        events, parts = self._events, [begun]
        while events and isinstance(part := events[0], bytes):
            events.popleft()
            parts.append(part)
        return b"".join(parts)

    @property
    def is_between_requests(self) -> bool:
        """Return whether nothing of a further request has arrived."""
        return not (self._has_begun or self._events or self._head_bytes)

    # What follows is called by the parser while it is fed.

    def on_message_begin(self) -> None:
        """Start a head."""
        self._in_head = self._has_begun = True
        if self._body_before_head < 0:
            self._body_before_head = self._body_in_feed
        self._target = b""
        self._lines = []

    def on_url(self, part: bytes) -> None:
        """Collect the request target, which may come in parts."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect one field; those behind a chunked body are trailers, which we drop."""
        if self._in_head:
            self._lines.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Check the head and put it out."""
        if self._hides_next_head:
            self._hides_next_head = False
            self._in_head = False
            return
        self._in_head = False
        self._heads_in_feed += 1
        self._chunk_overhead = self._body_in_feed = self._chunks_in_feed = 0
        parser = self._parser
        try:
            head = read_request_head(
                parser.get_method(),
                self._target,
                self._lines,
                is_http_1_0=_is_http_1_0(parser.get_http_version()),
                keep_alive=parser.should_keep_alive(),
            )
        except FramingError as fault:
            self._fail(fault)
            return
        self._is_chunked = head.length is None
        self._hides_next_end = parser.should_upgrade() and head.has_body
        self._put(head)

    def on_body(self, data: bytes) -> None:
        """Put out a piece of the body."""
        self._body_in_feed += len(data)
        self._put(data)

    def on_chunk_header(self) -> None:
        """Count a chunk, to know how much of what was fed is neither data nor chunk line."""
        self._chunks_in_feed += 1

    def on_message_complete(self) -> None:
        """Put out the end of the request."""
        if self._hides_next_end:
            self._hides_next_end = False
            return
        self._in_head = True
        self._has_begun = False
        self._is_spent = not self._parser.should_keep_alive()
        self._target = b""
        self._put(End.REQUEST)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._fail(FramingError("malformed HTTP request"))

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Serve a request that asks to change protocol as if it had not asked.

        The parser stops at such a head, its body unread; a new one is told the framing again.
        Source: RFC 9110 section 7.8, a server may ignore Upgrade.
        """
        self._parser = httptools.HttpRequestParser(self)
        head = self._events[-1] if self._events else None
        if not self._in_head and isinstance(head, RequestHead):
            self._hides_next_head = True
            framing = (
                b"Transfer-Encoding: chunked"
                if head.length is None
                else b"Content-Length: %d" % head.length
            )
            lines, self._lines = self._lines, []
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n\r\n" % framing)
            self._lines = lines
        if rest:
            self._parse(rest)

    def _count_head(self, data: bytes) -> None:
        """Bound the head that stands in `data`, as it came: white space that is not kept counts."""
        is_whole = self._heads_in_feed > 0
        end = data.find(HEAD_END) + len(HEAD_END) if is_whole else len(data)
        self._head_bytes += end - self._body_before_head
        if self._head_bytes > MAX_HEAD_BYTES:
            too_long_line = len(self._target) > MAX_HEAD_BYTES // 2
            fault = (
                FramingError("request target is too long", status=414)
                if too_long_line
                else FramingError("header fields are too long", status=431)
            )
            if is_whole:
                self._withdraw(fault)
            else:
                self._fail(fault)
        if is_whole:
            self._head_bytes = 0

    def _count_chunk_overhead(self, data: bytes) -> None:
        """Count what in `data` is neither chunk data nor chunk line."""
        fed = len(data)
        if self._heads_in_feed:
            fed -= data.find(HEAD_END) + len(HEAD_END)
        self._chunk_overhead += fed - self._body_in_feed - CHUNK_LINE_BYTES * self._chunks_in_feed
        if self._chunk_overhead > MAX_CHUNK_OVERHEAD_BYTES:
            self._withdraw(FramingError("chunk extensions are too long"))

    def _put(self, event: Event) -> None:
        if not self._faulty:
            self._events.append(event)

    def _withdraw(self, fault: FramingError) -> None:
        """Take back what nobody has seen yet of the last request and fail in its place."""
        while self._events and not isinstance(self._events.pop(), RequestHead):
            pass
        self._fail(fault)

    def _fail(self, fault: FramingError) -> None:
        self._put(fault)
        self._faulty = True


def encode_head(status: int, lines: list[HeaderLine]) -> bytes:
    """Return a response head; `lines` already holds the framing fields."""
    start = _STATUS_LINES.get(status) or b"HTTP/1.1 %d Unknown\r\n" % status
    if not lines:
        return start + b"\r\n"
    # Joined in C: no byte code runs per line.
    return b"%b%b\r\n\r\n" % (start, b"\r\n".join(map(b": ".join, lines)))


def encode_chunk(data: bytes) -> bytes:
    """Return one chunk of a chunked body; `data` must not be empty."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _segments(data: bytes) -> Iterator[bytes]:
    """Yield `data` cut behind every end of a head or of a chunked body."""
    start = 0
    while (found := data.find(HEAD_END, start)) >= 0:
        yield data[start : found + len(HEAD_END)]
        start = found + len(HEAD_END)
    if start < len(data):
        yield data[start:]


def _is_http_1_0(version: str) -> bool:
    """Return whether the version is 1.0.

    Raises:
        FramingError: it is neither 1.0 nor 1.1.
    """
    if version == "1.1":
        return False
    if version == "1.0":
        return True
    raise FramingError("HTTP version is not supported", status=505)
