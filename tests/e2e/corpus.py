"""Framing corpus, part one: single messages that are sound, and what a backend gets of them.

What must be refused stands in `tests/http/refused_requests.py`; connections that carry more than
one message, or end early, stand in `tests/e2e/corpus_connections.py`.
"""

import attrs

from vsr.http.framing import MAX_FIELDS, MAX_HEAD_BYTES

HELLO = b"Content-Length: 5"
CHUNKED = b"Transfer-Encoding: chunked"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
"""What an attacker hides: if any backend ever sees this path, framing has failed."""
SMUGGLED_LENGTH = b"Content-Length: %d" % len(SMUGGLED)


@attrs.frozen
class Got:
    """What the client gets: one response."""

    status: int
    code: str | None = None
    """Of the error body; None where the framing is at fault, which the status says."""


@attrs.frozen
class Saw:
    """One request as the backend sees it."""

    method: bytes
    target: bytes
    body: bytes = b""
    fields: dict[bytes, list[bytes]] = attrs.field(factory=dict)
    """Values, in order, of those fields that the case is about; none for a dropped one."""


@attrs.frozen
class Case:
    """Bytes of one connection, in pieces that arrive apart, and what comes of them."""

    pieces: tuple[bytes, ...]
    got: tuple[Got, ...] = (Got(200),)
    saw: tuple[Saw, ...] = ()
    is_open: bool = True
    """Whether the connection can carry another request afterwards."""
    leaves: bool = False
    """Whether the client closes behind the last piece, without waiting for an answer."""


def message(*lines: bytes, body: bytes = b"", start: bytes = b"POST /x HTTP/1.1") -> bytes:
    """Return a request with a Host and the given lines."""
    return b"\r\n".join([start, b"Host: h", *lines, b"", body])


def get(target: bytes = b"/x", *lines: bytes) -> bytes:
    """Return a GET request."""
    return message(*lines, start=b"GET %b HTTP/1.1" % target)


def _passes(
    request: bytes,
    method: bytes = b"POST",
    target: bytes = b"/x",
    body: bytes = b"hello",
    **fields: list[bytes],
) -> Case:
    """Return the case of a request that reaches the backend; `a_b` names the field `a-b`."""
    named = {name.replace("_", "-").encode(): values for name, values in fields.items()}
    return Case((request,), saw=(Saw(method, target, body, named),))


def _chunks(body: bytes, *lines: bytes) -> bytes:
    return message(CHUNKED, *lines, body=body)


def _head_of(size: int) -> bytes:
    """Return a GET request whose head has `size` bytes."""
    empty = len(get(b"/x", b"X: "))
    return get(b"/x", b"X: " + b"a" * (size - empty))


BODIES: dict[str, Case] = {
    "no body": _passes(message(), body=b""),
    "content-length 0": _passes(message(b"Content-Length: 0"), body=b""),
    "content-length": _passes(message(HELLO, body=b"hello")),
    "content-length with leading zeros": _passes(message(b"Content-Length: 0005", body=b"hello")),
    "content-length in tabs": _passes(message(b"Content-Length:\t5\t ", body=b"hello")),
    "content-length without space": _passes(message(b"content-length:5", body=b"hello")),
    "body is a request": _passes(message(SMUGGLED_LENGTH, body=SMUGGLED), body=SMUGGLED),
    "body has NUL and bare line ends": _passes(
        message(b"Content-Length: 6", body=b"\0\r\n\n\r\xff"), body=b"\0\r\n\n\r\xff"
    ),
    "chunked": _passes(
        _chunks(b"5\r\nhello\r\n0\r\n\r\n"), content_length=[b"5"], transfer_encoding=[]
    ),
    "chunked, upper case": _passes(
        message(b"Transfer-Encoding: CHUNKED", body=b"5\r\nhello\r\n0\r\n\r\n"),
        transfer_encoding=[],
    ),
    "chunked, none": _passes(_chunks(b"0\r\n\r\n"), body=b"", content_length=[b"0"]),
    "chunked, several": _passes(_chunks(b"2\r\nhe\r\n1\r\nl\r\n2\r\nlo\r\n0\r\n\r\n")),
    "chunked, hexadecimal": _passes(_chunks(b"A\r\n0123456789\r\n0\r\n\r\n"), body=b"0123456789"),
    "chunked, leading zeros": _passes(_chunks(b"0005\r\nhello\r\n000\r\n\r\n")),
    "chunk holds the last chunk": _passes(
        _chunks(b"28\r\n0\r\n\r\n" + SMUGGLED + b"\r\n0\r\n\r\n"), body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunk extension": _passes(_chunks(b"5;a=b;c\r\nhello\r\n0;d\r\n\r\n")),
    "chunk extension, quoted": _passes(_chunks(b'5;a="b;c"\r\nhello\r\n0\r\n\r\n')),
    "chunk extensions up to the limit": _passes(
        _chunks(b"5;a=" + b"b" * 4000 + b"\r\nhello\r\n0\r\n\r\n")
    ),
    "trailer": _passes(
        _chunks(b"5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n", b"Trailer: X-Late"),
        x_late=[],
        trailer=[],
    ),
    "trailer named like a credential": _passes(
        _chunks(b"5\r\nhello\r\n0\r\nAuthorization: Bearer x\r\nHost: evil\r\n\r\n"),
        authorization=[],
    ),
    "GET with body": _passes(
        message(HELLO, body=b"hello", start=b"GET /x HTTP/1.1"), method=b"GET"
    ),
    "DELETE with chunks": _passes(
        message(CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n", start=b"DELETE /x HTTP/1.1"),
        method=b"DELETE",
    ),
    "connection nominates content-length": _passes(
        message(b"Connection: content-length", HELLO, body=b"hello"), content_length=[b"5"]
    ),
    "connection nominates transfer-encoding": _passes(
        _chunks(b"5\r\nhello\r\n0\r\n\r\n", b"Connection: transfer-encoding"),
        content_length=[b"5"],
        transfer_encoding=[],
    ),
    "expectation in any case": Case(
        (message(b"Expect: 100-Continue", HELLO), b"hello"),
        got=(Got(100), Got(200)),
        saw=(Saw(b"POST", b"/x", b"hello", {b"expect": []}),),
    ),
    "expectation with chunks": Case(
        (message(b"Expect: 100-continue", CHUNKED), b"5\r\nhello\r\n", b"0\r\n\r\n"),
        got=(Got(100), Got(200)),
        saw=(Saw(b"POST", b"/x", b"hello", {b"expect": []}),),
    ),
    "expectation with the body at once": _passes(
        message(b"Expect: 100-continue", HELLO, body=b"hello"), expect=[]
    ),
    "expectation without a body": _passes(message(b"Expect: 100-continue"), body=b"", expect=[]),
}

HEADS: dict[str, Case] = {
    "empty line in front": _passes(b"\r\n" + get(), b"GET", body=b""),
    "empty lines in front": _passes(b"\r\n\r\n\r\n" + get(), b"GET", body=b""),
    "absolute target": _passes(get(b"http://other:81/x?y=1"), b"GET", b"/x?y=1", b""),
    "absolute target without path": _passes(get(b"http://other"), b"GET", b"/", b""),
    "absolute target with query alone": _passes(get(b"http://other?y"), b"GET", b"/?y", b""),
    "absolute target, upper case": _passes(get(b"HTTP://OTHER/x"), b"GET", b"/x", b""),
    "absolute target of https": _passes(get(b"https://other/x"), b"GET", b"/x", b""),
    "target stays as sent": _passes(
        get(b"/a%2Fb/../c//d;e?f=%00&g=/../"), b"GET", b"/a%2Fb/../c//d;e?f=%00&g=/../", b""
    ),
    "two slashes": _passes(get(b"//evil/x"), b"GET", b"//evil/x", b""),
    "query that is a URL": _passes(get(b"/x?http://evil/"), b"GET", b"/x?http://evil/", b""),
    "long target": _passes(get(b"/" + b"a" * 30_000), b"GET", b"/" + b"a" * 30_000, b""),
    "host with port": _passes(b"GET /x HTTP/1.1\r\nHOST: h:80\r\n\r\n", b"GET", body=b""),
    "host of IPv6": _passes(b"GET /x HTTP/1.1\r\nhost:[::1]:80\r\n\r\n", b"GET", body=b""),
    "many fields": _passes(get(b"/x", *[b"X: a"] * 90), b"GET", body=b"", x=[b"a"] * 90),
    "long head": _passes(_head_of(MAX_HEAD_BYTES - 500), b"GET", body=b""),
    "value empty": _passes(get(b"/x", b"X:"), b"GET", body=b"", x=[b""]),
    "value not ASCII": _passes(
        get(b"/x", b"X: \xc3\xa9\xff"), b"GET", body=b"", x=[b"\xc3\xa9\xff"]
    ),
    "value with tab inside": _passes(get(b"/x", b"X: a\tb"), b"GET", body=b"", x=[b"a\tb"]),
    "field twice": _passes(get(b"/x", b"X: 1", b"x: 2"), b"GET", body=b"", x=[b"1", b"2"]),
    "field that only looks like framing": _passes(
        message(b"Content_Length: 3", b"X-Transfer-Encoding: chunked", HELLO, body=b"hello"),
        content_length=[b"5"],
    ),
    "connection nominates fields": _passes(
        get(
            b"/x", b"Connection: X-Gone, x-too ,close-not", b"X-Gone: 1", b"X-Too: 2", b"X-Kept: 3"
        ),
        b"GET",
        body=b"",
        connection=[],
        x_gone=[],
        x_too=[],
        x_kept=[b"3"],
    ),
    "connection nominates host": _passes(get(b"/x", b"Connection: host"), b"GET", body=b""),
    "fields of this hop": _passes(
        get(b"/x", b"Keep-Alive: 5", b"Proxy-Connection: keep-alive", b"TE: trailers"),
        b"GET",
        body=b"",
        keep_alive=[],
        proxy_connection=[],
        te=[],
    ),
    "OPTIONS": _passes(message(start=b"OPTIONS /x HTTP/1.1"), b"OPTIONS", body=b""),
    "PUT": _passes(message(HELLO, body=b"hello", start=b"PUT /x HTTP/1.1"), b"PUT"),
    "PATCH": _passes(message(HELLO, body=b"hello", start=b"PATCH /x HTTP/1.1"), b"PATCH"),
}

TOO_LONG: dict[str, Case] = {
    # Well within the limits of a head, but not with the fields that the Router adds.
    "as many fields as may be": Case(
        (get(b"/x", *[b"X: a"] * (MAX_FIELDS - 1)),), (Got(500, "routing_error"),)
    ),
    "head as long as may be": Case((_head_of(MAX_HEAD_BYTES),), (Got(500, "routing_error"),)),
    "target too long": Case((get(b"/" + b"a" * MAX_HEAD_BYTES),), (Got(414),), is_open=False),
    "target too long, unfinished": Case(
        (b"GET /" + b"a" * (MAX_HEAD_BYTES + 1),), (Got(414),), is_open=False
    ),
    "head too long": Case((_head_of(MAX_HEAD_BYTES + 1),), (Got(431),), is_open=False),
    "head too long, unfinished": Case(
        (get()[:-2] + b"X: " + b"a" * MAX_HEAD_BYTES,), (Got(431),), is_open=False
    ),
    "head too long, of white space": Case(
        (get(b"/x", b"X:" + b" " * MAX_HEAD_BYTES + b"a"),),
        (Got(431),),
        is_open=False,
    ),
    "head too long, of empty lines": Case(
        (b"\r\n" * (MAX_HEAD_BYTES // 2) + get(),), (Got(431),), is_open=False
    ),
    "chunk extension too long": Case(
        (_chunks(b"5;a=" + b"b" * 5000 + b"\r\nhello\r\n0\r\n\r\n"),),
        (Got(400),),
        is_open=False,
    ),
    "chunk extensions too long together": Case(
        (_chunks((b"1;" + b"a" * 98 + b"\r\nx\r\n") * 60 + b"0\r\n\r\n"),),
        (Got(400),),
        is_open=False,
    ),
    "trailers too long": Case(
        (_chunks(b"0\r\n" + b"X: 1234567890\r\n" * 400 + b"\r\n"),),
        (Got(400),),
        is_open=False,
    ),
}
