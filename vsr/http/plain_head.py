"""Messages of the ordinary shape, read without the parser.

Most messages on a kept connection are whole in one read and consist of lines that were there
before: a client repeats its fields from request to request, a backend from response to response.
A line is checked once and then known. Whatever is not of that shape (a chunked body, a body in
pieces, two messages in one read, an unusual field, a line that any rule objects to) is left to
the parser, which alone decides what is refused.
"""

import re
from typing import Final

import msgspec

from vsr.headers import HeaderLine
from vsr.http.framing import (
    HEAD_END,
    HOP_BY_HOP,
    HOST,
    MAX_FIELDS,
    MAX_HEAD_BYTES,
    HeadMemo,
    RequestHead,
    ResponseHead,
)

_KNOWN_LINES = 4096
"""Lines kept at a time; when there is no room all are forgotten, so one-off values cost little."""
_LONGEST_KNOWN_BYTES = 256
_KNOWN_HEADS = 1024
_LONGEST_KNOWN_HEAD_BYTES = 2048
_LONGEST_HEAD_BYTES = MAX_HEAD_BYTES - len(HEAD_END)
_LINE = re.compile(
    rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+((?:[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*"
    rb"[^\x00-\x20\x7f])?)?)[ \t]*"
)
"""Name, and value without the white space around it. Source: RFC 9112 section 5, no obs-fold."""
_REQUEST_LINE = re.compile(rb"(GET|POST|PUT|PATCH|DELETE|OPTIONS) (/[!\"$-~]*) HTTP/1\.1")
_STATUS_LINE = re.compile(rb"HTTP/1\.1 ([2-5][0-9][0-9]) [^\x00-\x08\x0a-\x1f\x7f]*")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_UNUSUAL = frozenset(
    {
        b"expect",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Fields whose meaning the parser's side works out."""
_WITHOUT_BODY = frozenset({204, 304})
_KEEP_ALIVE: Final = b"keep-alive"


class _NotPlainError(Exception):
    """A line that the parser has to judge."""


class _FieldLines(dict[bytes, HeaderLine]):
    """Field lines as they came, to name and value."""

    def __missing__(self, text: bytes) -> HeaderLine:
        line = _read_line(text)
        if len(text) <= _LONGEST_KNOWN_BYTES:
            if len(self) >= _KNOWN_LINES:
                self.clear()
            self[text] = line
        return line


class _PassedOnLines(dict[bytes, HeaderLine | None]):
    """Field lines of responses as they came, to name and value; None if they end at this hop."""

    def __missing__(self, text: bytes) -> HeaderLine | None:
        name, value = _read_line(text)
        line = None if name in HOP_BY_HOP else (name, value)
        if len(text) <= _LONGEST_KNOWN_BYTES:
            if len(self) >= _KNOWN_LINES:
                self.clear()
            self[text] = line
        return line


class _RequestLines(dict[bytes, tuple[bytes, bytes]]):
    """Request lines to method and target."""

    def __missing__(self, text: bytes) -> tuple[bytes, bytes]:
        match = _REQUEST_LINE.fullmatch(text)
        if match is None:
            raise _NotPlainError
        start = match[1], match[2]
        if len(text) <= _LONGEST_KNOWN_BYTES:
            if len(self) >= _KNOWN_LINES:
                self.clear()
            self[text] = start
        return start


class _StatusLines(dict[bytes, int]):
    """Status lines to final statuses of responses that may have a body."""

    def __missing__(self, text: bytes) -> int:
        match = _STATUS_LINE.fullmatch(text)
        status = 0 if match is None else int(match[1])
        if status == 0 or status in _WITHOUT_BODY:
            raise _NotPlainError
        if len(text) <= _LONGEST_KNOWN_BYTES:
            if len(self) >= _KNOWN_LINES:
                self.clear()
            self[text] = status
        return status


def _read_line(text: bytes) -> HeaderLine:
    match = _LINE.fullmatch(text)
    if match is None:
        raise _NotPlainError
    name, value = match[1].lower(), match[2]
    if name in _UNUSUAL:
        raise _NotPlainError
    if name == b"connection" and value.lower() != _KEEP_ALIVE:
        raise _NotPlainError
    if name == b"content-length" and _LENGTH.fullmatch(value) is None:
        raise _NotPlainError
    if name == b"host" and HOST.fullmatch(value) is None:
        raise _NotPlainError
    return name, value


class _KnownHead(msgspec.Struct):
    """A request head that came before."""

    method: bytes
    target: bytes
    authority: bytes
    lines: list[HeaderLine]
    length: int
    fields: dict[bytes, bytes]
    memo: HeadMemo


class _RequestHeads(dict[bytes, _KnownHead]):
    """Whole request heads as they came, with what they say; short ones only.

    A client sends the same head again and again, but for its body's length: that makes a few
    hundred heads of one client. When there is no room all are forgotten.
    """

    def learn(self, text: bytes, head: _KnownHead) -> None:
        """Remember a head that was read."""
        if len(text) <= _LONGEST_KNOWN_HEAD_BYTES:
            if len(self) >= _KNOWN_HEADS:
                self.clear()
            self[text] = head


class PlainHeads:
    """Reads heads of one side of many connections, and remembers them and their lines."""

    def __init__(self) -> None:
        self._heads = _RequestHeads()
        self._fields = _FieldLines()
        self._passed_on = _PassedOnLines()
        self._requests = _RequestLines()
        self._statuses = _StatusLines()

    def read_request(self, data: bytes) -> RequestHead | None:
        """Return the request that `data` is, its body included; None leaves it to the parser."""
        end = data.find(HEAD_END)
        if not 0 < end <= _LONGEST_HEAD_BYTES:
            return None
        text = data[:end]
        head = self._heads.get(text)
        if head is None:
            head = self._read_head(text)
            if head is None:
                return None
            self._heads.learn(text, head)
        body = data[end + 4 :]
        if len(body) != head.length:
            return None
        return RequestHead(
            head.method,
            head.target,
            head.authority,
            head.lines,
            head.length,
            True,  # noqa: FBT003  # keep_alive; by position, since that costs less
            fields=head.fields,
            size_bytes=end,
            body=body,
            memo=head.memo,
        )

    def _read_head(self, data: bytes) -> _KnownHead | None:
        text = data.split(b"\r\n")
        try:
            method, target = self._requests[text[0]]
            del text[0]
            lines = list(map(self._fields.__getitem__, text))
        except _NotPlainError:
            return None
        fields = dict(lines)
        host = fields.get(b"host")
        if host is None or len(fields) != len(lines) or len(text) > MAX_FIELDS:
            return None
        length = int(fields.get(b"content-length", 0))
        return _KnownHead(method, target, host, lines, length, fields, HeadMemo())

    def read_response(self, data: bytes) -> tuple[ResponseHead, bytes] | None:
        """Return the response that `data` is, head and body; None leaves it to the parser."""
        end = data.find(HEAD_END)
        if not 0 < end <= _LONGEST_HEAD_BYTES:
            return None
        text = data[:end].split(b"\r\n")
        try:
            status = self._statuses[text[0]]
            del text[0]
            lines = list(filter(None, map(self._passed_on.__getitem__, text)))
        except _NotPlainError:
            return None
        fields = dict(lines)
        length = fields.get(b"content-length")
        if length is None or len(fields) != len(lines) or len(text) > MAX_FIELDS:
            return None
        body = data[end + 4 :]
        if len(body) != int(length):
            return None
        return ResponseHead(status, lines, len(body), fields, end), body
