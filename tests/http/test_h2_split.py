"""HTTP/2 in any pieces: what arrives together and what arrives byte by byte mean the same."""

from collections.abc import Callable, Iterable

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.h2_peer import FIELDS, INITIAL_WINDOW_SIZE, data, drain
from tests.http.messages import cut, cuts
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
from vsr.http.h2_events import (
    BodyBroken,
    Event,
    RequestRefused,
)
from vsr.http.h2_frames import PREFACE
from vsr.http.h2_server import ServerConnection

EXTRA_FIELDS: list[list[HeaderLine]] = [
    [],
    [(b"content-length", b"5")],
    [(b"connection", b"x")],
    [(b"x", b"y" * 300)],
]
OTHER_FRAMES: list[Callable[[int], Frame]] = [
    lambda stream_id: data(stream_id, b"abcde"),
    lambda stream_id: data(stream_id, b"", ends=True),
    lambda stream_id: data(stream_id, b"x", ends=True),
    RstStreamFrame,
    lambda stream_id: WindowUpdateFrame(stream_id, window_increment=10),
    lambda stream_id: PriorityFrame(stream_id, depends_on=99),
    lambda stream_id: ContinuationFrame(stream_id, b""),
    lambda _: PingFrame(0, b"12345678"),
    lambda _: SettingsFrame(0, settings={INITIAL_WINDOW_SIZE: 100}),
    lambda _: GoAwayFrame(0, last_stream_id=0),
]


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Return what a client might send, sound or not: frames of a few streams in any order."""
    encoder = Encoder()
    frames: list[Frame] = [SettingsFrame(0)]
    next_id = 1
    for _ in range(draw(st.integers(0, 25))):
        stream_id = draw(st.sampled_from([1, 3, next_id]))
        what = draw(st.sampled_from(["head", "head", "trailers", "other", "other", "other"]))
        if what == "head":
            fields = [*FIELDS, *draw(st.sampled_from(EXTRA_FIELDS))]
            frames += head_frames(next_id, encoder.encode(fields), ends=draw(st.booleans()))
            next_id += 2
        elif what == "trailers":
            frames += head_frames(stream_id, encoder.encode([(b"x-trailer", b"value")]), ends=True)
        else:
            frames.append(draw(st.sampled_from(OTHER_FRAMES))(stream_id))
    return PREFACE + b"".join(frame.serialize() for frame in frames)


def head_frames(stream_id: int, block: bytes, *, ends: bool) -> list[Frame]:
    """Return a header block in two frames."""
    return [
        HeadersFrame(stream_id, block[:3], flags=["END_STREAM"] if ends else []),
        ContinuationFrame(stream_id, block[3:], flags=["END_HEADERS"]),
    ]


def told(event: Event) -> object:
    """Return an event so that equal ones compare equal: errors do not."""
    if isinstance(event, RequestRefused | BodyBroken):
        return type(event), event.stream_id, str(event.fault), event.fault.status
    return event


def run(pieces: Iterable[bytes]) -> tuple[list[object], bytes]:
    """Return the events of some reads, and what the server sends because of them."""
    http = ServerConnection()
    events: list[Event] = []
    output = http.take_output()
    for piece in pieces:
        http.feed(piece, now=0.0)
        events += drain(http)
        output += http.take_output()
    return [told(event) for event in events], output


@settings(deadline=None)
@given(raw=conversations(), places=cuts)
def test_any_split_gives_the_same_events_and_answers(raw: bytes, places: list[int]) -> None:
    """Faults included, and what the client is told."""
    assert run(cut(raw, places)) == run([raw])


@settings(deadline=None)
@given(raw=conversations(), at=st.integers(0, 5000), byte=st.integers(0, 255))
def test_no_byte_makes_it_raise(raw: bytes, at: int, byte: int) -> None:
    """A client can end its connection, and nothing else."""
    at %= len(raw)

    events, _ = run([raw[:at] + bytes([byte]) + raw[at + 1 :], b"\x00" * 100])

    assert all(not isinstance(event, FramingError) for event in events)
