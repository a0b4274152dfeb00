"""Requests that must be refused, each with its status."""

from vsr.http.framing import MAX_FIELDS
from vsr.http.h1_server import LAST_CHUNK


def post(*lines: bytes, body: bytes = b"", start: bytes = b"POST /x HTTP/1.1") -> bytes:
    """Return a request with a Host and the given lines."""
    return b"\r\n".join([start, b"Host: h", *lines, b"", body])


def chunked(body: bytes) -> bytes:
    """Return a request with a chunked body, given as it is on the wire."""
    return post(b"Transfer-Encoding: chunked", body=body)


REFUSED_HEADS: dict[str, tuple[bytes, int]] = {
    "content-length, then transfer-encoding": (
        post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=LAST_CHUNK),
        400,
    ),
    "transfer-encoding, then content-length": (
        post(b"Transfer-Encoding: chunked", b"Content-Length: 5", body=LAST_CHUNK),
        400,
    ),
    "content-length differs": (
        post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello"),
        400,
    ),
    "content-length repeated": (
        post(b"Content-Length: 5", b"Content-Length: 5", body=b"hello"),
        400,
    ),
    "content-length with comma": (post(b"Content-Length: 5, 5", body=b"hello"), 400),
    "content-length with plus": (post(b"Content-Length: +5", body=b"hello"), 400),
    "content-length negative": (post(b"Content-Length: -5", body=b"hello"), 400),
    "content-length hexadecimal": (post(b"Content-Length: 0x5", body=b"hello"), 400),
    "content-length with letter": (post(b"Content-Length: 5a", body=b"hello"), 400),
    "content-length empty": (post(b"Content-Length:"), 400),
    "content-length with space inside": (post(b"Content-Length: 5 5", body=b"hello"), 400),
    "content-length beyond 64 bits": (post(b"Content-Length: 99999999999999999999"), 400),
    "content-length beyond 18 digits": (post(b"Content-Length: 1000000000000000000"), 400),
    "content-length of other digits": (post("Content-Length: \u0665".encode(), body=b"hello"), 400),
    "transfer-encoding gzip": (post(b"Transfer-Encoding: gzip"), 400),
    "transfer-encoding gzip, chunked": (
        post(b"Transfer-Encoding: gzip, chunked", body=LAST_CHUNK),
        400,
    ),
    "transfer-encoding chunked, gzip": (post(b"Transfer-Encoding: chunked, gzip"), 400),
    "transfer-encoding identity": (post(b"Transfer-Encoding: identity"), 400),
    "transfer-encoding chunked twice": (
        post(b"Transfer-Encoding: chunked, chunked", body=LAST_CHUNK),
        400,
    ),
    "transfer-encoding on two lines": (
        post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=LAST_CHUNK),
        400,
    ),
    "transfer-encoding with parameter": (post(b"Transfer-Encoding: chunked;q=1"), 400),
    "transfer-encoding misspelt": (post(b"Transfer-Encoding: xchunked"), 400),
    "transfer-encoding with vertical tab": (post(b"Transfer-Encoding: \x0bchunked"), 400),
    "transfer-encoding empty": (post(b"Transfer-Encoding:"), 400),
    "transfer-encoding on HTTP/1.0": (
        post(b"Transfer-Encoding: chunked", body=LAST_CHUNK, start=b"POST / HTTP/1.0"),
        400,
    ),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "no host with absolute target": (b"GET http://h/ HTTP/1.1\r\n\r\n", 400),
    "two hosts": (post(b"Host: h"), 400),
    "host with path": (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    "host with user": (b"GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", 400),
    "host with space": (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    "host with list": (b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
    "host with bad port": (b"GET / HTTP/1.1\r\nHost: h:x\r\n\r\n", 400),
    "host empty": (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "two hosts on HTTP/1.0": (b"GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n", 400),
    "space before colon": (post(b"X : 1"), 400),
    "tab before colon": (post(b"X\t: 1"), 400),
    "space before content-length's colon": (post(b"Content-Length : 5", body=b"hello"), 400),
    "folded line": (post(b"X: 1", b" 2"), 400),
    "folded line with tab": (post(b"X: 1", b"\t2"), 400),
    "space before the first field": (b"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400),
    "bare CR in value": (post(b"X: 1\r2"), 400),
    "bare CR in name": (post(b"X\rY: 1"), 400),
    "bare CR in target": (post(start=b"GET /\ra HTTP/1.1"), 400),
    "bare LF behind field": (b"GET / HTTP/1.1\r\nHost: h\nX: 1\r\n\r\n", 400),
    "bare LF behind request line": (b"GET / HTTP/1.1\nHost: h\r\n\r\n", 400),
    "bare LF everywhere": (b"GET / HTTP/1.1\nHost: h\n\n", 400),
    "bare LF at the end of the head": (b"GET / HTTP/1.1\r\nHost: h\r\n\n", 400),
    "NUL in value": (post(b"X: 1\x002"), 400),
    "NUL in name": (post(b"X\x00: 1"), 400),
    "NUL in target": (post(start=b"GET /\x00 HTTP/1.1"), 400),
    "control byte in value": (post(b"X: 1\x012"), 400),
    "escape in value": (post(b"X: \x1b[0m"), 400),
    "DEL in value": (post(b"X: 1\x7f"), 400),
    "control byte in name": (post(b"X\x01: 1"), 400),
    "other byte in name": (post(b"X\xe9: 1"), 400),
    "control byte in target": (post(start=b"GET /\x01 HTTP/1.1"), 400),
    "tab in target": (post(start=b"GET /\ta HTTP/1.1"), 400),
    "form feed in target": (post(start=b"GET /\x0c HTTP/1.1"), 400),
    "DEL in target": (post(start=b"GET /\x7f HTTP/1.1"), 400),
    "space in target": (post(start=b"GET /a b HTTP/1.1"), 400),
    "fragment in target": (post(start=b"GET /a#b HTTP/1.1"), 400),
    "empty name": (post(b": 1"), 400),
    "no colon": (post(b"X"), 400),
    "space behind the version": (post(start=b"GET / HTTP/1.1 "), 400),
    "unknown method": (post(start=b"BREW / HTTP/1.1"), 400),
    "lower-case method": (post(start=b"get / HTTP/1.1"), 400),
    "relative target": (post(start=b"GET x HTTP/1.1"), 400),
    "authority target": (post(start=b"GET h:80 HTTP/1.1"), 400),
    "absolute target with user": (post(start=b"GET http://u@h/ HTTP/1.1"), 400),
    "absolute target of other scheme": (post(start=b"GET ftp://h/ HTTP/1.1"), 400),
    "absolute target with fragment": (post(start=b"GET http://h/a#b HTTP/1.1"), 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 505),
    "HTTP/2.0": (post(start=b"GET / HTTP/2.0"), 505),
    "HTTP/1.2": (post(start=b"GET / HTTP/1.2"), 400),
    "not HTTP": (b"SSH-2.0-OpenSSH_9\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "almost the HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 400),
    "CONNECT": (b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 405),
    "TRACE": (post(start=b"TRACE / HTTP/1.1"), 405),
    "unknown expectation": (post(b"Expect: 200-ok", b"Content-Length: 1", body=b"x"), 417),
    "100 fields and one more": (post(*[b"X: a"] * MAX_FIELDS), 431),
}


REFUSED_BODIES: dict[str, bytes] = {
    "negative size": b"-5\r\nhello\r\n0\r\n\r\n",
    "signed size": b"+5\r\nhello\r\n0\r\n\r\n",
    "prefixed size": b"0x5\r\nhello\r\n0\r\n\r\n",
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "space before size": b" 5\r\nhello\r\n0\r\n\r\n",
    "space behind size": b"5 \r\nhello\r\n0\r\n\r\n",
    "tab behind size": b"5\t\r\nhello\r\n0\r\n\r\n",
    "letter behind size": b"5g\r\nhello\r\n0\r\n\r\n",
    "size beyond 64 bits": b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "bare LF behind size": b"5\nhello\r\n0\r\n\r\n",
    "bare CR behind size": b"5\rhello\r\n0\r\n\r\n",
    "bare LF behind data": b"5\r\nhello\n0\r\n\r\n",
    "more data than size": b"5\r\nhello!\r\n0\r\n\r\n",
    "no line end behind data": b"5\r\nhello0\r\n\r\n",
    "bare LF in extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "bare CR in extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "NUL in extension": b"5;a\x00\r\nhello\r\n0\r\n\r\n",
    "space before extension": b"5 ;a\r\nhello\r\n0\r\n\r\n",
    "bare LF behind the last chunk": b"0\n\n",
    "length in trailer": b"0\r\nContent-Length: 3\r\n\r\nabc",
    "coding in trailer": b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "NUL in trailer": b"0\r\nX: 1\x00\r\n\r\n",
    "space before a trailer's colon": b"0\r\nX : 1\r\n\r\n",
    "folded trailer": b"0\r\nX: 1\r\n 2\r\n\r\n",
}


REFUSED = REFUSED_HEADS | {
    f"chunked: {name}": (chunked(body), 400) for name, body in REFUSED_BODIES.items()
}
