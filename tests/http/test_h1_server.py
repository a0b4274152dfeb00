"""The server side of an HTTP/1.1 connection."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.messages import (
    WireMessage,
    cut,
    cuts,
    each_byte,
    encode_chunks,
    exchange,
    requests,
    serve,
)
from tests.http.refused_requests import REFUSED, REFUSED_HEADS, chunked, post
from vsr.headers import HeaderLine
from vsr.http.framing import MAX_CHUNK_OVERHEAD_BYTES, MAX_FIELDS, MAX_HEAD_BYTES, RequestHead
from vsr.http.h1_client import ClientConnection
from vsr.http.h1_server import (
    CONTINUE,
    LAST_CHUNK,
    End,
    ServerConnection,
    encode_chunk,
    encode_head,
)

PLAIN = b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("split", ["whole", "each byte"])
def test_request_is_refused(name: str, split: str) -> None:
    """Ambiguous or broken framing gets its status and never counts as a whole request."""
    raw, status = REFUSED[name]

    seen, fault = serve([raw] if split == "whole" else each_byte(raw))

    assert fault is not None
    assert fault.status == status
    assert not any(request.is_ended for request in seen)


@pytest.mark.parametrize("name", REFUSED_HEADS)
def test_refused_head_never_comes_out(name: str) -> None:
    """Nobody sees the head of a request whose head is at fault."""
    seen, fault = serve([REFUSED_HEADS[name][0]])

    assert seen == []
    assert fault is not None


def test_fault_phrase_never_holds_what_the_client_sent() -> None:
    """Reasons are shown to clients and in logs."""
    for raw, _ in REFUSED.values():
        _, fault = serve([raw.replace(b"X", b"Canary")])

        assert fault is not None
        assert "anary" not in str(fault)


@given(
    before=st.lists(requests(), max_size=2),
    refused=st.sampled_from(sorted(REFUSED)),
    after=st.booleans(),
    places=cuts,
)
@settings(deadline=None, max_examples=120)
def test_refused_request_is_refused_however_it_is_split(
    before: list[WireMessage], refused: str, places: list[int], *, after: bool
) -> None:
    """The requests before it are served, the refused one never ends, nothing follows."""
    raw, status = REFUSED[refused]
    stream = b"".join(message.raw for message in before) + raw + (PLAIN if after else b"")

    seen, fault = serve(cut(stream, places))

    assert fault is not None
    assert fault.status == status
    assert seen[: len(before)] == [message.seen for message in before]
    assert not any(request.is_ended for request in seen[len(before) :])


@given(pipeline=st.lists(requests(), min_size=1, max_size=4), places=cuts)
@settings(deadline=None, max_examples=120)
def test_pipeline_comes_out_the_same_however_it_is_split(
    pipeline: list[WireMessage], places: list[int]
) -> None:
    """Any split of any valid pipeline gives the same requests as the unsplit one."""
    stream = b"".join(message.raw for message in pipeline)
    expected = [message.seen for message in pipeline]

    assert serve([stream]) == (expected, None)
    assert serve(cut(stream, places)) == (expected, None)


@given(pipeline=st.lists(requests(), min_size=1, max_size=3))
@settings(deadline=None, max_examples=25)
def test_pipeline_comes_out_the_same_byte_by_byte(pipeline: list[WireMessage]) -> None:
    """The finest split of all."""
    stream = b"".join(message.raw for message in pipeline)

    assert serve(each_byte(stream)) == ([message.seen for message in pipeline], None)


@given(message=requests(), end=st.integers(1, 2000))
@settings(deadline=None)
def test_cut_off_request_never_ends(message: WireMessage, end: int) -> None:
    """A client that leaves in mid-request has sent no whole request."""
    raw = message.raw[: -(1 + end % len(message.raw))]

    seen, fault = serve([raw])

    assert fault is None
    assert not any(request.is_ended for request in seen)


@pytest.mark.parametrize(
    ("target", "authority", "path"),
    [
        (b"http://o.example:80/x?y", b"o.example:80", b"/x?y"),
        (b"HTTPS://o.example/x", b"o.example", b"/x"),
        (b"http://o.example", b"o.example", b"/"),
        (b"http://o.example?q", b"o.example", b"/?q"),
        (b"http://[::1]:8080/", b"[::1]:8080", b"/"),
        (b"/x", b"h", b"/x"),
        (b"//o.example/x", b"h", b"//o.example/x"),
    ],
)
def test_target_is_normalised(target: bytes, authority: bytes, path: bytes) -> None:
    """An absolute-form target names the authority, whatever Host says."""
    connection = ServerConnection()

    connection.feed(post(start=b"GET " + target + b" HTTP/1.1"))

    head = connection.next_event()
    assert (getattr(head, "authority", None), getattr(head, "target", None)) == (authority, path)


@pytest.mark.parametrize(
    ("raw", "keep_alive"),
    [
        (PLAIN, True),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nHost: h\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
    ],
)
def test_head_tells_whether_the_connection_stays(raw: bytes, *, keep_alive: bool) -> None:
    """HTTP/1.1 stays unless told otherwise, HTTP/1.0 does not; it may also have no Host."""
    connection = ServerConnection()

    connection.feed(raw)

    assert getattr(connection.next_event(), "keep_alive", None) is keep_alive


def test_request_behind_connection_close_is_not_served() -> None:
    """What follows the last request of a connection is nobody's request."""
    seen, fault = serve([post(b"Connection: close") + PLAIN])

    assert [request.is_ended for request in seen] == [True]
    assert fault is not None


def test_expectation_on_http_1_0_is_ignored() -> None:
    """Source: RFC 9110 section 10.1.1."""
    seen, _ = serve([post(b"Expect: 100-continue", b"Content-Length: 1", start=b"POST / HTTP/1.0")])

    assert not seen[0].expects_continue


def test_blank_lines_before_a_request_are_skipped() -> None:
    """Source: RFC 9112 section 2.2."""
    seen, fault = serve([b"\r\n\r\n" + PLAIN + b"\r\n" + PLAIN])

    assert len(seen) == 2
    assert fault is None


@pytest.mark.parametrize("piece_bytes", [1000, 16_384, 65_536])
def test_over_long_target_is_414_however_it_is_split(piece_bytes: int) -> None:
    """The head's limit holds while it is being sent, and the status names the culprit."""
    raw = post(start=b"GET /" + b"a" * (MAX_HEAD_BYTES + 100) + b" HTTP/1.1")

    seen, fault = serve(cut(raw, range(0, len(raw), piece_bytes)))

    assert seen == []
    assert fault is not None
    assert fault.status == 414


@pytest.mark.parametrize("piece_bytes", [1000, 16_384, 65_536])
def test_over_long_field_is_431_however_it_is_split(piece_bytes: int) -> None:
    """As above, for fields."""
    raw = post(b"X: " + b"a" * (MAX_HEAD_BYTES + 100))

    seen, fault = serve(cut(raw, range(0, len(raw), piece_bytes)))

    assert seen == []
    assert fault is not None
    assert fault.status == 431


def test_head_that_never_ends_is_refused_in_time() -> None:
    """Memory is bounded: the fault comes with the byte that passes the limit, not at the end."""
    connection = ServerConnection()
    connection.feed(b"GET / HTTP/1.1\r\nHost: h\r\n")
    fed = 0

    while connection.next_event() is None:
        connection.feed(b"X: " + b"a" * 995 + b"\r\n")
        fed += 1000

    assert fed <= MAX_HEAD_BYTES + 2000


@pytest.mark.parametrize("piece_bytes", [1, 1000, 100_000])
def test_padded_head_is_judged_the_same_however_it_is_split(piece_bytes: int) -> None:
    """White space around a value counts towards the head's limit in every split."""
    raw = post(b"X:" + b" " * (MAX_HEAD_BYTES + 100) + b"a")

    seen, fault = serve(cut(raw, range(0, len(raw), piece_bytes)))

    assert seen == []
    assert fault is not None
    assert fault.status == 431


def test_largest_head_is_accepted() -> None:
    """The limits themselves are still allowed."""
    many = post(*[b"X: a"] * (MAX_FIELDS - 1))
    long = post(b"X: " + b"a" * (MAX_HEAD_BYTES - 200))

    seen, fault = serve([many, long])

    assert [request.is_ended for request in seen] == [True, True]
    assert fault is None


EXTENSION = b";" + b"a" * (MAX_CHUNK_OVERHEAD_BYTES + 200)
OVER_LONG = {
    "extension": chunked(b"5" + EXTENSION + b"\r\nhello\r\n0\r\n\r\n"),
    "last extension": chunked(b"5\r\nhello\r\n0" + EXTENSION + b"\r\n\r\n"),
    "trailer": chunked(b"0\r\nX: " + EXTENSION + b"\r\n\r\n"),
    "many extensions": chunked(
        encode_chunks([(b"x", b";" + b"a" * 99)] * 60, []),
    ),
}


@pytest.mark.parametrize("name", OVER_LONG)
@pytest.mark.parametrize("neighbours", ["alone", "before another", "behind another"])
@pytest.mark.parametrize("piece_bytes", [1, 7, 500, 3000, 100_000])
def test_over_long_extensions_are_refused(name: str, neighbours: str, piece_bytes: int) -> None:
    """More than 4 KiB beside the data of a chunked body, in whatever reads it arrives."""
    before = PLAIN if neighbours == "behind another" else b""
    stream = before + OVER_LONG[name] + (PLAIN if neighbours == "before another" else b"")

    seen, fault = serve(cut(stream, range(0, len(stream), piece_bytes)))

    assert fault is not None
    assert fault.status == 400
    assert [request.is_ended for request in seen if request.length is None] in ([False], [])
    assert len(seen) <= 1 + bool(before)


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 500, 100_000])
def test_extensions_within_the_limit_pass(piece_bytes: int) -> None:
    """3,900 bytes are fine in whatever reads they arrive."""
    raw = chunked(b"5;" + b"a" * 3900 + b"\r\nhello\r\n0\r\n\r\n")

    seen, fault = serve(cut(raw, range(0, len(raw), piece_bytes)))

    assert fault is None
    assert [request.body for request in seen] == [b"hello"]


@pytest.mark.parametrize("split", ["by line", "each byte", "whole"])
def test_many_small_chunks_pass(split: str) -> None:
    """The lines of the chunks themselves are no overhead, even when they arrive on their own."""
    head = chunked(b"")
    pieces = {
        "by line": [head, *itertools.chain(*[[b"5\r\n", b"hello", b"\r\n"]] * 3000), LAST_CHUNK],
        "each byte": each_byte(head + b"5\r\nhello\r\n" * 3000 + LAST_CHUNK),
        "whole": [head + b"5\r\nhello\r\n" * 3000 + LAST_CHUNK],
    }

    seen, fault = serve(pieces[split])

    assert fault is None
    assert [len(request.body) for request in seen] == [15_000]


@pytest.mark.parametrize("after", [b"G", b"\r\n", PLAIN[:20]])
def test_connection_is_between_requests_only_when_nothing_has_arrived(after: bytes) -> None:
    """The head's time limit starts with the first byte."""
    connection = ServerConnection()
    assert connection.is_between_requests

    connection.feed(PLAIN)
    while connection.next_event() is not None:
        pass
    assert connection.is_between_requests

    connection.feed(after)
    assert not connection.is_between_requests


_lines = st.lists(
    st.tuples(
        st.sampled_from([b"content-type", b"x-a", b"x-b"]),
        st.sampled_from([b"", b"text/plain", b"a, b", b"caf\xc3\xa9"]),
    ),
    max_size=4,
)


@given(
    status=st.sampled_from([200, 404, 429, 503, 299]),
    lines=_lines,
    body=st.binary(max_size=60),
    places=cuts,
)
@settings(deadline=None)
def test_encoded_response_comes_back(
    status: int, lines: list[HeaderLine], body: bytes, places: list[int]
) -> None:
    """What the server side writes is what a client reads."""
    framed = [*lines, (b"content-length", b"%d" % len(body))]
    connection = ClientConnection()

    answer = exchange(connection, cut(encode_head(status, framed) + body, places))

    assert (answer.status, answer.body, answer.is_reusable) == (status, body, True)
    assert connection.head is not None
    assert connection.head.lines == framed


@given(chunks=st.lists(st.binary(min_size=1, max_size=60), max_size=6), places=cuts)
@settings(deadline=None)
def test_encoded_chunks_come_back(chunks: list[bytes], places: list[int]) -> None:
    """Chunks joined by a client are the bytes that were written, also behind a 100."""
    raw = CONTINUE + encode_head(200, [(b"transfer-encoding", b"chunked")])
    raw += b"".join(encode_chunk(chunk) for chunk in chunks) + LAST_CHUNK

    answer = exchange(ClientConnection(), cut(raw, places))

    assert answer.body == b"".join(chunks)
    assert answer.is_reusable


def test_whole_body_is_taken_at_once_or_not_at_all() -> None:
    """A body that came in one piece costs no loop; any other stays to be read in pieces."""
    whole, parts, empty = ServerConnection(), ServerConnection(), ServerConnection()
    whole.feed(post(b"Content-Length: 5", body=b"hello") + PLAIN)
    parts.feed(chunked(b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"))
    empty.feed(PLAIN)
    for connection in (whole, parts, empty):
        assert isinstance(connection.next_event(), RequestHead)

    assert whole.take_whole_body() == b"hello"
    assert isinstance(whole.next_event(), RequestHead)
    assert parts.take_whole_body() is None
    assert parts.next_event() == b"he"
    assert empty.take_whole_body() is None
    assert empty.next_event() is End.REQUEST
    assert empty.take_whole_body() is None
