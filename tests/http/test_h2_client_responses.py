"""The client side of HTTP/2: responses in, and what breaks one."""

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    HeadersFrame,
)

from tests.http.h2_origin import Origin, fault_of, kinds, resets
from tests.http.h2_peer import data
from vsr.headers import HeaderLine
from vsr.http.framing import MAX_FIELDS, MAX_HEAD_BYTES
from vsr.http.h2_client_events import (
    ClientEvent,
    HeadArrived,
    ResponseEnded,
)
from vsr.http.h2_events import BodyArrived
from vsr.http.h2_frames import ErrorCode


def test_whole_response_comes_as_head_body_and_end() -> None:
    """Fields in order; the stream is free behind it."""
    origin = Origin()
    stream_id = origin.ask()
    lines = [
        (b"content-type", b"a/b"),
        (b"content-length", b"5"),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
    ]

    events = origin.send(
        origin.head(stream_id, 200, *lines),
        data(stream_id, b"he"),
        data(stream_id, b"llo", ends=True),
    )

    head = events[0]
    assert isinstance(head, HeadArrived)
    assert (head.head.status, head.head.lines, head.head.length) == (200, lines, 5)
    assert events[1:] == [
        BodyArrived(stream_id, b"he"),
        BodyArrived(stream_id, b"llo"),
        ResponseEnded(stream_id),
    ]
    assert not origin.http.reset(stream_id, ErrorCode.CANCEL)


@pytest.mark.parametrize(
    ("method", "status", "length"),
    [(b"POST", 200, 0), (b"HEAD", 200, 0), (b"GET", 204, 0), (b"GET", 304, 0)],
)
def test_response_that_ends_with_its_head_has_no_body(
    method: bytes, status: int, length: int
) -> None:
    """A HEAD request's response may declare any length; so may a 304."""
    origin = Origin()
    stream_id = origin.ask(method=method)
    lines = [] if status == 200 and method != b"HEAD" else [(b"content-length", b"77")]

    [event] = origin.send(origin.head(stream_id, status, *lines, ends=True))

    assert isinstance(event, HeadArrived)
    assert (event.has_ended, event.head.length) == (True, length)


def test_unknown_length_is_none() -> None:
    """A body follows, and nobody knows how much."""
    origin = Origin()
    stream_id = origin.ask()

    [event] = origin.send(origin.head(stream_id))

    assert isinstance(event, HeadArrived)
    assert (event.has_ended, event.head.length) == (False, None)


def test_informational_heads_are_skipped() -> None:
    """Source: RFC 9110 section 15.2."""
    origin = Origin()
    stream_id = origin.ask()

    events = origin.send(
        origin.head(stream_id, 100),
        origin.head(stream_id, 103, (b"link", b"x")),
        origin.head(stream_id, 200, ends=True),
    )

    assert kinds(events) == ["HeadArrived"]


def test_trailers_are_dropped_and_end_the_response() -> None:
    """Nobody asked for them."""
    origin = Origin()
    stream_id = origin.ask()

    events = origin.send(
        origin.head(stream_id),
        data(stream_id, b"x"),
        origin.fields(stream_id, [(b"x-sum", b"1")], ends=True),
    )

    assert kinds(events) == ["HeadArrived", "BodyArrived", "ResponseEnded"]


BAD_HEADS: list[tuple[list[HeaderLine], str]] = [
    ([], "missing or bad status"),
    ([(b":status", b"20")], "missing or bad status"),
    ([(b":status", b"+20")], "missing or bad status"),
    ([(b":status", b"099")], "missing or bad status"),
    ([(b":status", b"101")], "missing or bad status"),
    ([(b":status", b"200"), (b":status", b"200")], "bad pseudo-header field"),
    ([(b":status", b"200"), (b":path", b"/")], "bad pseudo-header field"),
    ([(b"a", b"b"), (b":status", b"200")], "bad pseudo-header field"),
    ([(b":status", b"200"), (b"A", b"b")], "bad field name"),
    ([(b":status", b"200"), (b"a b", b"b")], "bad field name"),
    ([(b":status", b"200"), (b"", b"b")], "bad field name"),
    ([(b":status", b"200"), (b"a", b"b\r\nc: d")], "bad field value"),
    ([(b":status", b"200"), (b"a", b"b\0")], "bad field value"),
    ([(b":status", b"200"), (b"a", b" b")], "bad field value"),
    ([(b":status", b"200"), (b"connection", b"close")], "connection-specific field"),
    ([(b":status", b"200"), (b"transfer-encoding", b"chunked")], "connection-specific field"),
    ([(b":status", b"200"), (b"upgrade", b"x")], "connection-specific field"),
    ([(b":status", b"200"), (b"keep-alive", b"x")], "connection-specific field"),
    ([(b":status", b"200"), (b"proxy-connection", b"x")], "connection-specific field"),
    ([(b":status", b"200"), (b"content-length", b"+1")], "bad Content-Length"),
    ([(b":status", b"200"), (b"content-length", b"1, 1")], "bad Content-Length"),
    (
        [(b":status", b"200"), (b"content-length", b"1"), (b"content-length", b"1")],
        "repeated Content-Length",
    ),
    ([(b":status", b"200"), *[(b"a", b"b")] * (MAX_FIELDS + 1)], "too many header fields"),
]


@pytest.mark.parametrize(("fields", "reason"), BAD_HEADS)
def test_malformed_head_is_its_streams_fault(fields: list[HeaderLine], reason: str) -> None:
    """The same checks as for HTTP/1.1; the stream is reset, and another one goes on."""
    origin = Origin()
    stream_id, other = origin.ask(9), origin.ask()

    events = origin.send(origin.fields(stream_id, fields))
    later = origin.send(data(stream_id, b"late"), origin.head(other, 200, ends=True))

    assert fault_of(events) == reason
    assert resets(origin.sent()) == [(stream_id, ErrorCode.PROTOCOL_ERROR)]
    assert kinds(later) == ["HeadArrived"]


def test_head_that_is_too_long_is_its_streams_fault() -> None:
    """In frames that are each within bounds."""
    origin = Origin()
    stream_id = origin.ask(9)
    block = origin.encoder.encode([(b":status", b"200"), *[(b"a", b"b" * 5_000)] * 13])
    frames = [
        HeadersFrame(stream_id, block[:16_000]),
        ContinuationFrame(stream_id, block[16_000:32_000]),
        ContinuationFrame(stream_id, block[32_000:48_000]),
        ContinuationFrame(stream_id, block[48_000:], flags=["END_HEADERS"]),
    ]

    events = origin.send(*frames)

    assert fault_of(events) == "response head is too long"
    assert resets(origin.sent()) == [(stream_id, ErrorCode.PROTOCOL_ERROR)]


def test_malformed_head_that_ends_a_whole_exchange_needs_no_reset() -> None:
    """Both sides have closed the stream already."""
    origin = Origin()
    stream_id = origin.ask()
    origin.sent()

    events = origin.send(origin.head(stream_id, 200, (b"content-length", b"3"), ends=True))

    assert fault_of(events) == "body is shorter than its Content-Length"
    assert origin.sent() == []


def test_informational_head_at_the_end_is_a_fault() -> None:
    """Nothing can follow it."""
    origin = Origin()
    stream_id = origin.ask()

    events = origin.send(origin.head(stream_id, 103, ends=True))

    assert fault_of(events) == "no response behind an informational one"


def test_informational_heads_are_bounded_together() -> None:
    """Each of them is small."""
    origin = Origin()
    stream_id = origin.ask()
    size = len(b":status") + len(b"103") + 4 + len(b"a") + 1_000 + 4

    events: list[ClientEvent] = []
    for _ in range(MAX_HEAD_BYTES // size + 1):
        assert events == []
        events = origin.send(origin.head(stream_id, 103, (b"a", b"b" * 1_000)))

    assert fault_of(events) == "response head is too long"


@pytest.mark.parametrize(
    ("declared", "body", "reason"),
    [
        (b"5", b"hell", "body is shorter than its Content-Length"),
        (b"3", b"hell", "body is longer than its Content-Length"),
    ],
)
def test_length_must_be_that_of_the_body(declared: bytes, body: bytes, reason: str) -> None:
    """Or somebody reads the wrong end."""
    origin = Origin()
    stream_id = origin.ask(9)

    events = origin.send(
        origin.head(stream_id, 200, (b"content-length", declared)),
        data(stream_id, body, ends=True),
    )

    assert fault_of(events) == reason
    assert kinds(events)[-1] == "ResponseBroken"


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304)])
def test_body_where_none_can_be_is_a_fault(method: bytes, status: int) -> None:
    """Whatever the length says."""
    origin = Origin()
    stream_id = origin.ask(method=method)

    events = origin.send(
        origin.head(stream_id, status, (b"content-length", b"1")), data(stream_id, b"x")
    )

    assert fault_of(events) == "body is longer than its Content-Length"


def test_body_before_a_head_is_a_fault() -> None:
    """The library lets it pass."""
    origin = Origin()
    stream_id = origin.ask()

    assert fault_of(origin.send(data(stream_id, b"x"))) == "body without a head"


@pytest.mark.parametrize("ends", [True, False])
def test_bad_trailers_are_their_streams_fault(*, ends: bool) -> None:
    """A pseudo field in them, or no end behind them, which the library ends connections over."""
    origin = Origin()
    stream_id, other = origin.ask(), origin.ask()
    fields: list[HeaderLine] = [(b":status", b"200")] if ends else [(b"x", b"y")]

    events = origin.send(origin.head(stream_id), origin.fields(stream_id, fields, ends=ends))

    assert fault_of(events) == (
        "pseudo-header field in trailers" if ends else "trailers without an end"
    )
    assert kinds(origin.send(origin.head(other, 200, ends=True))) == ["HeadArrived"]


def test_status_in_endless_trailers_is_their_streams_fault() -> None:
    """The library would take an informational status there for a fault of the connection."""
    origin = Origin()
    stream_id, other = origin.ask(), origin.ask()

    events = origin.send(origin.head(stream_id), origin.head(stream_id, 103))

    assert fault_of(events) == "trailers without an end"
    assert kinds(origin.send(origin.head(other, 200, ends=True))) == ["HeadArrived"]
