"""One request on an HTTP/2 connection and its response."""

from math import inf
from typing import Protocol

import outcome
import trio

from vsr.errors import BodyTooLarge, InvalidRequest, RequestTimedOut
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.writer import BAD_REQUEST
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError, RequestHead
from vsr.http.h2_frames import HEADER_BYTES, ErrorCode
from vsr.http.h2_server import ServerConnection
from vsr.network.h2_output import Output
from vsr.network.port import ConnectionBroken
from vsr.network.timers import LazyTimers, Timer
from vsr.routing.outcome import Cause

_NO_CONTENT = 204
"""Has no length either. Source: RFC 9110 section 8.6."""
_WITHOUT_BODY = (_NO_CONTENT, 304)
LINGER_S = 2.0
"""What a client that is still sending gets to read an early answer; then it is asked to stop.
Some take an answer and a reset that come together for a broken answer (curl 7.88)."""
_LENGTH = b"content-length"
_NOTHING = memoryview(b"")


class Carrier(Protocol):
    """The connection that carries an exchange."""

    http: ServerConnection
    output: Output
    scheme: bytes
    peer: str
    timers: LazyTimers

    @property
    def idle_s(self) -> float:
        """Return how long the client may be silent."""
        ...

    def now(self) -> float:
        """Return monotonic seconds."""
        ...


class H2Exchange:
    """One stream; see `vsr.gateway.exchange.Exchange`."""

    protocol = "HTTP/2"
    # Defaults stand on the class: most stay as they are.
    is_committed = False
    has_ended = False
    status = 0
    bytes_sent = 0
    is_gone = False
    """Whether nobody waits for the response any more."""
    is_stuck = False
    """Whether what was written has not all gone out."""
    is_behind = False
    """Never: what is written waits in order, and leaves in whole frames."""
    scope: RequestScope | None = None
    """Of the request, once its work has begun."""
    _cause: Cause | None = None
    """Why nobody waits."""
    _fault: FramingError | None = None
    _reader: trio.lowlevel.Task | None = None
    _writer: trio.lowlevel.Task | None = None
    _silence: Timer | None = None
    _deadline: Timer | None = None
    _is_mute = False
    """Whether the response has no body, whatever is written."""
    _left: int | None = None
    """Bytes of a declared length that are still to be written."""
    _unsent = _NOTHING
    _ends = False
    """Whether the stream ends behind what is unsent."""

    def __init__(
        self, owner: Carrier, stream_id: int, head: RequestHead, *, has_ended: bool
    ) -> None:
        self._owner = owner
        self.stream_id = stream_id
        self.head = head
        self.scheme = owner.scheme
        self.peer = owner.peer
        self.now = owner.now
        self.life = trio.CancelScope()
        self._is_whole = has_ended
        self._inbox: list[bytes] = []

    # What the connection tells.

    def begin(self) -> RequestScope:
        """Return the scope of the request, ended already if nobody waits for it any more."""
        scope = self.scope = RequestScope(self.life)
        if self._cause is not None:
            scope.end(self._cause)
        return scope

    def deliver(self, data: bytes) -> None:
        """Hold bytes of the body."""
        self._inbox.append(data)
        self._wake_reader()

    def end_body(self, fault: FramingError | None = None) -> None:
        """Note that the body is whole, or that it never will be."""
        self._is_whole = fault is None
        self._fault = fault
        self._wake_reader()

    def cancel(self, cause: Cause) -> None:
        """End the request, and all that is done for it."""
        self.is_gone = True
        if self._cause is None:
            self._cause = cause
        if self.scope is not None:
            self.scope.end(cause)
        self.life.cancel(reason=cause)

    def send_frame(self) -> int:
        """Send one frame of what is unsent; return what it took, 0 when no window is open."""
        unsent = self._unsent
        sent = self._owner.http.send_data(self.stream_id, unsent, is_last=self._ends)
        if sent is None:
            self._unsent, self._ends = _NOTHING, False
            return HEADER_BYTES + len(unsent)
        self._unsent = unsent[sent:]
        return HEADER_BYTES + sent if sent else 0

    @property
    def has_unsent(self) -> bool:
        """Return whether frames are still to be sent."""
        return self._ends or len(self._unsent) > 0

    def went_out(self) -> None:
        """Let the writer go on."""
        self.is_stuck = False
        self._wake_writer()

    def close(self) -> None:
        """End the stream with its request; whatever was not said of it is said by a reset."""
        if self._deadline is not None:
            self._owner.timers.discard(self._deadline)
        silence = self._silence
        if self._fault is not None:
            self._reset(ErrorCode.PROTOCOL_ERROR)
        elif not self.has_ended:
            self._reset(ErrorCode.INTERNAL_ERROR)
        elif not self._is_whole:
            silence = self._silence = silence or Timer(None)
            silence.expired = self._stop_client
            self._owner.timers.set(silence, self.now() + LINGER_S)
            return
        if silence is not None:
            self._owner.timers.discard(silence)

    # What the handler asks for.

    def end_at(self, at: float) -> None:
        """End the request when `at` passes."""
        if self._deadline is None:
            self._deadline = Timer(self._deadline_passed)
        self._owner.timers.set(self._deadline, at)

    async def read_body(self, limit_bytes: int) -> bytes:
        """Return the whole request body."""
        length = self.head.length
        if length is not None and length > limit_bytes:
            raise BodyTooLarge(limit_bytes)
        parts: list[bytes] = []
        size = 0
        while True:
            size += self._take(parts)
            if size > limit_bytes:
                raise BodyTooLarge(limit_bytes)
            if self._fault is not None:
                raise InvalidRequest(str(self._fault), code=BAD_REQUEST)
            if self._is_whole:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            await self._wait_for_body()

    async def read_piece(self) -> bytes:
        """Return the next bytes of the request body, empty at its end."""
        while True:
            parts: list[bytes] = []
            if self._take(parts):
                return b"".join(parts)
            if self._fault is not None:
                raise InvalidRequest(str(self._fault), code=BAD_REQUEST)
            if self._is_whole:
                return b""
            await self._wait_for_body()

    async def respond(self, status: int, lines: list[HeaderLine], body: bytes) -> None:
        """Send a whole response."""
        self._begin(status, lines, len(body), body)
        await self.flush()
        self.has_ended = True

    async def start(
        self, status: int, lines: list[HeaderLine], length: int | None, first: bytes
    ) -> None:
        """Send a response head and the first piece of its body."""
        self._begin(status, lines, length, first)
        await self.flush()

    def try_write(self, data: bytes) -> bool:
        """Send more of the body without waiting; return whether all of it went out."""
        if self._is_mute:
            return True
        if not self._owner.http.is_open(self.stream_id):
            self.is_gone = True  # `flush` says so
            return False
        self._put(data)
        return not self.is_stuck

    async def flush(self) -> None:
        """Wait until what was written has gone out."""
        while self.is_stuck and not self.is_gone:
            self._writer = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort_write)
        if self.is_gone:
            raise ConnectionBroken

    async def end(self) -> None:
        """End the body; one shorter than declared breaks off instead."""
        if self._left:
            self.abort()
            return
        if self._left is None and not self._is_mute:
            self._check_open()
            self._ends = True
            self.is_stuck = not self._owner.output.push(self)
            await self.flush()
        self.has_ended = True

    def abort(self) -> None:
        """Reset the stream: the client cannot take what it has for whole."""
        self._reset(ErrorCode.INTERNAL_ERROR)

    def _begin(
        self, status: int, lines: list[HeaderLine], length: int | None, first: bytes
    ) -> None:
        self._check_open()
        self._is_mute = self.head.method == b"HEAD" or status in _WITHOUT_BODY
        is_empty = self._is_mute or length == 0
        self._owner.http.send_head(
            self.stream_id, status, self._framed(status, lines, length), has_ended=is_empty
        )
        self.is_committed = True
        self.status = status
        self._left = length
        if is_empty:
            self._left = 0
            self.is_stuck = not self._owner.output.push(self)
        else:
            self._put(first)

    def _framed(self, status: int, lines: list[HeaderLine], length: int | None) -> list[HeaderLine]:
        """Return `lines` with the length that we send.

        Fields of a body that is not sent are the backend's to say; others are ours.
        """
        described = next((line for line in lines if line[0] == _LENGTH), None)
        framed = [line for line in lines if line[0] != _LENGTH] if described else lines.copy()
        if self._is_mute:
            if described is not None and status != _NO_CONTENT:
                framed.append(described)
        elif length is not None:
            framed.append((_LENGTH, b"%d" % length))
        return framed

    def _put(self, data: bytes) -> None:
        self.bytes_sent += len(data)
        if self._left is not None:
            self._left -= len(data)
        self._unsent = memoryview(data)
        # A malformed request is answered, but its stream is reset and does not end.
        self._ends = self._left == 0 and self._fault is None
        self.is_stuck = not self._owner.output.push(self)

    def _take(self, parts: list[bytes]) -> int:
        """Move what has arrived to `parts`; return its size."""
        arrived, self._inbox = self._inbox, []
        size = sum(map(len, arrived))
        if size:
            parts += arrived
            self._owner.http.credit(self.stream_id, size)
        return size

    async def _wait_for_body(self) -> None:
        owner = self._owner
        if self.head.expects_continue:
            self.head.expects_continue = False
            owner.http.send_continue(self.stream_id)
        owner.output.write()
        if self._silence is None:
            self._silence = Timer(self._body_stopped)
        owner.timers.set(self._silence, self.now() + owner.idle_s)
        self._reader = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort_read)

    def _check_open(self) -> None:
        if self.is_gone or not self._owner.http.is_open(self.stream_id):
            raise ConnectionBroken

    def _reset(self, code: ErrorCode) -> None:
        self._owner.output.drop(self)
        self._unsent, self._ends = _NOTHING, False
        self._owner.http.reset(self.stream_id, code)
        self._owner.output.write()

    def _stop_client(self) -> None:
        self._reset(ErrorCode.NO_ERROR)

    def _deadline_passed(self) -> None:
        if self.scope is not None:
            self.scope.end(Cause.DEADLINE)

    def _body_stopped(self) -> None:
        reader = self._reader
        if reader is not None:
            self._reader = None
            trio.lowlevel.reschedule(reader, outcome.Error(RequestTimedOut()))

    def _wake_reader(self) -> None:
        reader = self._reader
        if reader is not None:
            self._let_reader_go()
            trio.lowlevel.reschedule(reader, outcome.Value(None))

    def _wake_writer(self) -> None:
        writer = self._writer
        if writer is not None:
            self._writer = None
            trio.lowlevel.reschedule(writer, outcome.Value(None))

    def _let_reader_go(self) -> None:
        self._reader = None
        if self._silence is not None:
            self._silence.at = inf

    def _abort_read(self, _: object) -> trio.lowlevel.Abort:
        self._let_reader_go()
        return trio.lowlevel.Abort.SUCCEEDED

    def _abort_write(self, _: object) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED
