"""The client side of HTTP/2: requests out, windows, what either side may still send."""

import pytest
from hyperframe.frame import (
    DataFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.http.h2_origin import Origin
from tests.http.h2_peer import INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, credit, data
from vsr.headers import HeaderLine
from vsr.http.h2_client import STREAMS_AT_MOST, ClientConnection
from vsr.http.h2_events import ConnectionEnded
from vsr.http.h2_frames import ErrorCode
from vsr.http.h2_head import encode_h2_request
from vsr.http.h2_library import CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES


def open_window(origin: Origin, size: int) -> None:
    """Let the client send so much more on the connection."""
    origin.send(WindowUpdateFrame(0, window_increment=size))


def test_request_head_is_pseudo_fields_first_and_without_what_http2_has_not() -> None:
    """Lower-case names in order; hop-by-hop fields are left out, cookies stay as they are."""
    lines: list[HeaderLine] = [
        (b"accept", b"*/*"),
        (b"connection", b"close"),
        (b"te", b"trailers"),
        (b"transfer-encoding", b"chunked"),
        (b"cookie", b"a=1; b=2"),
    ]

    fields = encode_h2_request(b"POST", (b"https", b"b.test", b"/v1/x?y"), lines, 7)

    assert fields == [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":authority", b"b.test"),
        (b":path", b"/v1/x?y"),
        (b"accept", b"*/*"),
        (b"cookie", b"a=1; b=2"),
        (b"content-length", b"7"),
    ]


@pytest.mark.parametrize(
    ("method", "size", "said"),
    [(b"GET", 0, False), (b"POST", 0, True), (b"GET", 3, True), (b"DELETE", 0, False)],
)
def test_length_is_said_as_http_1_says_it(method: bytes, size: int, *, said: bool) -> None:
    """With a body, and without one where there usually is one."""
    fields = encode_h2_request(method, (b"http", b"b", b"/"), [], size)

    assert ((b"content-length", b"%d" % size) in fields) is said


def test_preface_forbids_push_and_opens_windows() -> None:
    """The first output is the preface with our settings; windows are as on the server side."""
    http = ClientConnection()

    output = http.take_output()

    settings, window = SettingsFrame(0), WindowUpdateFrame(0)
    settings.parse_body(memoryview(output[24 + 9 : -13]))
    window.parse_body(memoryview(output[-4:]))
    assert settings.settings[SettingsFrame.ENABLE_PUSH] == 0
    assert settings.settings[INITIAL_WINDOW_SIZE] == STREAM_WINDOW_BYTES
    assert window.window_increment == CONNECTION_WINDOW_BYTES - 65_535


def test_nothing_can_be_begun_before_the_settings() -> None:
    """What the server allows is not known, nor that it speaks HTTP/2."""
    http = ClientConnection()

    before = (http.has_settings, http.capacity)
    http.feed(SettingsFrame(0).serialize(), now=0.0)
    http.next_event()

    assert before == (False, 0)
    assert (http.has_settings, http.capacity) == (True, STREAMS_AT_MOST)


@pytest.mark.parametrize("allowed", [0, 1, 7, STREAMS_AT_MOST, STREAMS_AT_MOST + 1])
def test_capacity_is_the_servers_and_ours(allowed: int) -> None:
    """MAX_CONCURRENT_STREAMS counts, also when it changes."""
    origin = Origin({MAX_CONCURRENT_STREAMS: allowed})
    first = origin.http.capacity

    origin.send(SettingsFrame(0, settings={MAX_CONCURRENT_STREAMS: 3}))

    assert (first, origin.http.capacity) == (min(allowed, STREAMS_AT_MOST), 3)


def test_body_goes_out_under_both_windows_and_ends_its_stream() -> None:
    """At most a frame at a time; the last one has the end."""
    origin = Origin({INITIAL_WINDOW_SIZE: 20_000})
    stream_id = origin.ask(50_000)
    body = memoryview(b"x" * 50_000)
    sent: list[int | None] = []

    sent += [origin.http.send_data(stream_id, body), origin.http.send_data(stream_id, body[16384:])]
    sent.append(origin.http.send_data(stream_id, body[20_000:]))
    origin.send(WindowUpdateFrame(stream_id, window_increment=100_000))
    at = 20_000
    while (size := origin.http.send_data(stream_id, body[at:])) is not None:
        sent.append(size)
        at += size

    frames = [frame for frame in origin.sent() if isinstance(frame, DataFrame)]
    assert sent == [16_384, 3_616, 0, 16_384]
    assert b"".join(frame.data for frame in frames) == bytes(body)
    assert ["END_STREAM" in frame.flags for frame in frames] == [False, False, False, True]


def test_connection_window_bounds_all_streams_together() -> None:
    """65,535 bytes before the server says more."""
    origin = Origin({INITIAL_WINDOW_SIZE: 1_000_000})
    first, second = origin.ask(60_000), origin.ask(60_000)
    body = memoryview(b"x" * 60_000)

    at = 0
    while size := origin.http.send_data(first, body[at:]):
        at += size
    rest = origin.http.send_data(second, body)
    open_window(origin, 100_000)

    assert rest == 65_535 - 60_000
    assert origin.http.send_data(second, body[5_535:]) == 16_384


def test_window_of_a_stream_is_given_back_when_it_is_read() -> None:
    """And not before; the connection's at once, so that a body nobody reads holds up no other."""
    origin = Origin()
    stream_id = origin.ask()
    origin.send(origin.head(stream_id))
    size = STREAM_WINDOW_BYTES

    origin.send(*[data(stream_id, b"x" * 16_384) for _ in range(size // 16_384)])
    unread = origin.sent()
    has_output = origin.http.credit(stream_id, size)
    read = origin.sent()

    assert (credit(unread, stream_id), credit(unread, 0)) == (0, size)
    assert has_output
    assert (credit(read, stream_id), credit(read, 0)) == (size, 0)


def test_server_that_ignores_a_window_ends_the_connection() -> None:
    """So what is held of a stream is bounded by its window."""
    origin = Origin()
    stream_id = origin.ask()
    origin.send(origin.head(stream_id))

    events = origin.send(*[data(stream_id, b"x" * 16_384) for _ in range(17)])

    assert events[-1] == ConnectionEnded(ErrorCode.FLOW_CONTROL_ERROR)


def test_padding_is_given_back_at_once() -> None:
    """Nobody will read it."""
    origin = Origin()
    stream_id = origin.ask()
    origin.send(origin.head(stream_id))
    padded = DataFrame(stream_id, b"x", pad_length=255, flags=["PADDED"])

    origin.send(*[padded] * 256)

    assert credit(origin.sent(), stream_id) == 65_536
