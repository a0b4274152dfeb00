"""The client side of an HTTP/2 connection, without I/O: requests out, responses in.

Strict as the HTTP/1.1 one is: what breaks a response is that stream's fault and resets it, what
breaks the connection's own rules ends the connection. See `h2_server` for how the library is used.
"""

from collections import deque

import h2.events
import msgspec
from h2.exceptions import ProtocolError

from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
from vsr.http.h2_allowance import Allowance
from vsr.http.h2_client_events import (
    ClientEvent,
    HeadArrived,
    ResponseBroken,
    ResponseEnded,
    StreamClosed,
)
from vsr.http.h2_client_library import ClientLibrary
from vsr.http.h2_events import BodyArrived, ConnectionEnded
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
    read_goaway,
)
from vsr.http.h2_head import check_head_bytes, check_trailers, head_bytes, read_h2_response
from vsr.http.h2_library import LAST_POSSIBLE_STREAM, STREAM_WINDOW_BYTES

STREAMS_AT_MOST = 100
"""Requests at a time on one connection, if the server takes as many. Source: RFC 9113 section
6.5.2, what servers should allow at least."""
NOISE = 1_000
NOISE_PER_S = 100.0
"""Frames that ask for work and carry no response: settings, pings, window updates, empty data,
resets of what is closed, late ones. A connection at work earns more; see `h2_server`."""
_EARNED_BY_SENDING = 4
_EARNED_BY_DATA = 1
_RESET_FRAME_BYTES = 13
_RESETS_REMEMBERED = 4 * STREAMS_AT_MOST
_CREDIT_BYTES = STREAM_WINDOW_BYTES // 4
_CONNECTION_CREDIT_BYTES = 65_536
_NOISY = frozenset(
    {Kind.PRIORITY, Kind.SETTINGS, Kind.PING, Kind.GOAWAY, Kind.WINDOW_UPDATE, Kind.PUSH_PROMISE}
)
_PING_DATA = b"anyone?!"


class _Stream(msgspec.Struct):
    """One stream that is not closed."""

    is_head_request: bool
    is_sent: bool
    """Whether the whole request is put out."""
    has_head: bool = False
    head_bytes: int = 0
    """Of the head, informational ones before it included."""
    left: int | None = None
    """Bytes of a declared length that are still to come."""
    owed: int = 0
    """Bytes read whose window has not been given back."""
    has_ended: bool = False
    """Whether the server has sent all of it."""
    is_endless: bool = False
    """Whether trailers came that did not end it."""


class ClientConnection:
    """One backend connection; never raises for what the server sends, see `ConnectionEnded`."""

    def __init__(self) -> None:
        self._splitter = FrameSplitter(has_preface=False)
        self._events: deque[ClientEvent] = deque()
        self._streams: dict[int, _Stream] = {}
        self._output: list[bytes] = []
        self._noise = Allowance(NOISE, NOISE_PER_S)
        self._now = 0.0
        self._owed = 0
        self._is_over = False
        self._next_id = 1
        self._last_id = LAST_POSSIBLE_STREAM
        self._allowed = 0
        """Streams at a time, by the server's settings; 0 before they came."""
        self._reset_by_us: dict[int, None] = {}
        """Streams that the server may still send on, oldest first."""
        self.has_settings = False
        """Whether the server has said what it allows, and so that it speaks HTTP/2."""
        self._h2 = ClientLibrary()

    @property
    def capacity(self) -> int:
        """Return how many requests may be under way at a time; 0 if no more can be begun."""
        return 0 if self.is_leaving else min(self._allowed, STREAMS_AT_MOST)

    @property
    def is_leaving(self) -> bool:
        """Return whether no more requests can be begun; those under way may go on."""
        return self._is_over or self._last_id < LAST_POSSIBLE_STREAM or self._is_used_up

    def feed(self, data: bytes, *, now: float) -> None:
        """Take bytes from the server (`now`: monotonic seconds)."""
        self._now = now
        if not self._is_over:
            self._splitter.feed(data)

    def next_event(self) -> ClientEvent | None:
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
        """Return what is to be sent to the server."""
        data = self._h2.data_to_send()
        if not self._output:
            return data
        self._output.append(data)
        data = b"".join(self._output)
        self._output.clear()
        return data

    def open(self, fields: list[HeaderLine], *, is_head_request: bool, has_ended: bool) -> int:
        """Begin a request, which `capacity` must have room for; return its stream.

        Args:
            fields: as `h2_head.encode_h2_request` writes them.
            is_head_request: its response has no body.
            has_ended: whether no body follows.
        """
        stream_id = self._next_id
        self._next_id += 2
        self._h2.send_headers(stream_id, fields, end_stream=has_ended)
        # For a body behind a HEAD request the library would end the connection.
        self._h2.streams[stream_id].request_method = None
        self._streams[stream_id] = _Stream(is_head_request, is_sent=has_ended)
        self._noise.earn(_EARNED_BY_SENDING)
        return stream_id

    def send_data(self, stream_id: int, data: memoryview, *, is_last: bool = True) -> int | None:
        """Send what the windows allow of `data`, one frame at most.

        It is not empty unless it is the last. Returns how many bytes that was; None when that was
        the end of the request.
        """
        stream = self._streams.get(stream_id)
        if stream is None or stream.has_ended or self._is_over:
            return 0  # nobody reads it
        size = len(data)
        room = min(self._h2.local_flow_control_window(stream_id), MAX_FRAME_BYTES)
        if room <= 0 < size:
            return 0
        self._noise.earn(_EARNED_BY_SENDING)
        if room < size:
            self._h2.send_data(stream_id, data[:room])
            return room
        self._h2.send_data(stream_id, data, end_stream=is_last)
        if not is_last:
            return size
        stream.is_sent = True
        return None

    def credit(self, stream_id: int, size: int) -> bool:
        """Let the server send so many more bytes on a stream: they were read.

        Returns:
            Whether there is output of it.
        """
        stream = self._streams.get(stream_id)
        if stream is None or stream.has_ended or self._is_over:
            return False
        stream.owed += size
        if stream.owed < _CREDIT_BYTES:
            return False
        self._h2.increment_flow_control_window(stream.owed, stream_id)
        stream.owed = 0
        return True

    def reset(self, stream_id: int, code: ErrorCode) -> bool:
        """Close a stream and return True; if it is closed already, do nothing."""
        if self._streams.pop(stream_id, None) is None or self._is_over:
            return False
        self._reset(stream_id, code)
        return True

    def ping(self) -> None:
        """Ask for a sign of life; whatever arrives is one."""
        if not self._is_over:
            self._h2.ping(_PING_DATA)

    def end(self, code: int) -> None:
        """Tell the server why the connection ends; nothing more comes or goes."""
        if not self._is_over:
            self._is_over = True
            self._output += (self._h2.data_to_send(), encode_goaway(0, code))

    @property
    def _is_used_up(self) -> bool:
        return self._next_id > LAST_POSSIBLE_STREAM

    def _take(self, frame: Frame) -> None:
        kind = frame.kind
        if kind > Kind.CONTINUATION or kind in _NOISY or self._is_vain(frame):
            self._charge()
        if kind == Kind.GOAWAY:
            self._on_goaway(read_goaway(frame))
        elif kind == Kind.PUSH_PROMISE:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)  # we have said that we want none
        elif kind in {Kind.DATA, Kind.HEADERS}:
            self._take_message(frame)
        elif kind <= Kind.CONTINUATION:
            self._pass_on(frame.whole)

    def _take_message(self, frame: Frame) -> None:
        stream_id = frame.stream_id
        if not stream_id % 2 or stream_id >= self._next_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)
        stream = self._streams.get(stream_id)
        if stream is None:
            self._discard_late(frame)
        elif frame.kind == Kind.HEADERS:
            self._pass_on(self._with_end(frame, stream))
        elif stream.has_head:
            self._pass_on(frame.whole)
        else:
            self._break(stream_id, stream, FramingError("body without a head"))
            self._discard_late(frame)

    def _pass_on(self, whole: bytes) -> None:
        for event in self._h2.receive_data(whole):
            self._translate(event)

    def _is_vain(self, frame: Frame) -> bool:
        """Return whether a frame is data without bytes, or resets what is closed already."""
        if frame.kind == Kind.DATA:
            return len(frame.whole) == HEADER_BYTES and not frame.flags & Flag.END_STREAM
        return frame.kind == Kind.RST_STREAM and frame.stream_id not in self._streams

    def _with_end(self, frame: Frame, stream: _Stream) -> bytes:
        """Return a field list as the library is to see it.

        It would end the connection over trailers without an end: they are shown with one, and
        `_on_trailers` knows better.
        """
        has_ended = bool(frame.flags & Flag.END_STREAM)
        self._h2.keeper.is_last = has_ended or stream.has_head
        if has_ended or not stream.has_head:
            return frame.whole
        stream.is_endless = True
        whole = bytearray(frame.whole)
        whole[4] |= Flag.END_STREAM
        return bytes(whole)

    def _discard_late(self, frame: Frame) -> None:
        """Let the library count what comes on a closed stream, without closing it once more."""
        if frame.stream_id not in self._reset_by_us:
            self._charge()
        self._h2.keeper.is_last = True
        self._output.append(self._h2.data_to_send())
        self._h2.receive_data(frame.whole)
        self._output.append(self._h2.data_to_send()[:-_RESET_FRAME_BYTES])

    def _on_goaway(self, last_id: int) -> None:
        """Give up the streams that the server says it never looked at.

        Source: RFC 9113 section 6.8.
        """
        self._last_id = min(self._last_id, last_id, LAST_POSSIBLE_STREAM - 1)
        for stream_id in [each for each in self._streams if each > last_id]:
            is_refused = not self._streams.pop(stream_id).has_head
            # The library must know, the server need not.
            self._output.append(self._h2.data_to_send())
            self._reset(stream_id, ErrorCode.CANCEL)
            self._h2.data_to_send()
            self._events.append(StreamClosed(stream_id, is_refused))

    def _translate(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ResponseReceived() | h2.events.InformationalResponseReceived():
                self._on_head(event.stream_id)
            case h2.events.DataReceived():
                self._on_data(event)
            case h2.events.TrailersReceived():
                self._on_trailers(event.stream_id)
            case h2.events.StreamReset():
                self._on_reset(event.stream_id, event.error_code)
            case h2.events.RemoteSettingsChanged():
                self.has_settings = True
                self._allowed = self._h2.remote_settings.max_concurrent_streams
            case _:
                pass  # what the library acts on itself; ends stand in the events they came with

    def _on_head(self, stream_id: int) -> None:
        stream, keeper = self._streams[stream_id], self._h2.keeper
        stream.head_bytes += head_bytes(keeper.fields)
        try:
            check_head_bytes(stream.head_bytes)
            head = read_h2_response(
                keeper.fields, has_ended=keeper.is_last, is_head_request=stream.is_head_request
            )
        except FramingError as fault:
            stream.has_ended = keeper.is_last
            self._break(stream_id, stream, fault)
            return
        if head is None:
            return
        stream.has_head, stream.left = True, head.length
        self._events.append(HeadArrived(stream_id, head, keeper.is_last))
        if keeper.is_last:
            self._ended(stream_id, stream)

    def _on_data(self, event: h2.events.DataReceived) -> None:
        stream_id, data, flow_bytes = event.stream_id, event.data, event.flow_controlled_length
        self._owed += flow_bytes
        if self._owed >= _CONNECTION_CREDIT_BYTES:
            self._h2.increment_flow_control_window(self._owed)
            self._owed = 0
        stream = self._streams[stream_id]
        stream.has_ended = event.stream_ended is not None
        if data:
            self._noise.earn(_EARNED_BY_DATA)
            if stream.left is not None:
                stream.left -= len(data)
                if stream.left < 0:
                    fault = FramingError("body is longer than its Content-Length")
                    self._break(stream_id, stream, fault)
                    return
            self._events.append(BodyArrived(stream_id, data))
        if stream.has_ended:
            self._end(stream_id, stream)
        elif flow_bytes > len(data):
            self.credit(stream_id, flow_bytes - len(data))

    def _on_trailers(self, stream_id: int) -> None:
        stream = self._streams[stream_id]
        stream.has_ended = True
        if stream.is_endless:
            self._break(stream_id, stream, FramingError("trailers without an end"))
            return
        try:
            check_trailers(self._h2.keeper.fields)
        except FramingError as fault:
            self._break(stream_id, stream, fault)
        else:
            self._end(stream_id, stream)

    def _end(self, stream_id: int, stream: _Stream) -> None:
        if stream.left:
            fault = FramingError("body is shorter than its Content-Length")
            self._break(stream_id, stream, fault)
            return
        self._events.append(ResponseEnded(stream_id))
        self._ended(stream_id, stream)

    def _ended(self, stream_id: int, stream: _Stream) -> None:
        stream.has_ended = True
        if stream.is_sent:
            del self._streams[stream_id]

    def _on_reset(self, stream_id: int, code: int | None) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            is_refused = code == ErrorCode.REFUSED_STREAM and not stream.has_head
            self._events.append(StreamClosed(stream_id, is_refused))

    def _break(self, stream_id: int, stream: _Stream, fault: FramingError) -> None:
        del self._streams[stream_id]
        if not (stream.is_sent and stream.has_ended):
            self._reset(stream_id, ErrorCode.PROTOCOL_ERROR)
        self._events.append(ResponseBroken(stream_id, fault))

    def _reset(self, stream_id: int, code: ErrorCode) -> None:
        self._h2.reset_stream(stream_id, code)
        self._reset_by_us[stream_id] = None
        if len(self._reset_by_us) > _RESETS_REMEMBERED:
            del self._reset_by_us[next(iter(self._reset_by_us))]

    def _charge(self) -> None:
        if not self._noise.may_spend(self._now):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM)
