"""The server side of an HTTP/2 connection, without I/O: bytes in, events out, and back.

The library keeps the state machine, the windows and the header compression. What it would end a
whole connection over although only one stream is at fault, malformed fields and one stream too
many, is kept from it and judged here.
"""

from collections import deque
from collections.abc import Iterable

import h2.events
import msgspec
from h2.exceptions import ProtocolError

from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
from vsr.http.h2_allowance import Allowance
from vsr.http.h2_events import (
    BodyArrived,
    BodyBroken,
    BodyEnded,
    ConnectionEnded,
    DrainAnswered,
    Event,
    PeerLeaving,
    RequestArrived,
    RequestRefused,
    StreamReset,
)
from vsr.http.h2_frames import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    ConnectionFault,
    ErrorCode,
    Flag,
    Frame,
    FrameSplitter,
    Kind,
    encode_goaway,
)
from vsr.http.h2_head import check_trailers, encode_h2_head, read_h2_head
from vsr.http.h2_library import (
    LAST_POSSIBLE_STREAM,
    MAX_STREAMS,
    STREAM_WINDOW_BYTES,
    Library,
)

RESETS = 1_000
RESETS_PER_S = 33.0
"""Streams that may end before their answer does, be it by the client or for its fault.
Source: nghttp2's defaults against rapid reset, CVE-2023-44487."""
NOISE = 1_000
NOISE_PER_S = 100.0
"""Frames that ask for work and carry no request: settings, pings, priorities, window updates,
empty data. Source: CVE-2019-9512 to 9518; a connection at work earns more."""
_NOISE_EARNED = 4
_RESET_FRAME_BYTES = 13
_RESETS_REMEMBERED = 2 * MAX_STREAMS
_CREDIT_BYTES = STREAM_WINDOW_BYTES // 4
_NOISY = frozenset(
    {Kind.PRIORITY, Kind.SETTINGS, Kind.PING, Kind.GOAWAY, Kind.WINDOW_UPDATE, Kind.PUSH_PROMISE}
)


class _Stream(msgspec.Struct):
    """One stream that is not closed."""

    left: int | None = None
    """Bytes of a declared length that are still to come."""
    owed: int = 0
    """Bytes read whose window has not been given back."""
    has_ended: bool = False
    """Whether the client has sent all of it."""
    is_broken: bool = False
    """Whether what still comes of it is dropped."""
    is_answered: bool = False


class ServerConnection:
    """One client connection; never raises for what the client sends, see `ConnectionEnded`."""

    def __init__(self) -> None:
        self._splitter = FrameSplitter()
        self._events: deque[Event] = deque()
        self._streams: dict[int, _Stream] = {}
        self._output: list[bytes] = []
        self._resets = Allowance(RESETS, RESETS_PER_S)
        self._noise = Allowance(NOISE, NOISE_PER_S)
        self._now = 0.0
        self._owed = 0
        self._is_over = False
        self._reset_by_us: dict[int, None] = {}
        """Streams that the client may still send on, oldest first."""
        self._last_stream = LAST_POSSIBLE_STREAM
        self._h2 = Library()

    @property
    def is_mid_head(self) -> bool:
        """Return whether the client owes us the rest of its preface or of a head."""
        return self._splitter.is_mid_head

    def feed(self, data: bytes, *, now: float) -> None:
        """Take bytes from the client (`now`: monotonic seconds)."""
        self._now = now
        if not self._is_over:
            self._splitter.feed(data)

    def next_event(self) -> Event | None:
        """Return the next event, None when more bytes are needed."""
        while not self._events and not self._is_over:
            try:
                frame = self._splitter.next_frame()
                if frame is None:
                    return None
                self._take(frame)
            except ConnectionFault as fault:
                self.end(fault.code)
                self._events.append(ConnectionEnded(fault.code))
            except ProtocolError as error:
                self._is_over = True  # the library has said why
                self._events.append(ConnectionEnded(error.error_code))
        return self._events.popleft() if self._events else None

    def take_output(self) -> bytes:
        """Return what is to be sent to the client."""
        data = self._h2.data_to_send()
        if not self._output:
            return data
        self._output.append(data)
        data = b"".join(self._output)
        self._output.clear()
        return data

    def credit(self, stream_id: int, size: int) -> None:
        """Let the client send so many more bytes on a stream: they were read."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.has_ended or self._is_over:
            return
        stream.owed += size
        if stream.owed >= _CREDIT_BYTES:
            self._h2.increment_flow_control_window(stream.owed, stream_id)
            stream.owed = 0

    def send_continue(self, stream_id: int) -> None:
        """Ask for the body."""
        if stream_id in self._streams and not self._is_over:
            self._h2.send_headers(stream_id, [(b":status", b"100")])

    def send_head(
        self, stream_id: int, status: int, lines: Iterable[HeaderLine], *, has_ended: bool
    ) -> None:
        """Send a response head on an open stream; `has_ended` if no body follows."""
        self._h2.send_headers(stream_id, encode_h2_head(status, lines), end_stream=has_ended)
        self._noise.earn(_NOISE_EARNED)
        if has_ended:
            self._answered(stream_id)

    def send_data(self, stream_id: int, data: memoryview, *, is_last: bool) -> int | None:
        """Send what the windows allow, one frame at most, on an open stream.

        Returns:
            How many bytes that was; None when that was all, its end included if `is_last`.
        """
        size = len(data)
        if size:
            window = self._h2.local_flow_control_window(stream_id)
            room = min(window, MAX_FRAME_BYTES)
            if room <= 0:
                return 0
            if room < size:
                self._h2.send_data(stream_id, data[:room])
                self._noise.earn(_NOISE_EARNED)
                return room
        if size or is_last:
            self._h2.send_data(stream_id, data, end_stream=is_last)
            self._noise.earn(_NOISE_EARNED)
        if is_last:
            self._answered(stream_id)
        return None

    def is_open(self, stream_id: int) -> bool:
        """Return whether something can still be sent on a stream."""
        stream = self._streams.get(stream_id)
        return stream is not None and not stream.is_answered and not self._is_over

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """Close a stream; if it is closed already, do nothing."""
        if self._streams.pop(stream_id, None) is not None and not self._is_over:
            self._reset(stream_id, code)

    def begin_drain(self) -> None:
        """Ask for no more streams; `DrainAnswered` tells that the client has heard it."""
        if not self._is_over:
            self._put(encode_goaway(LAST_POSSIBLE_STREAM, ErrorCode.NO_ERROR))
            self._h2.ping(b"draining")

    def finish_drain(self) -> None:
        """Refuse every stream from now on; those under way go on."""
        if not self._is_over and self._last_stream == LAST_POSSIBLE_STREAM:
            self._last_stream = self._h2.highest_inbound_stream_id
            self._put(encode_goaway(self._last_stream, ErrorCode.NO_ERROR))

    def end(self, code: int) -> None:
        """Tell the client why the connection ends; nothing more comes or goes."""
        if not self._is_over:
            self._is_over = True
            self._put(encode_goaway(self._h2.highest_inbound_stream_id, code))

    def _reset(self, stream_id: int, code: ErrorCode) -> None:
        self._h2.reset_stream(stream_id, code)
        self._reset_by_us[stream_id] = None
        if len(self._reset_by_us) > _RESETS_REMEMBERED:
            del self._reset_by_us[next(iter(self._reset_by_us))]

    def _put(self, data: bytes) -> None:
        self._output += (self._h2.data_to_send(), data)

    def _take(self, frame: Frame) -> None:
        kind, stream_id = frame.kind, frame.stream_id
        if kind > Kind.CONTINUATION or kind in _NOISY or self._is_vain(frame):
            self._charge(self._noise)
        if kind == Kind.GOAWAY:
            # The library would not let us send any more, although requests are under way.
            self._events.append(PeerLeaving())
            return
        if kind > Kind.CONTINUATION:
            return
        if kind == Kind.DATA and stream_id not in self._streams:
            self._discard_late(frame)
            return
        for event in self._h2.receive_data(frame.whole):
            self._translate(event)

    def _is_vain(self, frame: Frame) -> bool:
        """Return whether a frame is data without bytes, or resets what is closed already."""
        if frame.kind == Kind.DATA:
            return len(frame.whole) == HEADER_BYTES and not frame.flags & Flag.END_STREAM
        return frame.kind == Kind.RST_STREAM and frame.stream_id not in self._streams

    def _discard_late(self, frame: Frame) -> None:
        """Let the library count data of a closed stream; it resets the stream once more.

        That is left out where the client could not know: the data crossed with our own reset.
        """
        self._output.append(self._h2.data_to_send())
        self._h2.receive_data(frame.whole)
        answer = self._h2.data_to_send()
        if frame.stream_id in self._reset_by_us:
            answer = answer[:-_RESET_FRAME_BYTES]
        else:
            self._charge(self._noise)
        self._output.append(answer)

    def _translate(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._on_head(event.stream_id, has_ended=event.stream_ended is not None)
            case h2.events.DataReceived():
                self._on_data(event)
            case h2.events.TrailersReceived():
                self._on_trailers(event.stream_id)
            case h2.events.StreamReset():
                self._on_reset(event.stream_id)
            case h2.events.PingAckReceived():
                self._events.append(DrainAnswered())
            case _:
                pass  # what the library acts on itself; ends stand in the events they came with

    def _on_reset(self, stream_id: int) -> None:
        if self._streams.pop(stream_id, None) is not None:
            self._events.append(StreamReset(stream_id))
            self._charge(self._resets)

    def _on_head(self, stream_id: int, *, has_ended: bool) -> None:
        if len(self._streams) >= MAX_STREAMS or stream_id > self._last_stream:
            self._reset(stream_id, ErrorCode.REFUSED_STREAM)
            self._charge(self._resets)
            return
        stream = self._streams[stream_id] = _Stream(has_ended=has_ended)
        try:
            head = read_h2_head(self._h2.keeper.fields, has_ended=has_ended)
        except FramingError as fault:
            stream.is_broken = True
            self._events.append(RequestRefused(stream_id, fault))
            self._charge(self._resets)
            return
        stream.left = head.length
        self._events.append(RequestArrived(stream_id, head, has_ended))

    def _on_data(self, event: h2.events.DataReceived) -> None:
        stream_id, data, flow_bytes = event.stream_id, event.data, event.flow_controlled_length
        self._owed += flow_bytes
        if self._owed >= _CREDIT_BYTES:
            self._h2.increment_flow_control_window(self._owed)
            self._owed = 0
        stream = self._streams[stream_id]
        has_ended = event.stream_ended is not None
        if not stream.is_broken and data:
            if stream.left is not None:
                stream.left -= len(data)
            if stream.left is not None and stream.left < 0:
                self._break(stream_id, stream, "body is longer than its Content-Length")
            else:
                self._events.append(BodyArrived(stream_id, data))
        if has_ended:
            self._on_end(stream_id, stream)
        elif flow_bytes > len(data):
            self.credit(stream_id, flow_bytes - len(data))

    def _on_trailers(self, stream_id: int) -> None:
        stream = self._streams[stream_id]
        try:
            check_trailers(self._h2.keeper.fields)
        except FramingError as fault:
            self._break(stream_id, stream, str(fault))
        self._on_end(stream_id, stream)

    def _on_end(self, stream_id: int, stream: _Stream) -> None:
        stream.has_ended = True
        if not stream.is_broken:
            if stream.left:
                self._break(stream_id, stream, "body is shorter than its Content-Length")
            else:
                self._events.append(BodyEnded(stream_id))
        if stream.is_answered:
            del self._streams[stream_id]

    def _break(self, stream_id: int, stream: _Stream, reason: str) -> None:
        stream.is_broken = True
        self._events.append(BodyBroken(stream_id, FramingError(reason)))
        self._charge(self._resets)

    def _answered(self, stream_id: int) -> None:
        stream = self._streams[stream_id]
        stream.is_answered = True
        if stream.has_ended:
            del self._streams[stream_id]

    def _charge(self, allowance: Allowance) -> None:
        if not allowance.may_spend(self._now):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM)
