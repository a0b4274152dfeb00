"""The client side of an HTTP/1.1 connection."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.messages import (
    Answer,
    WireAnswer,
    answers,
    cut,
    cuts,
    each_byte,
    encode_chunks,
    exchange,
    receive,
    serve,
)
from vsr.headers import HeaderLine
from vsr.http.framing import MAX_CHUNK_OVERHEAD_BYTES, MAX_FIELDS, MAX_HEAD_BYTES, FramingError
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.http.h1_server import LAST_CHUNK

LENGTH_5 = b"Content-Length: 5"
CHUNKED = b"Transfer-Encoding: chunked"


def response(*lines: bytes, body: bytes = b"", start: bytes = b"HTTP/1.1 200 OK") -> bytes:
    """Return a response with the given lines."""
    return b"\r\n".join([start, *lines, b"", body])


REFUSED: dict[str, bytes] = {
    "content-length, then transfer-encoding": response(LENGTH_5, CHUNKED, body=LAST_CHUNK),
    "transfer-encoding, then content-length": response(CHUNKED, LENGTH_5, body=LAST_CHUNK),
    "content-length differs": response(LENGTH_5, b"Content-Length: 6", body=b"hello"),
    "content-length repeated": response(LENGTH_5, LENGTH_5, body=b"hello"),
    "content-length with comma": response(b"Content-Length: 5, 5", body=b"hello"),
    "content-length with plus": response(b"Content-Length: +5", body=b"hello"),
    "content-length negative": response(b"Content-Length: -5", body=b"hello"),
    "content-length with letter": response(b"Content-Length: 5a", body=b"hello"),
    "content-length empty": response(b"Content-Length:", body=b"hello"),
    "content-length beyond 64 bits": response(b"Content-Length: 99999999999999999999"),
    "content-length beyond 18 digits": response(b"Content-Length: 1000000000000000000"),
    "transfer-encoding gzip": response(b"Transfer-Encoding: gzip", body=b"hello"),
    "transfer-encoding gzip, chunked": response(
        b"Transfer-Encoding: gzip, chunked", body=LAST_CHUNK
    ),
    "transfer-encoding identity": response(b"Transfer-Encoding: identity", body=b"hello"),
    "transfer-encoding chunked twice": response(CHUNKED, CHUNKED, body=LAST_CHUNK),
    "HTTP/1.2": response(LENGTH_5, body=b"hello", start=b"HTTP/1.2 200 OK"),
    "not HTTP": b"SSH-2.0-OpenSSH_9\r\n\r\n",
    "ICY": b"ICY 200 OK\r\n\r\n",
    "status of two digits": response(LENGTH_5, body=b"hello", start=b"HTTP/1.1 20 OK"),
    "status of four digits": response(LENGTH_5, body=b"hello", start=b"HTTP/1.1 2000 OK"),
    "status with letter": response(LENGTH_5, body=b"hello", start=b"HTTP/1.1 2x0 OK"),
    "protocol switch": response(
        b"Upgrade: websocket", b"Connection: upgrade", start=b"HTTP/1.1 101 Switching Protocols"
    ),
    "protocol switch without fields": response(start=b"HTTP/1.1 101 Switching Protocols"),
    "space before colon": response(b"X : 1", LENGTH_5, body=b"hello"),
    "folded line": response(b"X: 1", b" 2", LENGTH_5, body=b"hello"),
    "bare CR in value": response(b"X: 1\r2", LENGTH_5, body=b"hello"),
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "NUL in value": response(b"X: 1\x00", LENGTH_5, body=b"hello"),
    "NUL in name": response(b"X\x00: 1", LENGTH_5, body=b"hello"),
    "control byte in value": response(b"X: 1\x01", LENGTH_5, body=b"hello"),
    "no colon": response(b"X", LENGTH_5, body=b"hello"),
    "100 fields and one more": response(*[b"X: a"] * MAX_FIELDS, LENGTH_5, body=b"hello"),
    "chunk size signed": response(CHUNKED, body=b"-5\r\nhello\r\n0\r\n\r\n"),
    "chunk size prefixed": response(CHUNKED, body=b"0x5\r\nhello\r\n0\r\n\r\n"),
    "chunk size with letter": response(CHUNKED, body=b"5g\r\nhello\r\n0\r\n\r\n"),
    "chunk size missing": response(CHUNKED, body=b"\r\nhello\r\n0\r\n\r\n"),
    "chunk size beyond 64 bits": response(CHUNKED, body=b"fffffffffffffffff\r\nhello\r\n"),
    "chunk longer than its size": response(CHUNKED, body=b"5\r\nhello!\r\n0\r\n\r\n"),
    "chunk shorter than its size": response(CHUNKED, body=b"6\r\nhello\r\n0\r\n\r\n"),
    "bare LF behind chunk size": response(CHUNKED, body=b"5\nhello\r\n0\r\n\r\n"),
    "NUL in trailer": response(CHUNKED, body=b"5\r\nhello\r\n0\r\nX: \x00\r\n\r\n"),
    "length in trailer": response(CHUNKED, body=b"0\r\nContent-Length: 3\r\n\r\n"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("split", ["whole", "each byte"])
def test_response_is_refused(name: str, split: str) -> None:
    """Ambiguous or broken framing is a fault, and never a complete response."""
    raw = REFUSED[name]
    connection = ClientConnection()

    with pytest.raises(FramingError):
        exchange(connection, [raw] if split == "whole" else each_byte(raw))

    assert not connection.is_complete
    assert not connection.is_reusable


OTHER_VERSIONS: dict[str, bytes] = {
    "chunked on HTTP/1.0": response(CHUNKED, body=LAST_CHUNK, start=b"HTTP/1.0 200 OK"),
    "HTTP/0.9": response(LENGTH_5, body=b"hello", start=b"HTTP/0.9 200 OK"),
    "HTTP/2.0": response(LENGTH_5, body=b"hello", start=b"HTTP/2.0 200 OK"),
}


@pytest.mark.parametrize("name", OTHER_VERSIONS)
def test_response_of_another_version_is_refused(name: str) -> None:
    """As for requests: only 1.0 and 1.1 are known, and chunks belong to 1.1."""
    connection = ClientConnection()

    with pytest.raises(FramingError):
        exchange(connection, [OTHER_VERSIONS[name]])

    assert not connection.is_complete


@given(name=st.sampled_from(sorted(REFUSED)), places=cuts)
@settings(deadline=None, max_examples=100)
def test_refused_response_is_refused_however_it_is_split(name: str, places: list[int]) -> None:
    """The split decides nothing."""
    connection = ClientConnection()

    with pytest.raises(FramingError):
        exchange(connection, cut(REFUSED[name], places))

    assert not connection.is_complete


@pytest.mark.parametrize("status", [b"000", b"099"])
def test_status_below_100_is_refused(status: bytes) -> None:
    """It is no informational response, and waiting for a final one behind it would hang.

    Source: RFC 9110 section 15.
    """
    connection = ClientConnection()
    connection.begin(is_head_request=False)

    with pytest.raises(FramingError):
        connection.feed(response(start=b"HTTP/1.1 " + status + b" Odd"))


def test_fault_phrase_never_holds_what_the_backend_sent() -> None:
    """Reasons end up in client answers."""
    for raw in REFUSED.values():
        with pytest.raises(FramingError) as caught:
            receive([raw.replace(b"X", b"Canary")])

        assert "anary" not in str(caught.value)


@given(wire=answers(), places=cuts)
@settings(deadline=None, max_examples=120)
def test_response_comes_out_the_same_however_it_is_split(
    wire: WireAnswer, places: list[int]
) -> None:
    """Any split of any valid response gives the same status, body and end as the unsplit one."""
    for pieces in ([wire.raw], cut(wire.raw, places)):
        answer = receive(
            pieces, is_head_request=wire.is_head_request, ends_at_close=wire.ends_at_close
        )

        assert answer == wire.answer


@given(wires=st.lists(answers(keeps_connection=True), min_size=2, max_size=4), places=cuts)
@settings(deadline=None, max_examples=100)
def test_connection_carries_one_response_after_the_other(
    wires: list[WireAnswer], places: list[int]
) -> None:
    """HEAD, 204, 304, lengths and chunks leave the connection fit for the next request."""
    connection = ClientConnection()

    results = [
        exchange(connection, cut(wire.raw, places), is_head_request=wire.is_head_request)
        for wire in wires
    ]

    assert results == [wire.answer for wire in wires]


@given(wire=answers(), end=st.integers(0, 2000))
@settings(deadline=None, max_examples=100)
def test_cut_off_response_is_a_fault(wire: WireAnswer, end: int) -> None:
    """Only the end of the stream ends a response without length and chunks, nothing else."""
    raw = wire.raw[: -(1 + end % len(wire.raw))]
    connection = ClientConnection()
    connection.begin(is_head_request=wire.is_head_request)
    connection.feed(raw)

    if wire.ends_at_close and connection.head is not None:
        connection.feed_end()
        assert connection.is_complete
        return
    with pytest.raises(FramingError):
        connection.feed_end()
    assert not connection.is_complete


def test_end_of_stream_behind_a_whole_response_is_fine() -> None:
    """It only ends the connection."""
    connection = ClientConnection()
    exchange(connection, [response(LENGTH_5, body=b"hello")])

    connection.feed_end()

    assert connection.is_complete
    assert not connection.is_reusable


@pytest.mark.parametrize(
    "behind", [b"!", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"HTTP", b"0\r\n\r\n"]
)
@pytest.mark.parametrize(
    "first", [response(LENGTH_5, body=b"hello"), response(CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n")]
)
@pytest.mark.parametrize("split", ["together", "apart"])
def test_bytes_behind_a_response_spoil_the_connection(
    first: bytes, behind: bytes, split: str
) -> None:
    """A backend that says more than its length is answered for what it declared, once."""
    pieces = [first + behind] if split == "together" else [first, behind]

    answer = receive(pieces)

    assert (answer.body, answer.is_complete, answer.is_reusable) == (b"hello", True, False)


@pytest.mark.parametrize(
    ("raw", "is_head_request", "is_reusable"),
    [
        (response(b"Content-Length: 0"), False, True),
        (response(b"Content-Length: 0", b"Connection: close"), False, False),
        (response(b"Content-Length: 0", start=b"HTTP/1.0 200 OK"), False, False),
        (
            response(b"Content-Length: 0", b"Connection: keep-alive", start=b"HTTP/1.0 200 OK"),
            False,
            True,
        ),
        (response(LENGTH_5), True, True),
        (response(LENGTH_5, b"Connection: close"), True, False),
        (response(LENGTH_5, body=b"hello"), True, False),
        (response(start=b"HTTP/1.1 204 No Content"), False, True),
        (response(start=b"HTTP/1.1 204 No Content", body=b"junk"), False, False),
        (response(LENGTH_5, start=b"HTTP/1.1 304 Not Modified"), False, True),
    ],
)
def test_connection_is_reusable_only_when_both_sides_agree_on_its_end(
    raw: bytes, *, is_head_request: bool, is_reusable: bool
) -> None:
    """A wrong guess here would hand one request's answer to another."""
    answer = receive([raw], is_head_request=is_head_request)

    assert answer == Answer(answer.status, 0, b"", is_complete=True, is_reusable=is_reusable)


def test_ignored_upgrade_offer_is_no_fault() -> None:
    """Some servers offer another protocol with every answer."""
    answer = receive([response(b"Upgrade: h2c", b"Connection: Upgrade", LENGTH_5, body=b"hello")])

    assert answer.body == b"hello"


@pytest.mark.parametrize("piece_bytes", [1, 1000, 100_000])
@pytest.mark.parametrize("padding", [b"a", b" "])
def test_over_long_head_is_refused_however_it_is_split(padding: bytes, piece_bytes: int) -> None:
    """60 KiB, white space included."""
    raw = response(b"X: " + padding * (MAX_HEAD_BYTES + 100) + b"a", LENGTH_5, body=b"hello")

    with pytest.raises(FramingError):
        receive(cut(raw, range(0, len(raw), piece_bytes)))


def test_endless_informational_responses_are_refused() -> None:
    """They count as one head together."""
    connection = ClientConnection()
    connection.begin(is_head_request=False)

    hint = b"HTTP/1.1 103 Hints\r\nX: %b\r\n\r\n" % (b"a" * 100)
    for _ in range(MAX_HEAD_BYTES // len(hint)):
        connection.feed(hint)
    with pytest.raises(FramingError):
        connection.feed(hint)


EXTENSION = b";" + b"a" * (MAX_CHUNK_OVERHEAD_BYTES + 200)
OVER_LONG = {
    "extension": b"5" + EXTENSION + b"\r\nhello\r\n0\r\n\r\n",
    "last extension": b"5\r\nhello\r\n0" + EXTENSION + b"\r\n\r\n",
    "trailer": b"0\r\nX: " + EXTENSION + b"\r\n\r\n",
    "many extensions": encode_chunks([(b"x", b";" + b"a" * 99)] * 60, []),
}


@pytest.mark.parametrize("name", OVER_LONG)
@pytest.mark.parametrize("piece_bytes", [1, 7, 500, 3000, 100_000])
def test_over_long_extensions_are_refused(name: str, piece_bytes: int) -> None:
    """More than 4 KiB beside the data of a chunked body, in whatever reads it arrives."""
    raw = response(CHUNKED, body=OVER_LONG[name])

    with pytest.raises(FramingError):
        receive(cut(raw, range(0, len(raw), piece_bytes)))


@pytest.mark.parametrize("split", ["by line", "each byte", "whole"])
def test_many_small_chunks_pass(split: str) -> None:
    """A long answer of one token per chunk is sound, in whatever reads its lines arrive."""
    head = response(CHUNKED)
    pieces = {
        "by line": [head, *itertools.chain(*[[b"5\r\n", b"hello", b"\r\n"]] * 3000), LAST_CHUNK],
        "each byte": each_byte(head + b"5\r\nhello\r\n" * 3000 + LAST_CHUNK),
        "whole": [head + b"5\r\nhello\r\n" * 3000 + LAST_CHUNK],
    }

    answer = receive(pieces[split])

    assert len(answer.body) == 15_000


def test_take_empties_what_has_arrived() -> None:
    """Pieces are joined, and come out once."""
    connection = ClientConnection()
    connection.begin(is_head_request=False)
    connection.feed(response(CHUNKED, body=b"2\r\nab\r\n1\r\nc\r\n"))

    assert connection.has_body_waiting
    assert connection.take() == b"abc"
    assert not connection.has_body_waiting
    assert connection.take() == b""


_lines = st.lists(
    st.tuples(
        st.sampled_from([b"accept", b"x-a", b"x-b"]),
        st.sampled_from([b"", b"a, b", b"caf\xc3\xa9"]),
    ),
    max_size=4,
)


@given(
    method=st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD"]),
    lines=_lines,
    body=st.binary(max_size=60),
    places=cuts,
)
@settings(deadline=None)
def test_encoded_request_comes_back(
    method: bytes, lines: list[HeaderLine], body: bytes, places: list[int]
) -> None:
    """What the client side writes is what a server reads, and two in a row don't run together."""
    head = encode_request(method, b"/v1/x?y=1", b"[::1]:8000", lines, len(body))

    seen, fault = serve(cut((head + body) * 2, places))

    assert fault is None
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert (seen[0].method, seen[0].target, seen[0].body) == (method, b"/v1/x?y=1", body)
    assert seen[0].lines[: 1 + len(lines)] == ((b"host", b"[::1]:8000"), *lines)
    assert seen[0].is_ended


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [(b"POST", b"", b"0"), (b"GET", b"", b""), (b"DELETE", b"", b""), (b"GET", b"ab", b"2")],
)
def test_request_declares_a_length_where_one_is_expected(
    method: bytes, body: bytes, length: bytes
) -> None:
    """Source: RFC 9110 section 8.6."""
    head = encode_request(method, b"/", b"h", [], len(body))

    seen, _ = serve([head + body])

    assert dict(seen[0].lines).get(b"content-length", b"") == length
