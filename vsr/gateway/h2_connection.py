"""The shell around one HTTP/2 client connection: one task reads, each request has its own."""

import logging
from collections import deque
from contextlib import suppress
from math import inf
from typing import assert_never

import trio

from vsr.codec.error_body import openai_error
from vsr.errors import InvalidRequest
from vsr.gateway.connection import HEAD_TIMEOUT_S
from vsr.gateway.exchange import Handler, ListenerState, Run
from vsr.gateway.h2_exchange import H2Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.writer import BAD_REQUEST
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
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
from vsr.http.h2_frames import ErrorCode
from vsr.http.h2_library import MAX_STREAMS
from vsr.http.h2_server import ServerConnection
from vsr.network.h2_output import Output
from vsr.network.port import Connection, NetworkError
from vsr.network.timers import Timer
from vsr.routing.outcome import Cause

DRAIN_ANSWER_S = 1.0
"""What a client gets to tell that it knows of a drain: requests that crossed with it are served."""
_MOST_UNREAD_BYTES = 1_048_576
"""Beyond this the client has not read what it asked for: answers to its own frames above all."""
_LINGER_S = 2.0
_LINGER_BYTES = 262_144
_EVENTS_AT_A_TIME = 100
"""Other connections get their turn after so many."""
_BAD_REQUEST = 400
_log = logging.getLogger("vsr.gateway")


class H2Connection:
    """Serves one connection until either side is done with it."""

    def __init__(
        self,
        connection: Connection,
        state: ListenerState,
        handler: Handler,
        first: bytes = b"",
    ) -> None:
        """Take a connection of which `first` has been read already."""
        self.connection = connection
        self.http = ServerConnection()
        self._first = first
        self.scheme = state.scheme
        self.peer = connection.peer
        self.state = state
        self.timers = state.timers
        self.life = trio.CancelScope()
        self.now = trio.lowlevel.current_clock().current_time
        """Monotonic seconds, without a look-up of the running loop each time."""
        self._handler = handler
        self._tasks: trio.Nursery | None = None
        self._reading = trio.CancelScope()
        self._patience = Timer(self._patience_ran_out)
        self._head_until = inf
        self._drain_until = inf
        self._is_leaving = False
        """Whether the connection ends with the last stream under way."""
        self._is_over = self._has_left = False
        self._ended_by: Cause | None = None
        """Why no request is begun any more."""
        self._streams: dict[int, H2Exchange] = {}
        self._fresh: deque[H2Exchange] = deque()
        """Streams whose requests have not begun."""
        self._running = 0
        self.output = Output(connection, self.http, self._client_gone)

    @property
    def idle_s(self) -> float:
        """Return how long the client may be silent."""
        return self.state.idle_s

    async def serve(self) -> None:
        """Serve requests, then close."""
        self.connection.on_gone = self._client_gone
        try:
            with self.life:
                async with trio.open_nursery() as tasks:
                    self._tasks = tasks
                    tasks.start_soon(self.output.run)
                    with self._reading:
                        await self._read(self._first)
                    await self._part()
                    tasks.cancel_scope.cancel(reason="connection ends")
        except Exception:  # noqa: BLE001  # one connection's bug must not end the others
            _log.exception("connection failed")
        finally:
            self._is_over = True
            self.http.end(ErrorCode.NO_ERROR)
            self.connection.close()
            self.timers.discard(self._patience)

    def drain(self) -> None:
        """Close as soon as the requests under way, and those on their way to us, are answered."""
        if not self._is_over:
            self.http.begin_drain()
            self.output.write()
            self._drain_until = self.now() + DRAIN_ANSWER_S
            self._arm()

    def leave(self) -> None:
        """Do as in a drain: HTTP/2 has a word for it."""
        self.drain()

    def wait_anew(self) -> None:
        """Let a client that is silent have from now on what its listener allows."""
        self._arm()

    def force_end(self) -> None:
        """End whatever is under way."""
        self._cancel_all(Cause.DRAIN)
        self.life.cancel(reason=Cause.DRAIN)

    # Reading.

    async def _read(self, data: bytes) -> None:
        if self.state.is_draining:
            self.drain()
        self.output.write()
        if self.connection.is_gone:
            self._client_gone()
        while True:
            self.http.feed(data, now=self.now())
            await self._act()
            if self._is_over:
                return
            try:
                data = await self.connection.receive()
            except NetworkError:
                return
            if not data:
                return

    async def _act(self) -> None:
        """Act on all that has arrived."""
        count = 0
        while (event := self.http.next_event()) is not None:
            self._on_event(event)
            count += 1
            if count % _EVENTS_AT_A_TIME == 0:
                self._launch()
                self.output.pump()
                await trio.lowlevel.cancel_shielded_checkpoint()
        self._launch()
        self.output.pump()
        if self.output.unwritten_bytes > _MOST_UNREAD_BYTES:
            self._client_gone()
        self._arm()

    def _on_event(self, event: Event) -> None:
        match event:
            case RequestArrived():
                exchange = H2Exchange(self, event.stream_id, event.head, has_ended=event.has_ended)
                if self._ended_by is None:
                    self._streams[event.stream_id] = exchange
                    self._fresh.append(exchange)
            case RequestRefused():
                self._refuse(event.stream_id, event.fault)
            case BodyArrived() | BodyEnded() | BodyBroken() | StreamReset():
                self._on_stream(self._streams.get(event.stream_id), event)
            case DrainAnswered() | PeerLeaving():
                self._leave()
            case ConnectionEnded():
                self._is_over = True
            case _:
                assert_never(event)

    def _on_stream(
        self,
        exchange: H2Exchange | None,
        event: BodyArrived | BodyEnded | BodyBroken | StreamReset,
    ) -> None:
        if exchange is None:
            return  # its request has ended before its body
        match event:
            case BodyArrived():
                exchange.deliver(event.data)
            case BodyEnded():
                exchange.end_body()
            case BodyBroken():
                exchange.end_body(event.fault)
            case StreamReset():
                self.output.drop(exchange)
                exchange.cancel(Cause.CLIENT_GONE)
            case _:
                assert_never(event)

    def _refuse(self, stream_id: int, fault: FramingError) -> None:
        """Answer a request that is not served, as far as the windows allow.

        Source: RFC 9113 section 8.1.1: a malformed one may be answered and must be reset.
        """
        self._handler.note_refusal(fault.status, H2Exchange.protocol)
        body = openai_error(InvalidRequest(str(fault), code=BAD_REQUEST))
        lines: list[HeaderLine] = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        is_malformed = fault.status == _BAD_REQUEST
        self.http.send_head(stream_id, fault.status, lines, has_ended=False)
        self.http.send_data(stream_id, memoryview(body), is_last=not is_malformed)
        code = ErrorCode.PROTOCOL_ERROR if is_malformed else ErrorCode.NO_ERROR
        self.http.reset(stream_id, code)

    def _client_gone(self) -> None:
        self._is_over = self._has_left = True
        self._reading.cancel(reason=Cause.CLIENT_GONE)
        self._cancel_all(Cause.CLIENT_GONE)

    def _cancel_all(self, cause: Cause) -> None:
        self._ended_by = cause
        for exchange in list(self._streams.values()):
            exchange.cancel(cause)

    # Requests.

    def _launch(self) -> None:
        """Begin requests; those reset meanwhile never begin, the last ones wait for a place."""
        while self._fresh and self._running < MAX_STREAMS and self._tasks is not None:
            exchange = self._fresh.popleft()
            if exchange.is_gone:
                del self._streams[exchange.stream_id]
            else:
                self._running += 1
                self._tasks.start_soon(self._serve_stream, exchange)

    async def _serve_stream(self, exchange: H2Exchange) -> None:
        scope = exchange.begin()
        run: Run | None = None
        try:
            with exchange.life:
                run = self._handler(exchange, scope)
                await _serve_request(run, scope)
        except NetworkError:
            pass  # the client is gone, and nobody is left to tell
        except Exception:  # noqa: BLE001  # one request's bug must not end the others
            _log.exception("request failed")
        finally:
            if run is not None:
                run.finish()
            exchange.close()
            del self._streams[exchange.stream_id]
            self._running -= 1
            self._launch()
            self._arm()
            if self._is_leaving:
                self._leave()

    # Ends.

    def _leave(self) -> None:
        """Take no more streams; with the last one the connection ends."""
        self._is_leaving = True
        self._drain_until = inf
        if not self._streams:
            self.http.finish_drain()
            self._reading.cancel(reason="nothing left to serve")
        elif self.state.is_draining:
            self.http.finish_drain()
        self.output.write()

    def _arm(self) -> None:
        """Set the time at which the client's silence is too long."""
        if not self.http.is_mid_head:
            self._head_until = inf
        elif self._head_until == inf:
            self._head_until = self.now() + HEAD_TIMEOUT_S
        at = min(self._head_until, self._drain_until)
        if at == inf and not self._streams:
            at = self.now() + self.idle_s
        if at == inf or self._is_over:
            self._patience.at = inf
        else:
            self.timers.set(self._patience, at)

    def _patience_ran_out(self) -> None:
        if self._head_until <= self.now():
            self._handler.note_refusal(408, H2Exchange.protocol)
            self.http.end(ErrorCode.ENHANCE_YOUR_CALM)
            self._is_over = True
            self._reading.cancel(reason="head did not arrive in time")
        else:
            self._leave()
            self._arm()

    async def _part(self) -> None:
        """End what is left, and let the client read what we said last."""
        self._cancel_all(Cause.CLIENT_GONE)
        was_over, self._is_over = self._is_over, True
        self.output.write()
        with trio.move_on_after(_LINGER_S):
            if not self._has_left:
                await self.output.wait_written()
            if was_over and not self._has_left:
                await _linger(self.connection)


async def _serve_request(run: Run, scope: RequestScope) -> None:
    """Do one request in a nursery of its own, and answer for what went wrong in it."""
    failure: Exception | None = None
    try:
        async with trio.open_nursery() as tasks:
            scope.tasks = tasks
            await run.work()
            if run.needs_end:
                tasks.cancel_scope.cancel(reason="the request failed")
    except ExceptionGroup as group:
        failure = group
    if failure is not None or run.needs_end or scope.cause is not None:
        await run.conclude(failure)


async def _linger(connection: Connection) -> None:
    """Let the client read our last word before the connection goes.

    Closing with unread data resets the connection, and a reset may overtake it.
    """
    connection.shutdown_send()
    left = _LINGER_BYTES
    with suppress(NetworkError):
        while left > 0 and (data := await connection.receive()):
            left -= len(data)
