"""The client side of an HTTP/1.1 connection, without I/O: a request out, a response in."""

from collections import deque

import httptools

from vsr.headers import HeaderLine
from vsr.http.framing import (
    CHUNK_LINE_BYTES,
    HEAD_END,
    MAX_CHUNK_OVERHEAD_BYTES,
    MAX_HEAD_BYTES,
    METHODS_WITH_BODY,
    WITHOUT_BODY,
    FramingError,
    ResponseHead,
    read_framing,
)
from vsr.http.plain_head import PlainHeads

_FIRST_STATUS = 100
_FIRST_FINAL = 200
_VERSIONS = frozenset({"1.0", "1.1"})
_SWITCHING = 101


class ClientConnection:
    """One backend connection, one request at a time.

    Call `begin` when a request goes out, then `feed` what arrives until `is_complete`; `head` and
    `take` give what has arrived. A connection may carry another request if `is_reusable`.
    """

    def __init__(self, heads: PlainHeads | None = None) -> None:
        self._heads = heads
        self.head: ResponseHead | None = None
        self.is_complete = False
        self.is_reusable = False
        self.body: deque[bytes] = deque()
        """Pieces of the body that have arrived and nobody has taken."""
        self._is_head_request = False
        self._is_untouched = True
        """Whether nothing of the response has arrived."""
        self._ends_at_close = False
        self._is_chunked = False
        self._is_informational = False
        self._status = 0
        self._version = ""
        self._lines: list[HeaderLine] = []
        self._fault: FramingError | None = None
        self._head_bytes = 0
        self._chunk_overhead = 0
        self._body_in_feed = 0
        self._chunks_in_feed = 0
        self._parser = httptools.HttpResponseParser(self)

    def begin(self, *, is_head_request: bool) -> None:
        """Expect the response to a new request; a HEAD request's response has no body."""
        self.head = None
        self.is_complete = self.is_reusable = False
        self._is_head_request = is_head_request
        self._ends_at_close = self._is_chunked = False
        self._head_bytes = self._chunk_overhead = 0
        self._is_untouched = True

    def feed(self, data: bytes) -> None:
        """Take bytes from the backend.

        Raises:
            FramingError: the response breaks HTTP; drop the connection.
        """
        had_head = self.head is not None
        heads = self._heads
        if heads is not None and self._is_untouched and self._take_plain(heads, data):
            return
        self._is_untouched = False
        self._body_in_feed = self._chunks_in_feed = 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = FramingError("unexpected protocol switch")
        except httptools.HttpParserError:
            if not self.is_complete:
                self._fault = self._fault or FramingError("malformed HTTP response")
            self.is_reusable = False
        if self._fault is None:
            self._count(data, had_head=had_head)
        if self._fault is not None:
            self.is_reusable = False
            raise self._fault

    def _take_plain(self, heads: PlainHeads, data: bytes) -> bool:
        """Take a whole response of the ordinary shape; return whether it was one."""
        plain = None if self._is_head_request else heads.read_response(data)
        if plain is None:
            return False
        self._is_untouched = False
        self.head, body = plain
        if body:
            self.body.append(body)
        self.is_complete = self.is_reusable = True
        return True

    def feed_end(self) -> None:
        """Take the end of the stream.

        Raises:
            FramingError: the response was not complete.
        """
        self.is_reusable = False
        if self.is_complete:
            return
        if self.head is None:
            raise FramingError("connection closed before the response head")
        if not self._ends_at_close:
            raise FramingError("connection closed inside the response body")
        self.is_complete = True

    def take(self) -> bytes:
        """Return the body bytes that have arrived, maybe none."""
        body = self.body
        if len(body) == 1:
            return body.popleft()
        data = b"".join(body)
        body.clear()
        return data

    @property
    def has_body_waiting(self) -> bool:
        """Return whether `take` would return anything."""
        return bool(self.body)

    # What follows is called by the parser while it is fed.

    def on_message_begin(self) -> None:
        """Start a head; one nobody asked for spoils the connection."""
        if self.is_complete:
            self.is_reusable = False
        self._lines = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect one field; trailers are dropped."""
        if self.head is None and not self.is_complete:
            self._lines.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Check the head."""
        if self.is_complete or self._fault is not None:
            return
        status = self._status = self._parser.get_status_code()
        self._is_informational = status < _FIRST_FINAL
        self._version = self._parser.get_http_version()
        if self._version not in _VERSIONS or status < _FIRST_STATUS:
            self._fault = FramingError("not an HTTP/1 response")
        if status == _SWITCHING:
            self._fault = FramingError("unexpected protocol switch")
        if self._is_informational or self._fault is not None:
            return
        try:
            self._accept_head(status)
        except FramingError as fault:
            self._fault = fault

    def on_body(self, data: bytes) -> None:
        """Collect a piece of the body."""
        if self.is_complete:
            self.is_reusable = False  # bytes behind a response that has none
            return
        self._body_in_feed += len(data)
        self.body.append(data)

    def on_chunk_header(self) -> None:
        """Count a chunk; see `_count`."""
        self._chunks_in_feed += 1

    def on_message_complete(self) -> None:
        """End the response, unless it was an informational one."""
        if self._is_informational or self.is_complete or self._fault is not None:
            return
        self.is_complete = True
        self.is_reusable = self._parser.should_keep_alive()

    def _accept_head(self, status: int) -> None:
        lines = self._lines
        framing = read_framing(0, lines)
        if framing.is_chunked and self._version != "1.1":
            raise FramingError("Transfer-Encoding on HTTP/1.0")
        has_body = not self._is_head_request and status not in WITHOUT_BODY
        self._is_chunked = framing.is_chunked
        self._ends_at_close = has_body and not framing.is_chunked and framing.length is None
        kept = lines
        if not framing.dropped.isdisjoint(framing.fields):
            kept = [line for line in lines if line[0] not in framing.dropped]
        self.head = ResponseHead(status, kept, framing.length if has_body else 0)
        if self._is_head_request:
            # The parser knows of no HEAD and would wait for the body that the fields describe.
            self.is_complete = True
            self.is_reusable = self._parser.should_keep_alive() and framing.is_chunked is False
            self._parser = httptools.HttpResponseParser(self)

    def _count(self, data: bytes, *, had_head: bool) -> None:
        """Bound what is neither data nor needed to frame it."""
        fed = len(data)
        if not had_head:
            head = fed if self.head is None else data.find(HEAD_END) + len(HEAD_END)
            fed -= head
            self._head_bytes += head
            if self._head_bytes > MAX_HEAD_BYTES:
                self.head = None
                self._fault = FramingError("response head is too long")
        if self._is_chunked:
            overhead = fed - self._body_in_feed - CHUNK_LINE_BYTES * self._chunks_in_feed
            self._chunk_overhead += overhead
            if self._chunk_overhead > MAX_CHUNK_OVERHEAD_BYTES:
                self._fault = FramingError("chunk extensions are too long")


def encode_open_request(
    method: bytes,
    target: bytes,
    authority: bytes,
    lines: list[HeaderLine],
    length: int | None,
) -> bytes:
    """Return the head of a request whose body is still to come.

    Args:
        method, target, authority, lines: as of `encode_request`.
        length: of the body; None: it comes in chunks.
    """
    if length is not None:
        return encode_request(method, target, authority, lines, length)
    fields = b"\r\n".join(map(b": ".join, [*lines, (b"transfer-encoding", b"chunked")]))
    return b"%b %b HTTP/1.1\r\nhost: %b\r\n%b\r\n\r\n" % (method, target, authority, fields)


def encode_request(
    method: bytes, target: bytes, authority: bytes, lines: list[HeaderLine], body_bytes: int
) -> bytes:
    """Return a request's head.

    Args:
        method: as the server is to see it.
        target: path and query.
        authority: value of the Host field.
        lines: neither Host nor framing fields.
        body_bytes: length of the body that follows.

    Source: RFC 9110 section 8.6: a length is sent with a body, and without one for methods that
    usually have one.
    """
    fields = b"\r\n".join(map(b": ".join, lines)) + b"\r\n" if lines else b""
    if body_bytes or method in METHODS_WITH_BODY:
        return b"%b %b HTTP/1.1\r\nhost: %b\r\n%bcontent-length: %d\r\n\r\n" % (
            method,
            target,
            authority,
            fields,
            body_bytes,
        )
    return b"%b %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (method, target, authority, fields)
