"""An HTTP/2 client that sends any frames, well-behaved or not, and keeps what it is told."""

from collections.abc import Sequence
from contextlib import suppress

import attrs
import trio
from hpack import Decoder, Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from vsr.headers import HeaderLine
from vsr.http.h2_frames import PREFACE
from vsr.network.port import Connection, ConnectionBroken

CHAT = b"/v1/chat/completions"
WINDOW_BYTES = 65_535
"""What either side may send before it is told more. Source: RFC 9113 section 6.9.2."""


@attrs.define
class Answer:
    """What came on one stream."""

    status: int = 0
    lines: list[HeaderLine] = attrs.field(factory=list)
    body: bytearray = attrs.field(factory=bytearray)
    has_ended: bool = False
    reset: int | None = None
    """Error code of a reset."""
    done: trio.Event = attrs.field(factory=trio.Event)
    """Set at the first end, clean or not, or when the connection is gone."""
    informational: list[int] = attrs.field(factory=list)
    frames: int = 0
    """Of data."""

    @property
    def is_whole(self) -> bool:
        """Return whether it came to a clean end."""
        return self.has_ended and self.status > 0

    def line(self, name: bytes) -> bytes:
        """Return the value of a field, empty if absent."""
        return next((value for key, value in self.lines if key == name), b"")


@attrs.define(eq=False)
class H2Client:
    """One connection; `start` it in a nursery.

    `settings` are sent at the start. `gives_credit` tells whether windows are given back as data
    comes, `answers` whether settings and pings are acknowledged.
    """

    connection: Connection
    settings: dict[int, int] = attrs.field(factory=dict)
    gives_credit: bool = True
    answers: bool = True
    preface: bytes = PREFACE
    streams: dict[int, Answer] = attrs.field(factory=dict)
    goaways: list[tuple[int, int]] = attrs.field(factory=list)
    """Last stream and error code of each."""
    seen: list[Frame] = attrs.field(factory=list)
    """Every frame but data, in order."""
    told: dict[int, int] = attrs.field(factory=dict)
    """The server's settings."""
    windows: dict[int, int] = attrs.field(factory=dict)
    """Bytes that the server has given back, by stream; 0 is the connection."""
    closed: trio.Event = attrs.field(factory=trio.Event)
    encoder: Encoder = attrs.field(factory=Encoder)
    _decoder: Decoder = attrs.field(factory=Decoder)
    _buffer: bytearray = attrs.field(factory=bytearray)
    _next_id: int = 1
    _sending: trio.Lock = attrs.field(factory=trio.Lock)

    async def start(self, nursery: trio.Nursery) -> "H2Client":
        """Send the preface and read from now on."""
        await self.connection.send(
            self.preface + SettingsFrame(0, settings=self.settings).serialize()
        )
        nursery.start_soon(self._read)
        return self

    async def send(self, *frames: Frame) -> None:
        """Send frames in one write."""
        await self.send_bytes(b"".join(frame.serialize() for frame in frames))

    async def send_bytes(self, data: bytes) -> None:
        """Send anything, behind what is on its way: acknowledgements are sent beside requests."""
        async with self._sending:
            await self.connection.send(data)

    def open(
        self,
        lines: Sequence[HeaderLine] = (),
        *,
        method: bytes = b"POST",
        target: bytes = CHAT,
        ends: bool = False,
    ) -> HeadersFrame:
        """Return the head of a new request, its stream expected to be answered."""
        fields = [
            (b":method", method),
            (b":scheme", b"http"),
            (b":authority", b"router"),
            (b":path", target),
            *lines,
        ]
        return self.open_raw(fields, ends=ends)

    def open_raw(self, fields: Sequence[HeaderLine], *, ends: bool = False) -> HeadersFrame:
        """Return the head of a new stream with exactly these fields."""
        stream_id, self._next_id = self._next_id, self._next_id + 2
        self.streams[stream_id] = Answer()
        frame = HeadersFrame(stream_id, self.encoder.encode(fields))
        frame.flags.add("END_HEADERS")
        if ends:
            frame.flags.add("END_STREAM")
        return frame

    async def request(
        self,
        body: bytes = b"",
        lines: Sequence[HeaderLine] = (),
        *,
        method: bytes = b"POST",
        target: bytes = CHAT,
    ) -> Answer:
        """Send a whole request of at most a window; return where its answer will be."""
        if body:
            lines = [(b"content-length", b"%d" % len(body)), *lines]
        head = self.open(lines, method=method, target=target, ends=not body)
        await self.send(head, *data_frames(head.stream_id, body, ends=True))
        return self.streams[head.stream_id]

    async def ask(
        self,
        body: bytes = b"",
        lines: Sequence[HeaderLine] = (),
        *,
        method: bytes = b"POST",
        target: bytes = CHAT,
    ) -> Answer:
        """Send a whole request and wait for the end of its answer."""
        answer = await self.request(body, lines, method=method, target=target)
        await answer.done.wait()
        return answer

    async def _read(self) -> None:
        with suppress(ConnectionBroken):
            while data := await self.connection.receive():
                self._buffer += data
                for frame in self._cut():
                    await self._take(frame)
        self.closed.set()
        for answer in self.streams.values():
            answer.done.set()

    def _cut(self) -> list[Frame]:
        frames = []
        while len(self._buffer) >= 9:
            frame, length = Frame.parse_frame_header(memoryview(bytes(self._buffer[:9])))
            if len(self._buffer) < 9 + length:
                break
            frame.parse_body(memoryview(bytes(self._buffer[9 : 9 + length])))
            del self._buffer[: 9 + length]
            frames.append(frame)
        return frames

    async def _take(self, frame: Frame) -> None:
        if not isinstance(frame, DataFrame):
            self.seen.append(frame)
        if isinstance(frame, HeadersFrame | DataFrame | RstStreamFrame):
            await self._take_of_stream(frame, self.streams[frame.stream_id])
        elif isinstance(frame, GoAwayFrame):
            self.goaways.append((frame.last_stream_id, frame.error_code))
        elif isinstance(frame, WindowUpdateFrame):
            given = self.windows.get(frame.stream_id, 0)
            self.windows[frame.stream_id] = given + frame.window_increment
        elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.told.update(frame.settings)
            await self._acknowledge(SettingsFrame(0, flags=["ACK"]))
        elif isinstance(frame, PingFrame) and "ACK" not in frame.flags:
            await self._acknowledge(PingFrame(0, frame.opaque_data, flags=["ACK"]))

    async def _take_of_stream(
        self, frame: HeadersFrame | DataFrame | RstStreamFrame, answer: Answer
    ) -> None:
        if isinstance(frame, RstStreamFrame):
            answer.reset = frame.error_code
            answer.done.set()
            return
        if isinstance(frame, HeadersFrame):
            assert "END_HEADERS" in frame.flags
            (_, status), *lines = self._decoder.decode(frame.data, raw=True)
            if int(status) < 200:
                answer.informational.append(int(status))
                return
            answer.status = int(status)
            answer.lines = [(bytes(name), bytes(value)) for name, value in lines]
        else:
            answer.frames += 1
            answer.body += frame.data
            await self._credit(frame)
        if "END_STREAM" in frame.flags:
            answer.has_ended = True
            answer.done.set()

    async def _credit(self, frame: DataFrame) -> None:
        size = len(frame.data)
        if self.gives_credit and size:
            with suppress(ConnectionBroken):
                await self.send(*credit_frames(frame.stream_id, size))

    async def _acknowledge(self, frame: Frame) -> None:
        if self.answers:
            with suppress(ConnectionBroken):
                await self.send(frame)


def credit_frames(stream_id: int, size: int) -> list[Frame]:
    """Return the frames that open the window of a stream and of the connection."""
    return [
        WindowUpdateFrame(0, window_increment=size),
        WindowUpdateFrame(stream_id, window_increment=size),
    ]


def data_frames(stream_id: int, body: bytes, *, ends: bool, size: int = 16_384) -> list[DataFrame]:
    """Return `body` as frames; none if there is neither a body nor an end to send."""
    frames = [
        DataFrame(stream_id, body[start : start + size]) for start in range(0, len(body), size)
    ]
    if ends and frames:
        frames[-1].flags.add("END_STREAM")
    return frames


def continuation(stream_id: int, data: bytes, *, ends: bool) -> ContinuationFrame:
    """Return one more frame of a header block."""
    frame = ContinuationFrame(stream_id, data)
    if ends:
        frame.flags.add("END_HEADERS")
    return frame


def reset(stream_id: int, code: int = 8) -> RstStreamFrame:
    """Return the frame that ends a stream; 8 stands for: no longer wanted."""
    return RstStreamFrame(stream_id, error_code=code)
