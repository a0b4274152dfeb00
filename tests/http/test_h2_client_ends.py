"""The client side of HTTP/2: how streams end, and what ends a connection."""

import pytest
from hyperframe.frame import (
    DataFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.http.h2_origin import Origin, goaway, kinds, resets
from tests.http.h2_peer import credit, data
from vsr.http.h2_client import NOISE, ClientConnection
from vsr.http.h2_client_events import (
    HeadArrived,
    StreamClosed,
)
from vsr.http.h2_events import ConnectionEnded
from vsr.http.h2_frames import ErrorCode


@pytest.mark.parametrize(("code", "is_refused"), [(7, True), (2, False), (8, False), (0, False)])
def test_reset_says_whether_the_stream_was_refused(code: int, *, is_refused: bool) -> None:
    """REFUSED_STREAM alone proves that nothing was done. Source: RFC 9113 section 8.7."""
    origin = Origin()
    stream_id = origin.ask(9)

    assert origin.send(RstStreamFrame(stream_id, error_code=code)) == [
        StreamClosed(stream_id, is_refused)
    ]


def test_reset_behind_a_head_is_no_refusal() -> None:
    """The server contradicts itself."""
    origin = Origin()
    stream_id = origin.ask()

    events = origin.send(origin.head(stream_id), RstStreamFrame(stream_id, error_code=7))

    assert events[1:] == [StreamClosed(stream_id, is_refused=False)]


def test_early_end_stops_the_request() -> None:
    """A response may end before its request, whose rest is not sent; the stream is still open."""
    origin = Origin()
    stream_id = origin.ask(50_000)

    origin.send(origin.head(stream_id, 413, ends=True))
    sent = origin.http.send_data(stream_id, memoryview(b"x" * 50_000))
    origin.sent()

    assert sent == 0
    assert origin.http.reset(stream_id, ErrorCode.CANCEL)
    assert resets(origin.sent()) == [(stream_id, ErrorCode.CANCEL)]


def test_what_crosses_with_our_reset_is_discarded() -> None:
    """Its fields are unpacked, since later ones refer to them; its window is given back."""
    origin = Origin()
    stream_id, other = origin.ask(), origin.ask()
    line = (b"x-new", b"value")
    origin.http.reset(stream_id, ErrorCode.CANCEL)
    origin.sent()

    crossed = origin.send(
        origin.head(stream_id, 103, line),
        origin.head(stream_id, 200, line),
        *[data(stream_id, b"x" * 16_384) for _ in range(40)],
        RstStreamFrame(stream_id),
        WindowUpdateFrame(stream_id, window_increment=1),
    )
    [event] = origin.send(origin.head(other, 200, line, ends=True))

    frames = origin.sent()
    assert (crossed, resets(frames)) == ([], [])
    assert credit(frames, 0) > 0
    assert isinstance(event, HeadArrived)
    assert event.head.lines == [line]


def test_goaway_gives_back_what_was_not_processed() -> None:
    """Streams above its last one were refused, those below go on, new ones are not begun."""
    origin = Origin()
    first, second, third = origin.ask(), origin.ask(9), origin.ask()

    events = origin.send(goaway(second))
    later = origin.send(origin.head(first, 200, ends=True), origin.head(second))

    assert events == [StreamClosed(third, is_refused=True)]
    assert (origin.http.is_leaving, origin.http.capacity) == (True, 0)
    assert kinds(later) == ["HeadArrived", "HeadArrived"]
    assert resets(origin.sent()) == [], "the server knows nothing of them"


def test_goaway_may_be_repeated_with_a_lower_stream() -> None:
    """A graceful end begins with the highest one. Source: RFC 9113 section 6.8."""
    origin = Origin()
    first, second = origin.ask(), origin.ask()

    gentle = origin.send(goaway(2**31 - 1))
    events = origin.send(goaway(first))
    late = origin.send(data(second, b"x"), goaway(2**31 - 1))

    assert (gentle, events, late) == ([], [StreamClosed(second, is_refused=True)], [])
    assert origin.http.is_leaving


def test_body_goes_on_after_goaway() -> None:
    """The library would send no more."""
    origin = Origin()
    stream_id = origin.ask(3)

    origin.send(goaway(stream_id))
    sent = origin.http.send_data(stream_id, memoryview(b"abc"))

    assert sent is None
    assert [frame.data for frame in origin.sent() if isinstance(frame, DataFrame)] == [b"abc"]


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ErrorCode.FRAME_SIZE_ERROR),
        (PingFrame(0, b"12345678").serialize(), ErrorCode.PROTOCOL_ERROR),
        (SettingsFrame(0, flags=["ACK"]).serialize(), ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_first_words_must_be_settings(wire: bytes, code: int) -> None:
    """Whoever says something else does not speak HTTP/2."""
    http = ClientConnection()
    http.feed(wire, now=0.0)

    assert http.next_event() == ConnectionEnded(code)
    assert not http.has_settings


def test_pushed_stream_ends_the_connection() -> None:
    """We have said that we want none. Source: RFC 9113 section 8.4."""
    origin = Origin()
    stream_id = origin.ask()
    push = PushPromiseFrame(stream_id, 2, origin.encoder.encode([(b":method", b"GET")]))
    push.flags.add("END_HEADERS")

    assert origin.send(push) == [ConnectionEnded(ErrorCode.PROTOCOL_ERROR)]
    assert origin.http.is_leaving


@pytest.mark.parametrize("stream_id", [2, 5, 99])
@pytest.mark.parametrize("kind", [HeadersFrame, DataFrame])
def test_stream_that_nobody_opened_ends_the_connection(
    stream_id: int, kind: type[HeadersFrame | DataFrame]
) -> None:
    """A server opens none, and answers none that was not asked for."""
    origin = Origin()
    origin.ask()
    frame = origin.head(stream_id) if kind is HeadersFrame else data(stream_id, b"x")

    assert origin.send(frame) == [ConnectionEnded(ErrorCode.PROTOCOL_ERROR)]


def test_response_behind_a_response_ends_the_connection() -> None:
    """The stream is closed. Source: RFC 9113 section 5.1."""
    origin = Origin()
    stream_id = origin.ask()
    origin.send(origin.head(stream_id, 200, ends=True))

    [event] = origin.send(origin.head(stream_id, 200, ends=True))

    assert isinstance(event, ConnectionEnded)


@pytest.mark.parametrize(
    "frame",
    [
        PingFrame(0, b"12345678"),
        SettingsFrame(0),
        WindowUpdateFrame(0, window_increment=1),
        DataFrame(1, b""),
        RstStreamFrame(3, error_code=0),
        b"\0\0\0\xbb\0\0\0\0\0",
    ],
    ids=["pings", "settings", "windows", "empty data", "resets", "unknown"],
)
def test_noise_is_bounded(frame: PingFrame | DataFrame | bytes) -> None:
    """Frames that cost us work and carry nothing; with time more are allowed."""
    origin = Origin()
    first = origin.ask()
    closed = origin.ask()
    origin.send(origin.head(first), origin.head(closed, 200, ends=True))
    wire = frame if isinstance(frame, bytes) else frame.serialize()

    patient = origin.send(wire * (NOISE - 2))
    origin.now = 5.0
    later = origin.send(wire * 490)
    ended = origin.send(wire * (NOISE + 10))

    assert (patient, later) == ([], [])
    assert ended == [ConnectionEnded(ErrorCode.ENHANCE_YOUR_CALM)]


def test_endless_header_block_ends_the_connection() -> None:
    """CVE-2024-27316, the other way round."""
    origin = Origin()
    stream_id = origin.ask()
    head = HeadersFrame(stream_id, b"\x88").serialize()
    more = b"\0\0\0\x09\0" + stream_id.to_bytes(4, "big")

    assert origin.send(head + more * 20) == [ConnectionEnded(ErrorCode.ENHANCE_YOUR_CALM)]


def test_ping_is_answered() -> None:
    """With the same eight bytes."""
    origin = Origin()

    origin.send(PingFrame(0, b"12345678"))

    [answer] = origin.sent()
    assert isinstance(answer, PingFrame)
    assert (answer.opaque_data, "ACK" in answer.flags) == (b"12345678", True)


def test_ended_connection_takes_and_says_nothing_more() -> None:
    """It has told why, once."""
    origin = Origin()
    stream_id = origin.ask(9)

    origin.http.end(ErrorCode.NO_ERROR)
    origin.http.end(ErrorCode.NO_ERROR)
    first = [type(frame).__name__ for frame in origin.sent()]
    events = origin.send(origin.head(stream_id))
    origin.http.reset(stream_id, ErrorCode.CANCEL)
    origin.http.ping()

    assert first == ["HeadersFrame", "GoAwayFrame"]
    assert (events, origin.sent()) == ([], [])
    assert origin.http.send_data(stream_id, memoryview(b"x")) == 0
