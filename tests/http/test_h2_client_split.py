"""The client side of HTTP/2 in any pieces, with streams in any order and with any faults."""

from collections.abc import Callable

import attrs
import msgspec
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.h2_origin import URL, events_of
from tests.http.h2_peer import INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, data
from tests.http.messages import cut, cuts
from vsr.headers import HeaderLine
from vsr.http.h2_client import ClientConnection
from vsr.http.h2_client_events import (
    ClientEvent,
    HeadArrived,
    ResponseBroken,
    ResponseEnded,
    StreamClosed,
)
from vsr.http.h2_events import BodyArrived, ConnectionEnded
from vsr.http.h2_frames import ErrorCode
from vsr.http.h2_head import encode_h2_request

HEADS: list[list[HeaderLine]] = [
    [(b":status", b"200")],
    [(b":status", b"200"), (b"content-length", b"5")],
    [(b":status", b"103"), (b"link", b"x")],
    [(b":status", b"200"), (b"connection", b"x")],
    [(b":status", b"204"), (b"x", b"y" * 300)],
    [(b"x-trailer", b"value")],
]
FRAMES: list[Callable[[int], Frame]] = [
    lambda stream_id: data(stream_id, b"abcde"),
    lambda stream_id: data(stream_id, b"abcde", ends=True),
    lambda stream_id: data(stream_id, b"", ends=True),
    lambda stream_id: RstStreamFrame(stream_id, error_code=7),
    lambda stream_id: WindowUpdateFrame(stream_id, window_increment=10),
    lambda stream_id: WindowUpdateFrame(stream_id, window_increment=2**31 - 1),
    lambda stream_id: PriorityFrame(stream_id, depends_on=99),
    lambda stream_id: ContinuationFrame(stream_id, b""),
    lambda stream_id: PushPromiseFrame(stream_id, 2, b"\x82", flags=["END_HEADERS"]),
    lambda stream_id: GoAwayFrame(0, last_stream_id=stream_id),
    lambda _: PingFrame(0, b"12345678"),
    lambda _: SettingsFrame(0, settings={INITIAL_WINDOW_SIZE: 100}),
    lambda _: SettingsFrame(0, settings={MAX_CONCURRENT_STREAMS: 1}),
]
STREAMS = (1, 3, 5, 7)
BODY = b"x" * 70_000


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Return what a server might send on four streams, sound or not."""
    encoder = Encoder()
    frames: list[Frame] = [SettingsFrame(0)]
    for _ in range(draw(st.integers(0, 25))):
        stream_id = draw(st.sampled_from([*STREAMS, *STREAMS, 9, 2]))
        if draw(st.booleans()):
            block = encoder.encode(draw(st.sampled_from(HEADS)))
            ends = ["END_STREAM"] if draw(st.booleans()) else []
            frames.append(HeadersFrame(stream_id, block[:2], flags=ends))
            frames.append(ContinuationFrame(stream_id, block[2:], flags=["END_HEADERS"]))
        else:
            frames.append(draw(st.sampled_from(FRAMES))(stream_id))
    return b"".join(frame.serialize() for frame in frames)


def asked() -> ClientConnection:
    """Return a client with four requests under way, two of them not sent in full."""
    http = ClientConnection()
    http.feed(SettingsFrame(0).serialize(), now=0.0)
    assert events_of(http) == []
    for stream_id in STREAMS:
        size = len(BODY) if stream_id > 3 else 0
        fields = encode_h2_request(b"POST", URL, [], size)
        assert http.open(fields, is_head_request=False, has_ended=not size) == stream_id
    http.take_output()
    return http


def told(event: ClientEvent) -> object:
    """Return an event as something that equals its like."""
    return str(event.fault) if isinstance(event, ResponseBroken) else msgspec.structs.asdict(event)


@given(conversations(), cuts)
@settings(max_examples=150, deadline=None)
def test_split_does_not_matter(wire: bytes, places: list[int]) -> None:
    """Same events and same output, faults included, however the bytes arrive."""
    whole, pieces = asked(), asked()
    whole.feed(wire, now=0.0)
    at_once = [told(event) for event in events_of(whole)]

    in_pieces: list[object] = []
    for piece in cut(wire, places):
        pieces.feed(piece, now=0.0)
        in_pieces += [told(event) for event in events_of(pieces)]

    assert in_pieces == at_once
    assert pieces.take_output() == whole.take_output()


@attrs.define
class Reader:
    """Holds what a connection tells to what may be told."""

    http: ClientConnection
    heads: set[int] = attrs.field(factory=set)
    ended: set[int] = attrs.field(factory=set)
    is_over: bool = False

    def take(self, event: ClientEvent) -> None:
        """Check one event against those before it."""
        assert not self.is_over
        if isinstance(event, ConnectionEnded):
            self.is_over = True
            return
        stream_id = event.stream_id
        assert stream_id in STREAMS
        if not isinstance(event, StreamClosed):
            assert stream_id not in self.ended, "nothing follows an end"
        if isinstance(event, HeadArrived):
            assert stream_id not in self.heads, "one head each"
            assert event.head.status >= 200
            self.heads.add(stream_id)
            if event.has_ended:
                self.ended.add(stream_id)
        elif isinstance(event, BodyArrived):
            assert event.data
            assert stream_id in self.heads
        elif isinstance(event, ResponseEnded | ResponseBroken | StreamClosed):
            assert isinstance(event, ResponseBroken | StreamClosed) or stream_id in self.heads
            self.ended.add(stream_id)


@given(conversations(), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=40))
@settings(max_examples=150, deadline=None)
def test_anything_a_server_sends_is_taken_in_order(
    wire: bytes, acts: list[tuple[int, int]]
) -> None:
    """It never raises, whatever we do meanwhile; per stream come one head, a body, one end."""
    http = asked()
    reader = Reader(http)
    left = {stream_id: memoryview(BODY) for stream_id in (5, 7)}
    step = max(1, len(wire) // (len(acts) + 1))

    for at, (which, act) in enumerate(acts):
        http.feed(wire[at * step : (at + 1) * step], now=0.0)
        for event in events_of(http):
            reader.take(event)
        stream_id = STREAMS[which]
        if act == 0 and http.reset(stream_id, ErrorCode.CANCEL):
            reader.ended.add(stream_id)
        elif act == 1:
            http.credit(stream_id, 70_000)
        elif act == 2 and left.get(stream_id):
            sent = http.send_data(stream_id, left[stream_id])
            left[stream_id] = left[stream_id][len(BODY) if sent is None else sent :]
        elif act == 3:
            http.ping()
        http.take_output()
    http.feed(wire[len(acts) * step :], now=0.0)
    for event in events_of(http):
        reader.take(event)


@given(st.data(), st.lists(st.binary(min_size=1, max_size=40_000), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_streams_do_not_mix(choices: st.DataObject, bodies: list[bytes]) -> None:
    """Responses whose frames alternate in any way arrive as they were sent."""
    http = ClientConnection()
    http.feed(SettingsFrame(0).serialize(), now=0.0)
    assert events_of(http) == []
    fields = encode_h2_request(b"POST", URL, [], 0)
    ids = [http.open(fields, is_head_request=False, has_ended=True) for _ in bodies]
    encoder = Encoder()
    queues: dict[int, list[tuple[bytes, bool]]] = {
        stream_id: _pieces(body) for stream_id, body in zip(ids, bodies, strict=True)
    }
    for stream_id in ids:
        block = encoder.encode([(b":status", b"200")])
        http.feed(HeadersFrame(stream_id, block, flags=["END_HEADERS"]).serialize(), now=0.0)
    got: dict[int, bytes] = dict.fromkeys(ids, b"")

    while queues:
        stream_id = choices.draw(st.sampled_from(sorted(queues)))
        piece, is_last = queues[stream_id].pop(0)
        if is_last:
            del queues[stream_id]
        flags = ["END_STREAM"] if is_last else []
        http.feed(DataFrame(stream_id, piece, flags=flags).serialize(), now=0.0)
        for event in events_of(http):
            if isinstance(event, BodyArrived):
                got[event.stream_id] += event.data
                http.credit(event.stream_id, len(event.data))

    assert list(got.values()) == bodies
    assert not http.is_leaving


def _pieces(body: bytes) -> list[tuple[bytes, bool]]:
    starts = range(0, len(body), 16_384)
    return [(body[at : at + 16_384], at + 16_384 >= len(body)) for at in starts]
