"""The shell around one HTTP/1.1 client connection: requests in turn on one task."""

import logging
from contextlib import suppress
from math import inf

import trio

from vsr.gateway.exchange import Handler, ListenerState, Run
from vsr.gateway.h1_exchange import H1Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.writer import refusal
from vsr.http.framing import FramingError, RequestHead
from vsr.http.h1_server import ServerConnection
from vsr.network.port import Connection, NetworkError, ReceiveTimedOut
from vsr.network.timers import Timer
from vsr.routing.outcome import Cause

HEAD_TIMEOUT_S = 10.0
"""From the first byte of a head to its end."""
_LINGER_S = 2.0
_LINGER_BYTES = 4 * 1024 * 1024
_log = logging.getLogger("vsr.gateway")


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
        self._run: Run | None = None
        self._scope: RequestScope | None = None
        """Of the request under way, as is the run."""
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
        """Serve requests until one of them needs the end of its nursery, and end that one."""
        scope = RequestScope(self.life)
        try:
            failure = await self._serve_in_turn(scope)
            if self._run is not None:
                await self._run.conclude(failure)
            elif failure is not None:
                raise failure
        finally:
            self._finish_run()
        await self._decide_on_next()

    async def _serve_in_turn(self, scope: RequestScope) -> Exception | None:
        """Serve requests in one nursery; return what its tasks failed with.

        A nursery belongs to one request at a time. It passes on to the next only if nobody
        cancelled it and nothing was begun in it; otherwise it ends, and all that was begun in it.
        """
        try:
            async with trio.open_nursery() as tasks:
                scope.tasks = tasks
                while (head := await self._read_head()) is not None:
                    exchange = self._exchange = self._new_exchange(head)
                    run = self._run = self._handler(exchange, scope)
                    self._scope = scope
                    if self._has_left or self.is_forced:
                        self._end_at_once(scope)
                    await run.work()
                    if run.needs_end:
                        tasks.cancel_scope.cancel(reason="the request failed")
                    if scope.cause is not None or run.needs_end or scope.has_started_tasks:
                        break
                    self._finish_run()
                    if not (exchange.has_ended and exchange.keeps_alive):
                        break
        except ExceptionGroup as group:
            return group
        return None

    def _finish_run(self) -> None:
        """Account for the request under way, if there is one; nothing can end it any more."""
        run, self._run = self._run, None
        self._scope = None
        self.deadline.at = inf
        if run is not None:
            run.finish()

    def _new_exchange(self, head: RequestHead) -> H1Exchange:
        return H1Exchange(
            self.connection,
            self.http,
            self.state,
            self.deadline,
            self.now,
            head,
            head.length == 0,
        )

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

    def leave(self) -> None:
        """Let the next answer be the last, if there is one before the client is silent too long."""
        self.wait_anew()

    def wait_anew(self) -> None:
        """Let a client that is silent have from now on what its listener allows."""
        if self._is_waiting:
            self.connection.wait_until(self.now() + self.state.idle_s)

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
            if isinstance(event, FramingError):
                await self._refuse(event)
                break
            if event is not None:
                continue  # the end of a body that nobody read
            self._is_waiting = http.is_between_requests
            try:
                data = await self.connection.receive(until=self._wait_until())
            except NetworkError as error:
                await self._give_up_on_head(error)
                break
            finally:
                self._is_waiting = False
            if not data:
                break
            http.feed(data)
        self._is_over = True
        return None

    def _wait_until(self) -> float:
        """Return how long the client may take to go on."""
        now = self.now()
        if self._is_waiting:
            return now + self.state.idle_s
        self._head_until = min(self._head_until, now + HEAD_TIMEOUT_S)
        return self._head_until

    async def _give_up_on_head(self, error: NetworkError) -> None:
        """Tell a client that has begun a head and takes too long."""
        if isinstance(error, ReceiveTimedOut) and not self.http.is_between_requests:
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
