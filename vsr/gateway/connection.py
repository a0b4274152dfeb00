"""The shell around one HTTP/1.1 client connection: requests in turn on one task."""

import logging
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import ClassVar, Protocol

import msgspec
import trio

from vsr.errors import BodyTooLarge, InvalidRequest, RequestTimedOut
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.writer import BAD_REQUEST, refusal
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError, RequestHead
from vsr.http.h1_server import (
    CONTINUE,
    LAST_CHUNK,
    End,
    ServerConnection,
    encode_chunk,
    encode_head,
)
from vsr.http.plain_head import PlainHeads
from vsr.network.port import Connection, ConnectionBroken, NetworkError, ReceiveTimedOut
from vsr.network.timers import LazyTimers, Timer
from vsr.routing.outcome import Cause

HEAD_TIMEOUT_S = 10.0
"""From the first byte of a head to its end."""
_LINGER_S = 2.0
_LINGER_BYTES = 4 * 1024 * 1024
_NO_CONTENT = 204
"""Has no length either. Source: RFC 9110 section 8.6."""
_WITHOUT_BODY = (_NO_CONTENT, 304)
_log = logging.getLogger("vsr.gateway")
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})


class ListenerState(Protocol):
    """What connections of one listener ask of it while they are served."""

    @property
    def idle_s(self) -> float:
        """Return how long a connection may be silent between requests."""
        ...

    @property
    def is_draining(self) -> bool:
        """Return whether the current request of each connection is to be its last."""
        ...

    @property
    def heads(self) -> PlainHeads:
        """Return what its connections know of heads."""
        ...

    @property
    def timers(self) -> LazyTimers:
        """Return what serves the deadlines of requests."""
        ...


class Run(Protocol):
    """One request under way."""

    needs_end: bool
    """Whether `conclude` must follow, once the request's nursery has ended."""

    async def work(self) -> None:
        """Do what the request asks for and answer it, in its nursery; only cancellation passes."""
        ...

    async def conclude(self, failure: Exception | None) -> None:
        """End a request that went wrong or left tasks: its nursery, and all in it, has ended.

        Args:
            failure: what its tasks failed with.
        """
        ...

    def finish(self) -> None:
        """Account for the request; the last thing that is done for it."""
        ...


class Handler(Protocol):
    """Answers the requests of a connection."""

    def __call__(self, exchange: "H1Exchange", scope: RequestScope) -> Run:
        """Open the run of one request, whose nursery and ends `scope` holds."""
        ...

    def note_refusal(self, status: int) -> None:
        """Take note of a request whose head could not be read."""
        ...


class H1Connection:
    """Serves one connection until either side is done with it."""

    def __init__(self, connection: Connection, state: ListenerState, handler: Handler) -> None:
        self.connection = connection
        self.http = ServerConnection(state.heads)
        self.state = state
        self.life = trio.CancelScope()
        self.is_forced = False
        """Whether a drain has run out of patience."""
        self.deadline = Timer(self._deadline_passed)
        self.now = trio.lowlevel.current_clock().current_time
        """Monotonic seconds, without a look-up of the running loop each time."""
        self._scope: RequestScope | None = None
        """Of the request under way."""
        self._exchange: H1Exchange | None = None
        self._handler = handler
        self._is_waiting = False
        self._is_over = False
        """Whether no further request is served."""
        self._has_left = False
        self._head_until = inf

    async def serve(self) -> None:
        """Serve requests in turn, then close."""
        self.connection.on_gone = self._client_gone
        self._has_left = self.connection.is_gone
        try:
            with self.life:
                while not self._is_over:
                    await self._serve_some()
        except NetworkError:
            pass  # the client is gone, and nobody is left to tell
        except Exception:  # noqa: BLE001  # one connection's bug must not end the others
            _log.exception("connection failed")
        finally:
            exchange = self._exchange
            if exchange is not None and exchange.is_committed and not exchange.has_ended:
                exchange.abort()
            self.connection.close()
            self.state.timers.discard(self.deadline)

    async def _serve_some(self) -> None:
        """Serve requests in turn in one nursery.

        A nursery belongs to one request at a time. It passes on to the next only if nobody
        cancelled it and nothing is left in it; otherwise it ends, and all that was begun in it.
        """
        scope = RequestScope(self.life)
        run: Run | None = None
        failure: Exception | None = None
        try:
            try:
                async with trio.open_nursery() as tasks:
                    scope.tasks = tasks
                    while (head := await self._read_head()) is not None:
                        exchange = self._exchange = H1Exchange(
                            self, head, head.is_body_here, self.now
                        )
                        run = self._handler(exchange, scope)
                        self._scope = scope
                        if self._has_left or self.is_forced:
                            self._end_at_once(scope)
                        await run.work()
                        if run.needs_end or scope.cause is not None or tasks.child_tasks:
                            break
                        self._scope = None
                        self.deadline.at = inf
                        run.finish()
                        run = None
                        if not (exchange.has_ended and exchange.keeps_alive):
                            break
            except ExceptionGroup as group:
                failure = group
            if run is not None:
                await run.conclude(failure)
            elif failure is not None:
                raise failure
        finally:
            self._scope = None
            self.deadline.at = inf
            if run is not None:
                run.finish()
        await self._decide_on_next()

    def _end_at_once(self, scope: RequestScope) -> None:
        """End a request whose client left, or whose drain ran out of patience, before it began."""
        scope.end(Cause.CLIENT_GONE if self._has_left else Cause.DRAIN)

    async def _decide_on_next(self) -> None:
        """Go on unless this was the last request; then let the client read our answer."""
        exchange = self._exchange
        if self._is_over or exchange is None or exchange.may_continue:
            return
        self._is_over = True
        if not exchange.is_body_read:
            await self._linger()

    def drain(self) -> None:
        """Close if no request is under way; otherwise the current one is the last."""
        if self._is_waiting:
            self.connection.close()

    def force_end(self) -> None:
        """End whatever is under way."""
        self.is_forced = True
        if self._scope is not None:
            self._scope.end(Cause.DRAIN)
        self.life.cancel(reason=Cause.DRAIN)

    def _client_gone(self) -> None:
        self._has_left = True
        if self._scope is not None:
            self._scope.end(Cause.CLIENT_GONE)

    def _deadline_passed(self) -> None:
        if self._scope is not None:
            self._scope.end(Cause.DEADLINE)

    async def _read_head(self) -> RequestHead | None:
        """Return the next request's head; None, and no more requests, when there will be none."""
        http = self.http
        while True:
            event = http.next_event()
            if isinstance(event, RequestHead):
                self._head_until = inf
                return event
            if event is None:
                self._is_waiting = http.is_between_requests
                if self._is_waiting and self.state.is_draining:
                    break
                try:
                    data = await self.connection.receive(until=self._wait_until())
                except ReceiveTimedOut:
                    await self._give_up_on_head()
                    break
                except ConnectionBroken:
                    break
                finally:
                    self._is_waiting = False
                if not data:
                    break
                http.feed(data)
            elif isinstance(event, FramingError):
                await self._refuse(event)
                break
        self._is_over = True
        return None

    def _wait_until(self) -> float:
        """Return how long the client may take to go on."""
        now = self.now()
        if self._is_waiting:
            return now + self.state.idle_s
        self._head_until = min(self._head_until, now + HEAD_TIMEOUT_S)
        return self._head_until

    async def _give_up_on_head(self) -> None:
        if not self.http.is_between_requests:
            await self._refuse(FramingError("the request head did not arrive in time", status=408))

    async def _refuse(self, fault: FramingError) -> None:
        self._handler.note_refusal(fault.status)
        with suppress(NetworkError):
            await self.connection.send(refusal(fault.status, str(fault)))
            await self._linger()

    async def _linger(self) -> None:
        """Let the client read our answer before the connection goes.

        Closing with unread data resets the connection, and a reset may overtake the answer.
        """
        self.connection.shutdown_send()
        until = self.now() + _LINGER_S
        left = _LINGER_BYTES
        while left > 0:
            data = await self.connection.receive(until=until)
            if not data:
                return
            left -= len(data)


class H1Exchange(msgspec.Struct, eq=False):
    """One request on an HTTP/1.1 connection; see `vsr.gateway.exchange.Exchange`."""

    _owner: H1Connection
    head: RequestHead
    is_body_read: bool
    now: Callable[[], float]
    """Return monotonic seconds."""
    is_committed: bool = False
    has_ended: bool = False
    status: int = 0
    bytes_sent: int = 0
    keeps_alive: bool = False
    """Whether the connection is kept once the response has been sent."""
    _is_chunked: bool = False
    _left: int | None = None
    """Bytes of a declared length that are still to be sent."""
    _unsent: bytes = b""

    scheme: ClassVar[bytes] = b"http"

    @property
    def protocol(self) -> str:
        """Return the protocol as access logs name it."""
        return "HTTP/1.0" if self.head.is_http_1_0 else "HTTP/1.1"

    @property
    def may_continue(self) -> bool:
        """Return whether the connection can carry another request."""
        return self.has_ended and self.keeps_alive

    def end_at(self, at: float) -> None:
        """Let the connection end the request when `at` passes."""
        self._owner.state.timers.set(self._owner.deadline, at)

    async def read_body(self, limit_bytes: int) -> bytes:
        """Return the whole request body."""
        head = self.head
        if head.length is not None and head.length > limit_bytes:
            self.is_body_read = False  # nor will it be, even where all of it is here
            raise BodyTooLarge(limit_bytes)
        whole = head.body
        if whole is None:
            whole = self._owner.http.take_whole_body()
        if whole is not None and len(whole) <= limit_bytes:
            self.is_body_read = True
            return whole
        return await self._collect_body(limit_bytes, [] if whole is None else [whole])

    async def _collect_body(self, limit_bytes: int, parts: list[bytes]) -> bytes:
        size = sum(map(len, parts))
        if size > limit_bytes:
            raise BodyTooLarge(limit_bytes)
        while True:
            event = self._owner.http.next_event()
            if event is None:
                await self._fill_body()
            elif isinstance(event, bytes):
                parts.append(event)
                size += len(event)
                if size > limit_bytes:
                    raise BodyTooLarge(limit_bytes)
            elif event is End.REQUEST:
                self.is_body_read = True
                return parts[0] if len(parts) == 1 else b"".join(parts)
            else:
                raise InvalidRequest(str(event), code=BAD_REQUEST)

    async def respond(self, status: int, lines: list[HeaderLine], body: bytes) -> None:
        """Send a whole response in one write."""
        data = encode_head(status, self._framed(status, lines, len(body)))
        if body and not self._has_no_body(status):
            self.bytes_sent += len(body)
            data += body
        connection = self._owner.connection
        sent = connection.try_send(data)
        self.is_committed = True
        self.status = status
        if sent != len(data):
            await connection.send(data[sent:])
        self.has_ended = True

    async def start(
        self, status: int, lines: list[HeaderLine], length: int | None, first: bytes
    ) -> None:
        """Send a response head and the first piece of its body in one write."""
        lines = self._framed(status, lines, length)
        self._left = length
        await self._commit(status, encode_head(status, lines) + self._framed_piece(first))

    def try_write(self, data: bytes) -> bool:
        """Send more of the body without waiting; return whether all of it went out."""
        piece = self._framed_piece(data)
        try:
            sent = self._owner.connection.try_send(piece)
        except ConnectionBroken:
            sent = 0  # `flush` meets the same and can say so
        if sent == len(piece):
            return True
        self._unsent = piece[sent:]
        return False

    async def flush(self) -> None:
        """Send what `try_write` could not."""
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            await self._owner.connection.send(unsent)

    async def end(self) -> None:
        """End the body; one shorter than declared breaks off instead."""
        if self._left:
            self.abort()
            return
        if self._is_chunked:
            await self._owner.connection.send(LAST_CHUNK)
        self.has_ended = True

    def abort(self) -> None:
        """Break the response off.

        Without chunks or a length only a reset tells the client that something is missing.
        """
        connection = self._owner.connection
        if self._is_chunked or self._left:
            connection.close()
        else:
            connection.abort()

    async def _commit(self, status: int, data: bytes) -> None:
        """Send the beginning of the response, or all of it.

        Tried without waiting first: as long as nothing is out, another answer can still be given,
        and after a cancelled wait nobody could say whether something is.
        """
        connection = self._owner.connection
        sent = connection.try_send(data)
        self.is_committed = True
        self.status = status
        if sent != len(data):
            await connection.send(data[sent:])

    def _framed_piece(self, data: bytes) -> bytes:
        self.bytes_sent += len(data)
        if self._left is not None:
            self._left -= len(data)
        return encode_chunk(data) if self._is_chunked else data

    def _has_no_body(self, status: int) -> bool:
        return self.head.method == b"HEAD" or status in _WITHOUT_BODY

    def _framed(self, status: int, lines: list[HeaderLine], length: int | None) -> list[HeaderLine]:
        """Return `lines` with our own framing and connection fields."""
        head = self.head
        described = None
        if not _FRAMING.isdisjoint(dict(lines)):
            # Fields of a body that is not sent are the backend's to say; others are ours.
            described = next((line for line in lines if line[0] == b"content-length"), None)
            framed = [line for line in lines if line[0] not in _FRAMING]
        else:
            framed = lines.copy()
        if head.method == b"HEAD" or status in _WITHOUT_BODY:
            if described is not None and status != _NO_CONTENT:
                framed.append(described)
        elif length is not None:
            framed.append((b"content-length", b"%d" % length))
        elif not head.is_http_1_0:
            self._is_chunked = True
            framed.append((b"transfer-encoding", b"chunked"))
        if (
            head.keep_alive
            and self.is_body_read
            and not head.is_http_1_0
            and not self._owner.state.is_draining
        ):
            self.keeps_alive = True
        else:
            framed.append((b"connection", b"close"))
        return framed

    async def _fill_body(self) -> None:
        owner = self._owner
        if self.head.expects_continue:
            self.head.expects_continue = False
            await owner.connection.send(CONTINUE)
        until = self.now() + owner.state.idle_s
        try:
            data = await owner.connection.receive(until=until)
        except ReceiveTimedOut:
            raise RequestTimedOut from None
        if not data:
            raise ConnectionBroken
        owner.http.feed(data)
