"""How HTTP/2 connections end: drained, left, at fault, or because the client asks too much."""

import pytest
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.http.h2_peer import INITIAL_WINDOW_SIZE, Peer, code_of, data
from vsr.http.h2_allowance import Allowance
from vsr.http.h2_events import (
    ConnectionEnded,
    DrainAnswered,
    PeerLeaving,
    RequestArrived,
)
from vsr.http.h2_frames import ErrorCode
from vsr.http.h2_library import STREAM_WINDOW_BYTES
from vsr.http.h2_server import NOISE, RESETS, RESETS_PER_S


def test_drain_takes_crossing_streams_and_refuses_later_ones() -> None:
    """Streams under way go on to their end."""
    peer = Peer()
    peer.open(1, ends=True)
    peer.receive()
    peer.http.begin_drain()
    goaway, ping = peer.receive()
    crossing = peer.open(3, ends=True)
    assert isinstance(ping, PingFrame)

    answered = peer.send(PingFrame(0, ping.opaque_data, flags=["ACK"]))
    peer.http.finish_drain()
    peer.http.finish_drain()
    late = peer.open(5, ends=True)
    final, refusal = peer.receive()
    peer.answer(1, b"x")
    peer.answer(3, b"x")

    assert isinstance(goaway, GoAwayFrame)
    assert isinstance(final, GoAwayFrame)
    assert isinstance(refusal, RstStreamFrame)
    assert (goaway.last_stream_id, goaway.error_code) == (2**31 - 1, ErrorCode.NO_ERROR)
    assert (final.last_stream_id, final.error_code) == (3, ErrorCode.NO_ERROR)
    assert refusal.error_code == ErrorCode.REFUSED_STREAM
    assert [type(event) for event in crossing] == [RequestArrived]
    assert answered == [DrainAnswered()]
    assert late == []
    assert sum(isinstance(frame, DataFrame) for frame in peer.receive()) == 2


def test_client_that_leaves_is_still_answered() -> None:
    """Its GOAWAY concerns streams that we would open."""
    peer = Peer()
    peer.open(1, ends=True)
    peer.receive()

    events = peer.send(GoAwayFrame(0, last_stream_id=0, error_code=0))
    peer.answer(1, b"x")

    assert events == [PeerLeaving()]
    head, body = peer.receive()
    assert isinstance(head, HeadersFrame)
    assert isinstance(body, DataFrame)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x", ErrorCode.PROTOCOL_ERROR),
        (data(9, b"x"), ErrorCode.PROTOCOL_ERROR),
        (WindowUpdateFrame(9, window_increment=1), ErrorCode.PROTOCOL_ERROR),
        (PushPromiseFrame(1, 2, b"", flags=["END_HEADERS"]), ErrorCode.PROTOCOL_ERROR),
        (HeadersFrame(2, b"\x82", flags=["END_HEADERS"]), ErrorCode.PROTOCOL_ERROR),
        (HeadersFrame(9, b"\xff\xff\xff\xff\x0f", flags=["END_HEADERS"]), ErrorCode.PROTOCOL_ERROR),
        (SettingsFrame(0, settings={INITIAL_WINDOW_SIZE: 2**31}), ErrorCode.FLOW_CONTROL_ERROR),
        (WindowUpdateFrame(0, window_increment=2**31 - 1), ErrorCode.FLOW_CONTROL_ERROR),
    ],
)
def test_what_nobody_could_go_on_from_ends_the_connection(
    frame: Frame | bytes, code: ErrorCode
) -> None:
    """With a GOAWAY that says why."""
    peer = Peer()
    peer.open(1, ends=True)

    events = peer.send(frame)

    goaway = peer.receive()[-1]
    assert events == [ConnectionEnded(code)]
    assert isinstance(goaway, GoAwayFrame)
    assert (goaway.last_stream_id, goaway.error_code) == (1, code)


def test_events_before_a_fault_are_not_lost_with_it() -> None:
    """They arrived in the same read."""
    peer = Peer()

    events = peer.send(peer.head(1, ends=True), data(9, b"x"), peer.head(3, ends=True))

    assert [type(event) for event in events] == [RequestArrived, ConnectionEnded]
    assert peer.open(5, ends=True) == []
    frames = peer.receive()
    assert isinstance(frames[-1], GoAwayFrame)
    assert (frames[-1].last_stream_id, frames[-1].error_code) == (1, ErrorCode.PROTOCOL_ERROR)


def test_nothing_is_sent_once_the_connection_has_ended() -> None:
    """Whatever is asked for."""
    peer = Peer()
    peer.open(1)
    peer.http.end(ErrorCode.NO_ERROR)
    peer.receive()

    peer.http.end(ErrorCode.NO_ERROR)
    peer.http.begin_drain()
    peer.http.finish_drain()
    peer.http.reset(1, ErrorCode.CANCEL)
    peer.http.send_continue(1)
    peer.http.credit(1, STREAM_WINDOW_BYTES)

    assert not peer.http.is_open(1)
    assert peer.receive() == []


def test_field_list_that_unpacks_to_too_much_ends_the_connection() -> None:
    """A few bytes may name a long field again and again."""
    peer = Peer()
    bomb = peer.head(1, (b"x", b"y" * 3000), ends=True)
    bomb.data += b"\xbe" * 500  # the newest entry of the table

    assert code_of(peer.send(bomb)) == ErrorCode.ENHANCE_YOUR_CALM


def test_resets_are_bounded_and_allowed_again_in_time() -> None:
    """CVE-2023-44487: as many at once as the allowance, later as many as its rate."""
    peer = Peer()
    stream_ids = iter(range(1, 10**6, 2))

    def reset_some(count: int) -> int | None:
        for stream_id in (next(stream_ids) for _ in range(count)):
            events = peer.send(peer.head(stream_id), RstStreamFrame(stream_id))
            if code_of(events) is not None:
                return code_of(events)
        return None

    at_once = reset_some(RESETS)
    peer.now += 10
    in_time = reset_some(int(10 * RESETS_PER_S))
    too_soon = reset_some(2)

    assert (at_once, in_time, too_soon) == (None, None, ErrorCode.ENHANCE_YOUR_CALM)


def test_window_updates_of_a_long_answer_are_no_flood() -> None:
    """They come with the data that they answer."""
    peer = Peer()
    peer.open(1, ends=True)
    peer.http.send_head(1, 200, [], has_ended=False)

    for _ in range(3 * NOISE):
        assert peer.http.send_data(1, memoryview(b"event"), is_last=False) is None
        events = peer.send(
            WindowUpdateFrame(0, window_increment=5), WindowUpdateFrame(1, window_increment=5)
        )
        assert events == []


def test_allowance_refills_no_further_than_its_measure() -> None:
    """Neither time nor work saves up for a flood."""
    allowance = Allowance(2, 1.0)

    first = [allowance.may_spend(100.0) for _ in range(3)]
    allowance.earn(50)
    second = [allowance.may_spend(100.0) for _ in range(3)]
    third = [allowance.may_spend(1000.0) for _ in range(3)]

    assert first == second == third == [True, True, False]
    assert allowance.may_spend(1001.5)
