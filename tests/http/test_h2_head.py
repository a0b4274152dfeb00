"""Heads of HTTP/2 requests: held to what HTTP/1.1 is held to."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.headers import HeaderLine
from vsr.http.framing import MAX_FIELDS, MAX_HEAD_BYTES, FramingError, RequestHead
from vsr.http.h1_server import ServerConnection
from vsr.http.h2_head import check_trailers, encode_h2_head, read_h2_head

START: list[HeaderLine] = [
    (b":method", b"POST"),
    (b":scheme", b"https"),
    (b":authority", b"h"),
    (b":path", b"/x?y"),
]


def start(**pseudo: bytes | None) -> list[HeaderLine]:
    """Return the pseudo-header fields of a request, some of them changed, None to leave it out."""
    fields = {name.decode()[1:]: value for name, value in START} | pseudo
    return [(b":" + name.encode(), value) for name, value in fields.items() if value is not None]


REFUSED: dict[str, tuple[list[HeaderLine], int]] = {
    "no fields": ([], 400),
    "no method": (start(method=None), 400),
    "no scheme": (start(scheme=None), 400),
    "no path": (start(path=None), 400),
    "no authority": (start(authority=None), 400),
    "empty method": (start(method=b""), 400),
    "unknown method": (start(method=b"FOO"), 400),
    "method in lower case": (start(method=b"get"), 400),
    "method of the preface": (start(method=b"PRI"), 400),
    "trace": (start(method=b"TRACE"), 405),
    "connect": (start(method=b"CONNECT", scheme=None, path=None), 405),
    "extended connect": ([*start(method=b"CONNECT"), (b":protocol", b"websocket")], 400),
    "other scheme": (start(scheme=b"ftp"), 400),
    "empty path": (start(path=b""), 400),
    "path without slash": (start(path=b"x"), 400),
    "asterisk": (start(method=b"OPTIONS", path=b"*"), 400),
    "absolute path": (start(path=b"http://h/"), 400),
    "fragment": (start(path=b"/x#y"), 400),
    "space in path": (start(path=b"/x y"), 400),
    "line end in path": (start(path=b"/x\r\nY: z"), 400),
    "NUL in path": (start(path=b"/\x00"), 400),
    "other letters in path": (start(path="/é".encode()), 400),
    "status in a request": ([(b":status", b"200"), *START], 400),
    "unknown pseudo-header": ([*START, (b":x", b"y")], 400),
    "pseudo-header twice": ([*START, (b":path", b"/x?y")], 400),
    "pseudo-header behind fields": ([*START[:3], (b"x", b"y"), START[3]], 400),
    "pseudo-header behind a cookie": ([*START[:3], (b"cookie", b"y"), START[3]], 400),
    "authority with user": (start(authority=b"u@h"), 400),
    "authority empty": (start(authority=b""), 400),
    "authority with path": (start(authority=b"h/x"), 400),
    "host differs": ([*START, (b"host", b"other")], 400),
    "host twice": ([*START, (b"host", b"h"), (b"host", b"h")], 400),
    "host empty and no authority": ([*start(authority=None), (b"host", b"")], 400),
    "connection": ([*START, (b"connection", b"keep-alive")], 400),
    "keep-alive": ([*START, (b"keep-alive", b"timeout=5")], 400),
    "proxy-connection": ([*START, (b"proxy-connection", b"close")], 400),
    "transfer-encoding": ([*START, (b"transfer-encoding", b"chunked")], 400),
    "upgrade": ([*START, (b"upgrade", b"h2c")], 400),
    "te": ([*START, (b"te", b"gzip")], 400),
    "upper case": ([*START, (b"X-Y", b"z")], 400),
    "empty name": ([*START, (b"", b"z")], 400),
    "space in name": ([*START, (b"x y", b"z")], 400),
    "colon in name": ([*START, (b"x:y", b"z")], 400),
    "line end in name": ([*START, (b"x\n", b"z")], 400),
    "other letters in name": ([*START, ("é".encode(), b"z")], 400),
    "carriage return in value": ([*START, (b"x", b"a\rb")], 400),
    "line feed in value": ([*START, (b"x", b"a\nb")], 400),
    "NUL in value": ([*START, (b"x", b"a\x00b")], 400),
    "control byte in value": ([*START, (b"x", b"a\x01b")], 400),
    "delete in value": ([*START, (b"x", b"a\x7fb")], 400),
    "space before value": ([*START, (b"x", b" a")], 400),
    "tab behind value": ([*START, (b"x", b"a\t")], 400),
    "line end in cookie": ([*START, (b"cookie", b"a\nb")], 400),
    "content-length with plus": ([*START, (b"content-length", b"+5")], 400),
    "content-length empty": ([*START, (b"content-length", b"")], 400),
    "content-length of 19 digits": ([*START, (b"content-length", b"1" * 19)], 400),
    "content-length differs": ([*START, *[(b"content-length", n) for n in (b"5", b"6")]], 400),
    "content-length repeated": ([*START, *[(b"content-length", b"5")] * 2], 400),
    "expectation": ([*START, (b"expect", b"miracles")], 417),
    "too many fields": ([*START, *[(b"x%d" % n, b"") for n in range(MAX_FIELDS)]], 431),
    "too long fields": ([*START, (b"x", b"y" * MAX_HEAD_BYTES)], 431),
    "too long path": (start(path=b"/" + b"y" * MAX_HEAD_BYTES), 414),
}


@pytest.mark.parametrize("name", REFUSED)
def test_head_is_refused(name: str) -> None:
    """By 400 if it makes the request malformed; the reason never holds what the client sent."""
    fields, status = REFUSED[name]

    with pytest.raises(FramingError) as caught:
        read_h2_head(fields, has_ended=False)

    assert caught.value.status == status
    assert not any(value in str(caught.value).encode() for _, value in fields if len(value) > 6)


def test_head_with_a_length_and_no_body_is_refused() -> None:
    """Its body cannot come any more; a length of none is no contradiction."""
    with pytest.raises(FramingError):
        read_h2_head([*START, (b"content-length", b"5")], has_ended=True)

    assert read_h2_head([*START, (b"content-length", b"0")], has_ended=True).length == 0


def test_head_comes_out_normalised() -> None:
    """Authority as Host, cookies as one field, everything else in order and as it was."""
    fields = [
        *START,
        (b"cookie", b"a=1"),
        (b"x", b""),
        (b"te", b"trailers"),
        (b"cookie", b"b=2"),
        (b"y", "é\tz".encode()),
    ]

    head = read_h2_head(fields, has_ended=False)

    assert head.lines == [
        (b"host", b"h"),
        (b"x", b""),
        (b"te", b"trailers"),
        (b"y", "é\tz".encode()),
        (b"cookie", b"a=1; b=2"),
    ]
    assert all(type(line) is tuple for line in head.lines)
    assert (head.method, head.target, head.authority) == (b"POST", b"/x?y", b"h")
    assert (head.length, head.keep_alive, head.is_http_1_0) == (None, True, False)
    assert b"te" in head.dropped


@pytest.mark.parametrize(
    ("fields", "has_ended", "length"),
    [
        (START, True, 0),
        (START, False, None),
        ([*START, (b"content-length", b"7")], False, 7),
        ([*START, (b"content-length", b"0")], False, 0),
    ],
)
def test_length_is_what_is_known_of_the_body(
    fields: list[HeaderLine], *, has_ended: bool, length: int | None
) -> None:
    """Declared, or none because the stream has ended, or unknown."""
    assert read_h2_head(fields, has_ended=has_ended).length == length


def test_host_may_take_the_place_of_the_authority() -> None:
    """And may repeat it."""
    alone = read_h2_head([*start(authority=None), (b"host", b"h:1")], has_ended=True)
    both = read_h2_head([*START, (b"host", b"h")], has_ended=True)

    assert alone.authority == b"h:1"
    assert both.lines == [(b"host", b"h")]


TOKENS = st.text("abcxyz-_09", min_size=1, max_size=12).map(str.encode)
VALUES = st.binary(max_size=12)
PATHS = st.binary(max_size=12).map(lambda end: b"/" + end)
UNCOMMON = {b"connection", b"transfer-encoding", b"upgrade", b"te", b"expect", b"cookie", b"host"}


@attrs.frozen
class Judged:
    """What became of a head: what it says, or the status that refuses it."""

    head: RequestHead | None
    status: int = 0


def over_http1(method: bytes, path: bytes, lines: list[HeaderLine]) -> Judged:
    """Judge a request as it would come over HTTP/1.1."""
    shown = b"".join(b"%b: %b\r\n" % line for line in lines)
    http = ServerConnection()
    http.feed(b"%b %b HTTP/1.1\r\nhost: h\r\n%b\r\n" % (method, path, shown))
    event = http.next_event()
    if isinstance(event, RequestHead):
        return Judged(event)
    return Judged(None, event.status if isinstance(event, FramingError) else 0)


def over_http2(method: bytes, path: bytes, lines: list[HeaderLine]) -> Judged:
    """Judge it as it would come over HTTP/2."""
    try:
        return Judged(read_h2_head([*start(method=method, path=path), *lines], has_ended=True))
    except FramingError as fault:
        return Judged(None, fault.status)


@given(
    method=st.sampled_from([b"GET", b"POST", b"QUERY", b"FOO", b"get", b"TRACE", b"M-SEARCH"]),
    path=PATHS,
    lines=st.lists(st.tuples(TOKENS, VALUES), max_size=4),
)
def test_what_http2_accepts_http1_accepts_and_reads_alike(
    method: bytes, path: bytes, lines: list[HeaderLine]
) -> None:
    """No request comes in by the newer door that the older one refuses."""
    lines = [line for line in lines if line[0] not in UNCOMMON | {b"content-length"}]

    new, old = over_http2(method, path, lines), over_http1(method, path, lines)

    if new.head is not None:
        assert old.head is not None
        assert new.head.lines == old.head.lines
        assert new.head.target == old.head.target
        assert new.head.fields == old.head.fields
        assert (new.head.method, new.head.length) == (old.head.method, old.head.length)
    else:
        # HTTP/1.1 strips white space around values and may find another request behind a line end.
        is_plain = all(value == value.strip(b" \t\r\n") for _, value in lines)
        assert old.head is None or not is_plain or b"\n" in path + b"".join(v for _, v in lines)


@pytest.mark.parametrize(
    ("fields", "is_sound"),
    [
        ([], True),
        ([(b"grpc-status", b"0")], True),
        ([(b":path", b"/")], False),
        ([(b"connection", b"x")], False),
        ([(b"x", b"a\nb")], False),
    ],
)
def test_trailers_are_checked(fields: list[HeaderLine], *, is_sound: bool) -> None:
    """They go no further, but a malformed request is one to its end."""
    if is_sound:
        check_trailers(fields)
    else:
        with pytest.raises(FramingError):
            check_trailers(fields)


def test_response_head_has_no_connection_fields() -> None:
    """Whatever a backend said; order and repetition stay."""
    lines = [
        (b"connection", b"x"),
        (b"set-cookie", b"a"),
        (b"transfer-encoding", b"chunked"),
        (b"set-cookie", b"b"),
        (b"upgrade", b"h2c"),
    ]

    assert encode_h2_head(204, lines) == [
        (b":status", b"204"),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
    ]
