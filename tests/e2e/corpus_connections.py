"""Framing corpus, part two: several messages on one connection, protocol changes, early ends."""

from tests.e2e.corpus import CHUNKED, HELLO, SMUGGLED, SMUGGLED_LENGTH, Case, Got, Saw, get, message

_HELLO = message(HELLO, body=b"hello")
_SAW_HELLO = Saw(b"POST", b"/x", b"hello")
_SAW_GET = Saw(b"GET", b"/x")
_LAST = b"0\r\n\r\n"
_BAD = Got(400)
_NO_UPGRADE: dict[bytes, list[bytes]] = {
    b"upgrade": [],
    b"connection": [],
    b"http2-settings": [],
}
_H2C = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
_WEBSOCKET = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


PIPELINED: dict[str, Case] = {
    "two requests": Case(
        (_HELLO + get(b"/y"),), (Got(200), Got(200)), (_SAW_HELLO, Saw(b"GET", b"/y"))
    ),
    "two requests with chunks": Case(
        (message(CHUNKED, body=b"5\r\nhello\r\n" + _LAST) * 2,),
        (Got(200), Got(200)),
        (_SAW_HELLO, _SAW_HELLO),
    ),
    "request behind trailers": Case(
        (message(CHUNKED, body=b"5\r\nhello\r\n0\r\nX: 1\r\n\r\n") + get(b"/y"),),
        (Got(200), Got(200)),
        (_SAW_HELLO, Saw(b"GET", b"/y")),
    ),
    "request behind an empty line": Case(
        (_HELLO + b"\r\n" + get(b"/y"),), (Got(200), Got(200)), (_SAW_HELLO, Saw(b"GET", b"/y"))
    ),
    "fifty requests": Case((get() * 50,), (Got(200),) * 50, (_SAW_GET,) * 50),
    "second request in pieces": Case(
        (_HELLO + b"GE", b"T /y HTTP/1.1\r\nHo", b"st: h\r\n\r\n"),
        (Got(200), Got(200)),
        (_SAW_HELLO, Saw(b"GET", b"/y")),
    ),
    "request, then garbage": Case(
        (_HELLO + b"garbage\r\n\r\n",), (Got(200), _BAD), (_SAW_HELLO,), is_open=False
    ),
    "body longer than declared": Case(
        (message(HELLO, body=b"hello, and more"),), (Got(200), _BAD), (_SAW_HELLO,), is_open=False
    ),
    "request, then both framings": Case(
        (_HELLO + message(HELLO, CHUNKED, body=_LAST + SMUGGLED),),
        (Got(200), _BAD),
        (_SAW_HELLO,),
        is_open=False,
    ),
    "request, then a target too long": Case(
        (_HELLO + get(b"/" + b"a" * 62_000),),
        (Got(200), Got(414)),
        (_SAW_HELLO,),
        is_open=False,
    ),
    "request, then broken chunks": Case(
        (_HELLO + message(CHUNKED, body=b"5\r\nhello!\r\n" + _LAST + SMUGGLED),),
        (Got(200), _BAD),
        (_SAW_HELLO,),
        is_open=False,
    ),
    "request, then too much extension": Case(
        (_HELLO + message(CHUNKED, body=b"1;" + b"a" * 5000 + b"\r\nx\r\n" + _LAST) + SMUGGLED,),
        (Got(200), _BAD),
        (_SAW_HELLO,),
        is_open=False,
    ),
    "bad request, then a good one": Case(
        (message(b"Content-Length: +5", body=b"hello") + _HELLO,), (_BAD,), is_open=False
    ),
    "request that closes, then another": Case(
        (message(b"Connection: close", HELLO, body=b"hello") + SMUGGLED,),
        (Got(200),),
        (_SAW_HELLO,),
        is_open=False,
    ),
    "request that closes among options": Case(
        (get(b"/x", b"Connection: x-a, Close") + SMUGGLED,), (Got(200),), (_SAW_GET,), is_open=False
    ),
    "CONNECT, then another": Case(
        (b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n" + SMUGGLED,),
        (Got(405),),
        is_open=False,
    ),
    "request, then the preface of HTTP/2": Case(
        (_HELLO + _PREFACE,), (Got(200), Got(400)), (_SAW_HELLO,), is_open=False
    ),
    "expectation refused, then a body like a request": Case(
        (message(b"Expect: 200-ok", SMUGGLED_LENGTH, body=SMUGGLED),),
        (Got(417),),
        is_open=False,
    ),
    "chat refused, then another": Case(
        (message(HELLO, body=b"hello", start=b"POST /v1/chat/completions HTTP/1.1") + get(),),
        (Got(400, "invalid_json"), Got(200)),
        (_SAW_GET,),
    ),
    "answered by the Router with a body like a request": Case(
        (message(SMUGGLED_LENGTH, body=SMUGGLED, start=b"POST /v1/responses HTTP/1.1"),),
        (Got(404, "not_found"),),
    ),
    "probe with a body like a request": Case(
        (message(SMUGGLED_LENGTH, body=SMUGGLED, start=b"GET /health HTTP/1.1"),),
        (Got(200),),
        is_open=False,
    ),
    "method refused, then another": Case(
        (message(HELLO, body=b"hello", start=b"PUT /v1/chat/completions HTTP/1.1") + get(),),
        (Got(405, "method_not_allowed"), Got(200)),
        (_SAW_GET,),
    ),
}

OLD_VERSIONS: dict[str, Case] = {
    "HTTP/1.0": Case((b"GET /x HTTP/1.0\r\n\r\n",), saw=(_SAW_GET,), is_open=False),
    "HTTP/1.0 with body": Case(
        (message(HELLO, body=b"hello", start=b"POST /x HTTP/1.0"),),
        saw=(_SAW_HELLO,),
        is_open=False,
    ),
    "HTTP/1.0 that asks to stay open": Case(
        (message(b"Connection: keep-alive", start=b"GET /x HTTP/1.0"),),
        saw=(_SAW_GET,),
        is_open=False,
    ),
    "HTTP/1.0, then another": Case(
        (message(start=b"GET /x HTTP/1.0") + SMUGGLED,), saw=(_SAW_GET,), is_open=False
    ),
    "HTTP/1.0 with expectation": Case(
        (message(b"Expect: 100-continue", HELLO, body=b"hello", start=b"POST /x HTTP/1.0"),),
        saw=(_SAW_HELLO,),
        is_open=False,
    ),
    "HTTP/1.0 with chunks, then another": Case(
        (message(CHUNKED, body=_LAST + SMUGGLED, start=b"POST /x HTTP/1.0"),),
        (_BAD,),
        is_open=False,
    ),
}

UPGRADES: dict[str, Case] = {
    "to h2c": Case((get(b"/x", *_H2C),), saw=(Saw(b"GET", b"/x", b"", _NO_UPGRADE),)),
    "to h2c with length": Case(
        (message(*_H2C, HELLO, body=b"hello"),), saw=(Saw(b"POST", b"/x", b"hello", _NO_UPGRADE),)
    ),
    "to h2c with length in pieces": Case(
        (message(*_H2C, HELLO), b"he", b"llo"), saw=(Saw(b"POST", b"/x", b"hello", _NO_UPGRADE),)
    ),
    "to h2c with chunks": Case(
        (message(*_H2C, CHUNKED, body=b"5\r\nhello\r\n" + _LAST),),
        saw=(Saw(b"POST", b"/x", b"hello", _NO_UPGRADE),),
    ),
    "to h2c with chunks in pieces": Case(
        (message(*_H2C, CHUNKED), b"5\r\nhe", b"llo\r\n0", b"\r\n\r\n"),
        saw=(Saw(b"POST", b"/x", b"hello", _NO_UPGRADE),),
    ),
    "to h2c, then the preface": Case(
        (get(b"/x", *_H2C) + _PREFACE,), (Got(200), Got(400)), (_SAW_GET,), is_open=False
    ),
    "to h2c, then another": Case(
        (get(b"/x", *_H2C) + get(b"/y"),), (Got(200), Got(200)), (_SAW_GET, Saw(b"GET", b"/y"))
    ),
    "to h2c with body, then another": Case(
        (message(*_H2C, HELLO, body=b"hello") + get(b"/y"),),
        (Got(200), Got(200)),
        (_SAW_HELLO, Saw(b"GET", b"/y")),
    ),
    "to h2c with chunks, then another": Case(
        (message(*_H2C, CHUNKED, body=b"5\r\nhello\r\n" + _LAST) + get(b"/y"),),
        (Got(200), Got(200)),
        (_SAW_HELLO, Saw(b"GET", b"/y")),
    ),
    "to h2c twice, with a body like a request": Case(
        (message(*_H2C, SMUGGLED_LENGTH, body=SMUGGLED) * 2,),
        (Got(200), Got(200)),
        (Saw(b"POST", b"/x", SMUGGLED),) * 2,
    ),
    "to h2c with both framings": Case(
        (message(*_H2C, HELLO, CHUNKED, body=_LAST + SMUGGLED),), (_BAD,), is_open=False
    ),
    "to h2c with broken chunks": Case(
        (message(*_H2C, CHUNKED, body=b"5\r\nhello!" + _LAST + SMUGGLED),), (_BAD,), is_open=False
    ),
    "to h2c with too much extension": Case(
        (message(*_H2C, CHUNKED, body=b"1;" + b"a" * 5000 + b"\r\nx\r\n" + _LAST),),
        (_BAD,),
        is_open=False,
    ),
    "to websocket": Case(
        (get(b"/x", *_WEBSOCKET),), saw=(Saw(b"GET", b"/x", b"", {b"upgrade": []}),)
    ),
    "to websocket, then frames": Case(
        (get(b"/x", *_WEBSOCKET), b"\x81\x85abcd"), (Got(200), _BAD), (_SAW_GET,), is_open=False
    ),
    "to websocket, then another": Case(
        (get(b"/x", *_WEBSOCKET) + get(b"/y"),),
        (Got(200), Got(200)),
        (_SAW_GET, Saw(b"GET", b"/y")),
    ),
}

ENDS: dict[str, Case] = {
    "nothing": Case((b"",), (), leaves=True),
    "empty line": Case((b"\r\n",), (), leaves=True),
    "in the request line": Case((b"POST /x HT",), (), leaves=True),
    "in a field": Case((message(HELLO)[:-6],), (), leaves=True),
    "before the empty line": Case((get()[:-2],), (), leaves=True),
    "before the body": Case((message(HELLO),), (), leaves=True),
    "in the body": Case((message(HELLO, body=b"hell"),), (), leaves=True),
    "in a chunk size": Case((message(CHUNKED, body=b"5"),), (), leaves=True),
    "in a chunk": Case((message(CHUNKED, body=b"5\r\nhell"),), (), leaves=True),
    "before the last chunk": Case((message(CHUNKED, body=b"5\r\nhello\r\n"),), (), leaves=True),
    "in the last chunk": Case((message(CHUNKED, body=b"5\r\nhello\r\n0\r\n"),), (), leaves=True),
    "in a trailer": Case((message(CHUNKED, body=b"0\r\nX: 1\r\n"),), (), leaves=True),
    "while waiting for 100": Case(
        (message(b"Expect: 100-continue", HELLO),), (Got(100),), leaves=True
    ),
}
