"""An HTTP/2 server without I/O and a client that sends it frames."""

from collections.abc import Iterable, Sequence

import attrs
from hpack import Encoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    HeadersFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from vsr.headers import HeaderLine
from vsr.http.h2_events import (
    ConnectionEnded,
    Event,
)
from vsr.http.h2_frames import PREFACE
from vsr.http.h2_server import ServerConnection

FIELDS: list[HeaderLine] = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":authority", b"h"),
    (b":path", b"/x"),
]
WINDOW_BYTES = 65_535
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, HEADER_TABLE_SIZE = 3, 4, 1


@attrs.define
class Peer:
    """A client that encodes frames, and a server that has read its preface."""

    http: ServerConnection = attrs.field(factory=ServerConnection)
    encoder: Encoder = attrs.field(factory=Encoder)
    now: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.send(PREFACE, SettingsFrame(0))
        self.receive()

    def send(self, *frames: Frame | bytes) -> list[Event]:
        """Send frames, or any bytes; return what the server tells of them."""
        for frame in frames:
            self.http.feed(frame if isinstance(frame, bytes) else frame.serialize(), now=self.now)
        return drain(self.http)

    def head(self, stream_id: int, *lines: HeaderLine, ends: bool = False) -> HeadersFrame:
        """Return a request's head."""
        flags = ["END_HEADERS", "END_STREAM"] if ends else ["END_HEADERS"]
        return HeadersFrame(stream_id, self.encoder.encode([*FIELDS, *lines]), flags=flags)

    def trailers(self, stream_id: int, *lines: HeaderLine) -> HeadersFrame:
        """Return the fields behind a body."""
        flags = ["END_HEADERS", "END_STREAM"]
        return HeadersFrame(stream_id, self.encoder.encode(lines), flags=flags)

    def open(self, stream_id: int, *lines: HeaderLine, ends: bool = False) -> list[Event]:
        """Open a stream."""
        return self.send(self.head(stream_id, *lines, ends=ends))

    def receive(self) -> list[Frame]:
        """Return what the server has sent."""
        return parse(self.http.take_output())

    def answer(self, stream_id: int, body: bytes = b"") -> None:
        """Send a whole answer that fits into the windows."""
        self.http.send_head(stream_id, 200, [], has_ended=not body)
        if body:
            assert self.http.send_data(stream_id, memoryview(body), is_last=True) is None


def drain(http: ServerConnection) -> list[Event]:
    """Return all events there are."""
    events = []
    while (event := http.next_event()) is not None:
        events.append(event)
    return events


def parse(data: bytes) -> list[Frame]:
    """Return the frames of what a server sent."""
    frames = []
    while data:
        frame, length = Frame.parse_frame_header(memoryview(data[:9]))
        frame.parse_body(memoryview(data[9 : 9 + length]))
        frames.append(frame)
        data = data[9 + length :]
    return frames


def data(stream_id: int, body: bytes, *, ends: bool = False) -> DataFrame:
    """Return a frame of a body."""
    return DataFrame(stream_id, body, flags=["END_STREAM"] if ends else [])


def code_of(events: Sequence[Event]) -> int | None:
    """Return why the connection ended, None if it has not."""
    return next((event.code for event in events if isinstance(event, ConnectionEnded)), None)


def credit(frames: Iterable[Frame], stream_id: int) -> int:
    """Return the bytes that a stream, or connection 0, was given back."""
    return sum(
        frame.window_increment
        for frame in frames
        if isinstance(frame, WindowUpdateFrame) and frame.stream_id == stream_id
    )
