"""Heads of HTTP/2 messages: a decoded field list to a head, and a head to a field list.

What HTTP/1.1 refuses is refused here too, by the same rules wherever they apply to both.
Source: RFC 9113 sections 8.2 and 8.3.
"""

import re
from collections.abc import Iterable

from vsr.headers import HeaderLine
from vsr.http.framing import (
    HOP_BY_HOP,
    MAX_HEAD_BYTES,
    METHODS_WITH_BODY,
    WITHOUT_BODY,
    FramingError,
    RequestHead,
    ResponseHead,
    read_framing,
    read_request_head,
)

CONNECTION_SPECIFIC = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Fields that HTTP/2 does not have. Source: RFC 9113 section 8.2.2."""
FIELD_OVERHEAD_BYTES = 4
"""What a field line costs in HTTP/1.1 beside name and value, so that limits are the same."""

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"(?:[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?")
_PATH = re.compile(rb"/[!-~]*")
_METHODS = frozenset(
    b"""ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY
    MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND
    REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE""".split()
)
"""What the parser of HTTP/1.1 knows; the backend is spoken to by HTTP/1.1."""
_REQUEST_PSEUDO = frozenset({b":method", b":scheme", b":authority", b":path"})
_RESPONSE_PSEUDO = frozenset({b":status"})
_STATUS = re.compile(rb"[1-9][0-9]{2}")
_FIRST_FINAL = 200
_SCHEMES = frozenset({b"http", b"https"})
_CONNECT = b"CONNECT"


def read_h2_head(fields: Iterable[HeaderLine], *, has_ended: bool) -> RequestHead:
    """Check a request's decoded fields and return its head.

    Args:
        fields: as they came, pseudo-header fields included.
        has_ended: whether no body follows.

    Raises:
        FramingError: 400 for what makes it malformed, else the status that answers it.
    """
    pseudo, lines = _split(fields, _REQUEST_PSEUDO)
    method = pseudo.get(b":method", b"")
    if method not in _METHODS:
        raise FramingError("missing or bad method")
    if method == _CONNECT:
        raise FramingError("method is not supported", status=405)
    path = pseudo.get(b":path", b"")
    _check_size(path, pseudo, lines)
    if _PATH.fullmatch(path) is None:
        raise FramingError("bad request target")
    if pseudo.get(b":scheme", b"").lower() not in _SCHEMES:
        raise FramingError("missing or bad scheme")
    head = read_request_head(
        method, path, _with_host(pseudo, lines), is_http_1_0=False, keep_alive=True
    )
    if b"content-length" not in head.fields:
        head.length = 0 if has_ended else None
    elif has_ended and head.length:
        raise FramingError("body is shorter than its Content-Length")
    return head


def check_trailers(fields: Iterable[HeaderLine]) -> None:
    """Check the fields behind a body, which go no further.

    Raises:
        FramingError: they make the message malformed.
    """
    pseudo, _ = _split(fields, _REQUEST_PSEUDO | _RESPONSE_PSEUDO)
    if pseudo:
        raise FramingError("pseudo-header field in trailers")


def encode_h2_head(status: int, lines: Iterable[HeaderLine]) -> list[HeaderLine]:
    """Return the field list of a response; fields that HTTP/2 does not have are left out."""
    fields: list[HeaderLine] = [(b":status", b"%d" % status)]
    fields += [line for line in lines if line[0] not in CONNECTION_SPECIFIC]
    return fields


def read_h2_response(
    fields: Iterable[HeaderLine], *, has_ended: bool, is_head_request: bool
) -> ResponseHead | None:
    """Check a response's decoded fields; return its head, None of an informational one.

    Args:
        fields: as they came, pseudo-header fields included; their size is checked apart.
        has_ended: whether no body follows.
        is_head_request: whether the response is one without a body, whatever it says.

    Raises:
        FramingError: it is malformed.
    """
    pseudo, lines = _split(fields, _RESPONSE_PSEUDO)
    word = pseudo.get(b":status", b"")
    if _STATUS.fullmatch(word) is None or word == b"101":
        raise FramingError("missing or bad status")
    status = int(word)
    framing = read_framing(0, lines)
    if status < _FIRST_FINAL:
        if has_ended:
            raise FramingError("no response behind an informational one")
        return None
    length = framing.length
    if is_head_request or status in WITHOUT_BODY:
        length = 0
    elif has_ended:
        if length:
            raise FramingError("body is shorter than its Content-Length")
        length = 0
    known = framing.fields if len(framing.fields) == len(lines) else None
    if b"te" in framing.fields:
        lines, known = [line for line in lines if line[0] not in HOP_BY_HOP], None
    return ResponseHead(status, lines, length, known)


def head_bytes(fields: Iterable[HeaderLine]) -> int:
    """Return what a field list counts for, as limits do."""
    return sum(len(name) + len(value) + FIELD_OVERHEAD_BYTES for name, value in fields)


def check_head_bytes(size: int) -> None:
    """Check what the head of a response, informational ones before it included, counts for.

    Raises:
        FramingError: it is too long.
    """
    if size > MAX_HEAD_BYTES:
        raise FramingError("response head is too long")


def encode_h2_request(
    method: bytes,
    url: tuple[bytes, bytes, bytes],
    lines: Iterable[HeaderLine],
    body_bytes: int | None,
) -> list[HeaderLine]:
    """Return the field list of a request; fields that HTTP/2 does not have are left out.

    Args:
        method: as the server is to see it.
        url: scheme, authority, and path with query.
        lines: neither Host nor Content-Length; names in lower case.
        body_bytes: length of the body that follows, None where that is not known; as to when it is
            said see `encode_request`.
    """
    scheme, authority, target = url
    fields: list[HeaderLine] = [
        (b":method", method),
        (b":scheme", scheme),
        (b":authority", authority),
        (b":path", target),
    ]
    fields += [line for line in lines if line[0] not in HOP_BY_HOP]
    if body_bytes is not None and (body_bytes or method in METHODS_WITH_BODY):
        fields.append((b"content-length", b"%d" % body_bytes))
    return fields


def _split(
    fields: Iterable[HeaderLine], allowed: frozenset[bytes]
) -> tuple[dict[bytes, bytes], list[HeaderLine]]:
    """Return pseudo-header fields and the others, each checked by itself; cookies as one field."""
    pseudo: dict[bytes, bytes] = {}
    lines: list[HeaderLine] = []
    cookies: list[bytes] = []
    for name, value in fields:
        if _VALUE.fullmatch(value) is None:
            raise FramingError("bad field value")
        if name[:1] == b":":
            if lines or cookies or name in pseudo or name not in allowed:
                raise FramingError("bad pseudo-header field")
            pseudo[name] = value
        elif name == b"cookie":
            cookies.append(value)
        else:
            _check_field(name, value)
            lines.append((name, value))
    if cookies:
        # Split for the compression's sake; HTTP/1.1 has one. Source: RFC 9113 section 8.2.3.
        lines.append((b"cookie", b"; ".join(cookies)))
    return pseudo, lines


def _check_field(name: bytes, value: bytes) -> None:
    if _NAME.fullmatch(name) is None:
        raise FramingError("bad field name")
    if name in CONNECTION_SPECIFIC:
        raise FramingError("connection-specific field")
    if name == b"te" and value.lower() != b"trailers":
        raise FramingError("TE is not exactly trailers")


def _check_size(path: bytes, pseudo: dict[bytes, bytes], lines: list[HeaderLine]) -> None:
    size = head_bytes(lines) + sum(map(len, pseudo.values()))
    if size <= MAX_HEAD_BYTES:
        return
    if len(path) > MAX_HEAD_BYTES // 2:
        raise FramingError("request target is too long", status=414)
    raise FramingError("header fields are too long", status=431)


def _with_host(pseudo: dict[bytes, bytes], lines: list[HeaderLine]) -> list[HeaderLine]:
    """Return `lines` with the authority as their Host field, which must not say otherwise."""
    authority = pseudo.get(b":authority")
    if authority is None:
        return lines
    hosts = [value for name, value in lines if name == b"host"]
    if not hosts:
        return [(b"host", authority), *lines]
    if hosts != [authority]:
        raise FramingError("Host is not the authority")
    return lines
