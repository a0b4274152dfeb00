"""The server side of an HTTP/2 connection: requests, bodies, windows, answers."""

import pytest
from hyperframe.frame import (
    DataFrame,
    Frame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.http.h2_peer import (
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    WINDOW_BYTES,
    Peer,
    code_of,
    credit,
    data,
    parse,
)
from vsr.http.h2_events import (
    BodyArrived,
    BodyBroken,
    BodyEnded,
    RequestArrived,
    RequestRefused,
    StreamReset,
)
from vsr.http.h2_frames import MAX_FRAME_BYTES, ErrorCode
from vsr.http.h2_library import CONNECTION_WINDOW_BYTES, MAX_STREAMS, STREAM_WINDOW_BYTES
from vsr.http.h2_server import ServerConnection


def test_server_tells_its_limits_first() -> None:
    """Before anything has arrived; the connection's window is as wide as ours from the start."""
    first, *rest = parse(ServerConnection().take_output())

    assert isinstance(first, SettingsFrame)
    assert first.settings[MAX_CONCURRENT_STREAMS] == MAX_STREAMS
    assert first.settings[INITIAL_WINDOW_SIZE] == STREAM_WINDOW_BYTES
    assert credit(rest, 0) == CONNECTION_WINDOW_BYTES - WINDOW_BYTES


def test_request_comes_out_in_order() -> None:
    """Head, body, end; an end of its own or with the last bytes."""
    peer = Peer()

    (first,) = peer.open(1)
    rest = peer.send(data(1, b"abc"), data(1, b""), data(1, b"de", ends=True))
    (whole,) = peer.open(3, ends=True)

    assert isinstance(first, RequestArrived)
    assert isinstance(whole, RequestArrived)
    assert (first.stream_id, first.head.length, first.has_ended) == (1, None, False)
    assert rest == [BodyArrived(1, b"abc"), BodyArrived(1, b"de"), BodyEnded(1)]
    assert (whole.stream_id, whole.head.length, whole.has_ended) == (3, 0, True)


def test_trailers_end_a_body_and_go_no_further() -> None:
    """Those that HTTP/2 does not allow break it."""
    peer = Peer()
    peer.open(1)
    peer.open(3)

    sound = peer.send(data(1, b"a"), peer.trailers(1, (b"x", b"y")))
    broken = peer.send(data(3, b"a"), peer.trailers(3, (b":path", b"y")))

    assert sound == [BodyArrived(1, b"a"), BodyEnded(1)]
    assert [type(event) for event in broken] == [BodyArrived, BodyBroken]


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([data(1, b"abc", ends=True)], "shorter"),
        ([data(1, b"", ends=True)], "shorter"),
        ([data(1, b"abcdef")], "longer"),
        ([data(1, b"abcde"), data(1, b"f"), data(1, b"", ends=True)], "longer"),
    ],
)
def test_body_has_its_declared_length(frames: list[DataFrame], reason: str) -> None:
    """Told once, as soon as it shows; the connection and other streams go on."""
    peer = Peer()
    peer.open(1, (b"content-length", b"5"))

    events = peer.send(*frames)

    faults = [event.fault for event in events if isinstance(event, BodyBroken)]
    assert len(faults) == 1
    assert reason in str(faults[0])
    assert BodyEnded(1) not in events
    assert code_of(events) is None
    assert len(peer.open(3, ends=True)) == 1


def test_padding_counts_for_the_windows_only() -> None:
    """It is given back at once, since nobody reads it."""
    peer = Peer()
    peer.open(1)
    padded = DataFrame(1, b"ab", flags=["PADDED"])
    padded.pad_length = 200

    frames: list[Frame] = []
    for _ in range(1000):
        assert peer.send(padded) == [BodyArrived(1, b"ab")]
        frames += peer.receive()

    assert 100_000 < credit(frames, 1) <= 201_000
    assert 100_000 < credit(frames, 0) <= 203_000


def test_stream_window_opens_as_the_body_is_read() -> None:
    """The connection's opens as it arrives; an unread stream never gets more than its window."""
    peer = Peer()
    peer.open(1)
    peer.open(3)
    piece = bytes(MAX_FRAME_BYTES)
    count = STREAM_WINDOW_BYTES // MAX_FRAME_BYTES

    events = peer.send(*[data(1, piece)] * count)
    unread = peer.receive()
    peer.http.credit(1, STREAM_WINDOW_BYTES)
    read = peer.receive()
    overrun = peer.send(*[data(3, piece)] * (count + 1))

    assert len(events) == count
    assert credit(unread, 1) == 0
    assert credit(unread, 0) == STREAM_WINDOW_BYTES
    assert credit(read, 1) == STREAM_WINDOW_BYTES
    assert code_of(overrun) == ErrorCode.FLOW_CONTROL_ERROR


def test_window_of_what_has_ended_is_not_opened() -> None:
    """There is nothing to send any more."""
    peer = Peer()
    peer.open(1)
    peer.send(data(1, bytes(MAX_FRAME_BYTES), ends=True))
    peer.receive()

    peer.http.credit(1, STREAM_WINDOW_BYTES)
    peer.http.credit(99, STREAM_WINDOW_BYTES)

    assert peer.receive() == []


@pytest.mark.parametrize("is_answered", [True, False])
def test_data_that_crosses_with_our_reset_is_dropped_and_credited(*, is_answered: bool) -> None:
    """It is no fault of the client's, which hears of the reset once."""
    peer = Peer()
    peer.open(1)
    if is_answered:
        peer.answer(1)
    peer.http.reset(1, ErrorCode.NO_ERROR)
    before = peer.receive()
    frames: list[Frame] = []

    for _ in range(200):
        assert peer.send(data(1, bytes(MAX_FRAME_BYTES))) == []
        frames += peer.receive()

    assert sum(isinstance(frame, RstStreamFrame) for frame in before) == 1
    assert all(isinstance(frame, WindowUpdateFrame) for frame in frames)
    assert credit(frames, 1) == 0
    assert 200 * MAX_FRAME_BYTES - credit(frames, 0) < CONNECTION_WINDOW_BYTES // 2 + 1
    assert len(peer.open(3, ends=True)) == 1


@pytest.mark.parametrize("how", ["reset by the client", "ended by both"])
def test_data_on_a_stream_that_the_client_closed_is_a_fault_of_the_stream(how: str) -> None:
    """It knew. Source: RFC 9113 section 5.1, closed."""
    peer = Peer()
    peer.open(1)
    if how == "ended by both":
        peer.send(data(1, b"", ends=True))
        peer.answer(1)
    else:
        peer.send(RstStreamFrame(1))
    peer.receive()

    events = peer.send(data(1, b"x"))

    (frame,) = peer.receive()
    assert events == []
    assert isinstance(frame, RstStreamFrame)
    assert frame.error_code == ErrorCode.STREAM_CLOSED


def test_data_behind_the_end_resets_the_stream() -> None:
    """Source: RFC 9113 section 5.1, half-closed (remote)."""
    peer = Peer()
    peer.open(1, ends=True)

    events = peer.send(data(1, b"x"))

    (frame,) = peer.receive()
    assert events == [StreamReset(1)]
    assert isinstance(frame, RstStreamFrame)
    assert frame.error_code == ErrorCode.STREAM_CLOSED
    assert not peer.http.is_open(1)


def test_refused_head_harms_no_other_stream() -> None:
    """It is told with its status, and the fields behind it are still unpacked."""
    peer = Peer()

    first = peer.open(1, (b"x-shared", b"value"), (b"connection", b"close"))
    rest = peer.send(data(1, b"more"))
    second = peer.open(3, (b"x-shared", b"value"), ends=True)

    assert [type(event) for event in first] == [RequestRefused]
    assert isinstance(first[0], RequestRefused)
    assert first[0].fault.status == 400
    assert rest == []
    assert isinstance(second[0], RequestArrived)
    assert second[0].head.fields[b"x-shared"] == b"value"


def test_stream_too_many_is_refused_by_a_reset() -> None:
    """The client may repeat it; a place becomes free when a stream ends."""
    peer = Peer()
    for number in range(MAX_STREAMS):
        peer.open(2 * number + 1, ends=True)

    events = peer.open(2 * MAX_STREAMS + 1, ends=True)
    (frame,) = peer.receive()
    peer.answer(1)
    later = peer.open(2 * MAX_STREAMS + 3, ends=True)

    assert events == []
    assert isinstance(frame, RstStreamFrame)
    assert frame.error_code == ErrorCode.REFUSED_STREAM
    assert [type(event) for event in later] == [RequestArrived]


def test_answer_waits_for_windows_frame_by_frame() -> None:
    """Of the stream, then of the connection; its end comes with its last bytes."""
    peer = Peer()
    peer.send(SettingsFrame(0, settings={INITIAL_WINDOW_SIZE: 20_000}))
    peer.open(1, ends=True)
    peer.receive()
    body = memoryview(bytes(70_000))
    http = peer.http
    http.send_head(1, 200, [(b"content-length", b"70000")], has_ended=False)

    taken = [http.send_data(1, body, is_last=True)]
    taken.append(http.send_data(1, body[16_384:], is_last=True))
    taken.append(http.send_data(1, body[20_000:], is_last=True))
    peer.send(WindowUpdateFrame(1, window_increment=100_000))
    sent = 20_000
    while took := http.send_data(1, body[sent:], is_last=True):
        sent += took
    peer.send(WindowUpdateFrame(0, window_increment=100_000))
    last = http.send_data(1, body[sent:], is_last=True)

    frames = [frame for frame in peer.receive() if isinstance(frame, DataFrame)]
    assert taken == [16_384, 3_616, 0]
    assert sent == WINDOW_BYTES
    assert last is None
    assert sum(len(frame.data) for frame in frames) == 70_000
    assert ["END_STREAM" in frame.flags for frame in frames] == [False] * 5 + [True]
    assert not http.is_open(1)


def test_window_that_shrinks_below_zero_is_waited_for() -> None:
    """Settings may take back what was given. Source: RFC 9113 section 6.9.2."""
    peer = Peer()
    peer.open(1, ends=True)
    peer.http.send_head(1, 200, [], has_ended=False)
    body = memoryview(bytes(1000))
    assert peer.http.send_data(1, body, is_last=False) is None

    peer.send(SettingsFrame(0, settings={INITIAL_WINDOW_SIZE: 0}))

    assert peer.http.send_data(1, body, is_last=True) == 0
    peer.send(WindowUpdateFrame(1, window_increment=1500))
    assert peer.http.send_data(1, body, is_last=True) == 500


def test_reset_by_the_client_is_told_once() -> None:
    """And closes the stream: nothing can be sent on it."""
    peer = Peer()
    peer.open(1)

    events = peer.send(RstStreamFrame(1, error_code=8), RstStreamFrame(1, error_code=8))

    assert events == [StreamReset(1)]
    assert not peer.http.is_open(1)
    peer.http.reset(1, ErrorCode.CANCEL)
    peer.http.send_continue(1)
    assert peer.receive() == []
