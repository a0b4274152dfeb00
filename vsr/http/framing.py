"""HTTP/1.1 framing rules beyond the parser's, for requests and responses alike.

The parser (llhttp) refuses broken syntax, control bytes included; what is refused here is
well-formed but ambiguous, so that no two parties can disagree on where a message ends.
Source: RFC 9112 sections 3.2, 6.1 to 6.3, 7.1 and 11.2.
"""

import re

import msgspec

from vsr.headers import HeaderLine, LineFilter

MAX_HEAD_BYTES = 60 * 1024
"""Request line and fields together, and a response's. Source: Envoy's default."""
MAX_FIELDS = 100
"""Field lines of one head. Source: Envoy's default."""
MAX_CHUNK_OVERHEAD_BYTES = 4096
"""Chunk extensions and trailers of one message."""
CHUNK_LINE_BYTES = 24
"""What a chunk may cost beside its data: a size of 16 digits and its line ends, rounded up."""
HEAD_END = b"\r\n\r\n"

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
        b"te",
    }
)
"""Fields that end at this hop. Source: RFC 9110 section 7.6.1."""

METHODS_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})
"""Methods of requests that usually have a body. Source: RFC 9110 section 8.6."""
WITHOUT_BODY = (204, 304)
"""Statuses of responses that have no body. Source: RFC 9110 section 6.4.1."""

HOST = re.compile(rb"(?:[A-Za-z0-9\-._~!$&'()*+,;=%]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
"""Value of a Host field. Source: RFC 9110 section 7.2."""
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)([^#]*)", re.IGNORECASE)

_DIGITS = re.compile(rb"[0-9]{1,18}")
_NOMINATES_NOTHING = frozenset({b"keep-alive", b"close", b"Keep-Alive", b"Close"})
_REPEATED = {
    b"content-length": "repeated Content-Length",
    b"transfer-encoding": "Transfer-Encoding is not exactly chunked",
    b"host": "repeated Host",
}
"""Fields that may stand once in a head."""
_REFUSED_METHODS = frozenset({b"CONNECT", b"TRACE"})


class FramingError(Exception):
    """A message that must not be served; `status` answers a request that has it.

    `str(error)` is one of our own phrases and never holds what the peer sent.
    """

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class HeadText(msgspec.Struct, frozen=True, gc=False):
    """What logs say of a request's head."""

    method: str
    target: str
    authority: str
    forwarded_for: str
    user_agent: str


class HeadMemo(msgspec.Struct):
    """What was worked out of a head's lines alone, for the next request with the very same head."""

    chosen_by: LineFilter | None = None
    chosen: list[HeaderLine] = []
    """Lines that this filter keeps, sorted by name. Not to be changed."""
    values: dict[bytes, bytes] = {}
    """First value of every name among them. Not to be changed."""
    text: HeadText | None = None


class RequestHead(msgspec.Struct, gc=False):
    """The head of one request."""

    method: bytes
    target: bytes
    """Path and query as sent; an absolute-form target without its origin."""
    authority: bytes
    """The host the client asks for: the absolute-form target's, else the Host field's."""
    lines: list[HeaderLine]
    """Fields in order, names lower-case. Not to be changed: heads that are alike share them."""
    length: int | None
    """Declared body length; None for a chunked body."""
    keep_alive: bool
    is_http_1_0: bool = False
    expects_continue: bool = False
    dropped: frozenset[bytes] = HOP_BY_HOP
    """Fields that end at this hop."""
    fields: dict[bytes, bytes] = {}
    """Last value of every name. Not to be changed either."""
    size_bytes: int | None = None
    """Of the head as it came, where that is known."""
    body: bytes | None = None
    """The whole body where it came together with the head; then no event of it follows."""
    memo: HeadMemo | None = None
    """None: nothing is known of earlier requests."""

    @property
    def has_body(self) -> bool:
        """Return whether body bytes can follow."""
        return self.length != 0

    def text(self) -> HeadText:
        """Return what logs say of it."""
        memo = self.memo
        if memo is not None and memo.text is not None:
            return memo.text
        text = HeadText(
            self.method.decode("latin-1"),
            self.target.decode("latin-1"),
            self.authority.decode("latin-1"),
            self.fields.get(b"x-forwarded-for", b"").decode("latin-1"),
            self.fields.get(b"user-agent", b"").decode("latin-1"),
        )
        if memo is not None:
            memo.text = text
        return text


class ResponseHead(msgspec.Struct, gc=False):
    """The head of one final response."""

    status: int
    lines: list[HeaderLine]
    """Fields in order, names lower-case, without those that end at this hop."""
    length: int | None
    """Declared body length, 0 where no body can follow, None when unknown beforehand."""
    fields: dict[bytes, bytes] | None = None
    """Value of every name of `lines`, where no name stands twice and it was worked out anyway."""
    size_bytes: int | None = None
    """Of the head as it came, where that is known."""


class Framing(msgspec.Struct, gc=False):
    """What the fields of one head say about the message and about this hop."""

    fields: dict[bytes, bytes]
    """Last value of every name."""
    length: int | None
    is_chunked: bool
    dropped: frozenset[bytes]
    """Fields that end at this hop, those included that Connection nominates."""


def read_framing(start_line_bytes: int, lines: list[HeaderLine]) -> Framing:
    """Check a parsed head, request or response; its size as it came is the connection's to bound.

    Raises:
        FramingError: 414 for the start line, 431 for the number of fields, else 400.
    """
    fields = dict(lines)
    if len(fields) != len(lines):
        _refuse_repeated(lines)
    if start_line_bytes > MAX_HEAD_BYTES:
        raise FramingError("request target is too long", status=414)
    if len(lines) > MAX_FIELDS:
        raise FramingError("too many header fields", status=431)
    length = fields.get(b"content-length")
    coding = fields.get(b"transfer-encoding")
    if length is not None and _DIGITS.fullmatch(length) is None:
        raise FramingError("bad Content-Length")
    if coding is not None:
        if coding.lower() != b"chunked":
            raise FramingError("Transfer-Encoding is not exactly chunked")
        if length is not None:
            raise FramingError("Content-Length with Transfer-Encoding")
    return Framing(
        fields,
        None if length is None else int(length),
        coding is not None,
        _read_dropped(fields, lines),
    )


def _refuse_repeated(lines: list[HeaderLine]) -> None:
    """Refuse a head in which a field occurs twice that may occur once."""
    seen: set[bytes] = set()
    for name, _ in lines:
        if name in _REPEATED:
            if name in seen:
                raise FramingError(_REPEATED[name])
            seen.add(name)


def _read_dropped(fields: dict[bytes, bytes], lines: list[HeaderLine]) -> frozenset[bytes]:
    if fields.get(b"connection", b"close") in _NOMINATES_NOTHING:
        return HOP_BY_HOP
    dropped = set(HOP_BY_HOP)
    for name, value in lines:
        if name == b"connection":
            dropped.update(token.strip().lower() for token in value.split(b","))
    return frozenset(dropped)


def read_request_head(
    method: bytes, target: bytes, lines: list[HeaderLine], *, is_http_1_0: bool, keep_alive: bool
) -> RequestHead:
    """Check a parsed request head and return it normalised.

    Raises:
        FramingError: it must be refused; carries the status.
    """
    if method in _REFUSED_METHODS:
        raise FramingError("method is not supported", status=405)
    framing = read_framing(len(method) + len(target), lines)
    if framing.is_chunked and is_http_1_0:
        raise FramingError("Transfer-Encoding on HTTP/1.0")
    authority = _checked_host(framing.fields.get(b"host"), is_required=not is_http_1_0)
    if target[:1] != b"/":
        authority, target = _split_absolute(target)
    if b"#" in target:
        raise FramingError("bad request target")
    expectation = framing.fields.get(b"expect")
    if expectation is not None and expectation.lower() != b"100-continue":
        raise FramingError("expectation is not supported", status=417)
    return RequestHead(
        method=method,
        target=target,
        authority=authority,
        lines=lines,
        length=None if framing.is_chunked else framing.length or 0,
        keep_alive=keep_alive,
        is_http_1_0=is_http_1_0,
        expects_continue=expectation is not None and not is_http_1_0,
        dropped=framing.dropped,
        fields=framing.fields,
    )


def _checked_host(host: bytes | None, *, is_required: bool) -> bytes:
    if host is None and not is_required:
        return b""
    if host is None or HOST.fullmatch(host) is None:
        raise FramingError("missing or bad Host")
    return host


def _split_absolute(target: bytes) -> tuple[bytes, bytes]:
    match = _ABSOLUTE.fullmatch(target)
    if match is None or HOST.fullmatch(match[1]) is None:
        raise FramingError("bad request target")
    path = match[2]
    return match[1], path if path[:1] == b"/" else b"/" + path
