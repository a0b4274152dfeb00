"""One HTTP/2 connection to a backend that calls share: one task reads, whoever writes sends."""

import logging
from collections.abc import Callable
from math import inf
from typing import assert_never

import trio

from vsr.errors import (
    UpstreamConnectFailure,
    UpstreamFailure,
    UpstreamRefused,
    UpstreamReset,
)
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
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
from vsr.network.h2_output import MOST_UNWRITTEN_BYTES, Output
from vsr.network.port import Connection, NetworkError
from vsr.network.timers import LazyTimers
from vsr.upstream.h2_stream import H2Stream

PING_PATIENCE_S = 2.0
"""After a ping that nothing has followed for so long a connection gets no more calls."""
_EVENTS_AT_A_TIME = 100
"""Other connections get their turn after so many."""
_log = logging.getLogger("vsr.upstream")


class H2Connection:
    """Lends streams until either side is done with it; every change is one synchronous step."""

    def __init__(
        self,
        connection: Connection,
        timers: LazyTimers,
        on_change: Callable[["H2Connection"], None],
    ) -> None:
        """Take an open connection; `shake_hands` and `run` come next.

        Args:
            connection: nobody has used it.
            timers: of what its streams wait for.
            on_change: called when there may be room for a stream, and when it is over.
        """
        self._connection = connection
        self._http = ClientConnection()
        self._timers = timers
        self._on_change = on_change
        self._output = Output(connection, self._http, self._stop_writing)
        self._streams: dict[int, H2Stream] = {}
        self._now = trio.lowlevel.current_clock().current_time
        self._received_at = 0.0
        self._pinged_at = inf
        """When we asked for a sign of life that has not come."""
        self._may_write = True
        self._is_ready = False
        """Whether hands were shaken."""
        self._is_taking = False
        """Whether the network is handing us bytes: then `run` closes the connection, not we."""
        self._bug: Exception | None = None
        self.is_wanted = True
        """Whether it is kept while it has no stream."""
        self.is_over = False
        self.lent = 0
        """Streams in the hands of calls."""

    @property
    def capacity(self) -> int:
        """Return how many streams it may lend at a time; 0 if it takes no more calls."""
        if not self._may_write or self._output.unwritten_bytes > MOST_UNWRITTEN_BYTES:
            return 0
        return 0 if self.is_stuck else self._http.capacity

    @property
    def has_room(self) -> bool:
        """Return whether it can lend another stream."""
        return self.lent < self.capacity

    @property
    def is_stuck(self) -> bool:
        """Return whether the backend owes us a sign of life for too long."""
        return self._now() - self._pinged_at > PING_PATIENCE_S

    @property
    def is_leaving(self) -> bool:
        """Return whether it lends no more streams ever."""
        return self.is_over or not self._may_write or self._http.is_leaving

    def lend(self) -> H2Stream:
        """Return a stream, of which there must be room; it comes back by its `close`."""
        self.lent += 1
        return H2Stream(self, self._timers)

    def close(self) -> None:
        """End it at once, with all its streams."""
        if not self.is_over:
            self._http.end(ErrorCode.NO_ERROR)
            self._output.write()
            self._end(UpstreamReset)

    def close_if_unused(self) -> None:
        """End it if it has no stream and no future."""
        if self.lent or not self._is_ready:
            return
        if self.is_leaving or self.is_stuck or not self.is_wanted:
            self.close()

    async def shake_hands(self) -> None:
        """Wait for the server's settings: then its limits are known, and that it speaks HTTP/2.

        The caller limits the time and closes it when this raises.

        Raises:
            UpstreamConnectFailure: there are none.
        """
        try:
            await self._connection.send(self._http.take_output())
            while not self._http.has_settings and not self.is_over:
                data = await self._connection.receive()
                if not data:
                    raise UpstreamConnectFailure("HTTP/2 connection closed before its settings")
                self._feed(data)
        except NetworkError:
            raise UpstreamConnectFailure("HTTP/2 connection closed before its settings") from None
        if self.is_over:
            raise UpstreamConnectFailure("the backend does not speak HTTP/2")
        if self.is_leaving:
            raise UpstreamConnectFailure("HTTP/2 connection refused by GOAWAY")
        self._is_ready = True

    async def run(self) -> None:
        """Serve until it is over."""
        try:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(self._output.run)
                await self._read()
                tasks.cancel_scope.cancel(reason="connection ends")
        except Exception:  # noqa: BLE001  # one connection's bug must not end the others
            _log.exception("backend connection failed")
        finally:
            self.close()
            self._connection.close()

    # What streams ask for: see `h2_stream.StreamOwner`.

    def open(self, stream: H2Stream, fields: list[HeaderLine], *, has_ended: bool) -> bool:
        """Begin a stream's request; return whether all of it went out."""
        stream.opened_at = self._now()
        stream.stream_id = self._http.open(
            fields, is_head_request=stream.is_head_request, has_ended=has_ended
        )
        self._streams[stream.stream_id] = stream
        return self._output.push(stream)

    def push(self, stream: H2Stream) -> bool:
        """Send what a stream holds; return whether all of it went out."""
        return self._output.push(stream)

    def send_frame(self, stream: H2Stream, data: memoryview, *, is_last: bool) -> int | None:
        """Put out a frame of a body."""
        return self._http.send_data(stream.stream_id, data, is_last=is_last)

    def give_credit(self, stream: H2Stream, size: int) -> None:
        """Let the server send more of a response."""
        if self._http.credit(stream.stream_id, size):
            self._output.write()

    def leave(self, stream: H2Stream) -> None:
        """Take a stream back; if it is not closed, reset it."""
        self.lent -= 1
        if self._streams.pop(stream.stream_id, None) is not None:
            self._output.drop(stream)
            if self._http.reset(stream.stream_id, ErrorCode.CANCEL):
                self._doubt(stream)
                self._output.write()
        self.close_if_unused()
        self._on_change(self)

    def _doubt(self, stream: H2Stream) -> None:
        """Ask for a sign of life if there was none since a stream began that we give up.

        Without it calls would go on to a backend whose host is gone without a word.
        """
        if self._received_at <= stream.opened_at and self._pinged_at == inf:
            self._http.ping()
            self._pinged_at = self._now()

    # Reading.

    async def _read(self) -> None:
        while not self.is_over:
            try:
                has_ended = await self._connection.pump(self._take, None)
            except NetworkError:
                return
            if self._bug is not None:
                raise self._bug
            if has_ended:
                return
            # There is more in what was taken than one turn is for.
            is_more = True
            while is_more:
                await trio.lowlevel.checkpoint()
                is_more = self._act()

    def _take(self, data: bytes) -> bool:
        """Act on what has come, often in the task that serves every socket: nothing may escape."""
        self._is_taking = True
        try:
            return not self._feed(data) and not self.is_over
        except Exception as bug:  # noqa: BLE001  # raised again by `_read`
            self._bug = bug
            return False
        finally:
            self._is_taking = False

    def _feed(self, data: bytes) -> bool:
        self._received_at = now = self._now()
        self._pinged_at = inf
        self._http.feed(data, now=now)
        return self._act()

    def _act(self) -> bool:
        """Act on some of what has come; return whether there is more."""
        left = _EVENTS_AT_A_TIME
        while left and (event := self._http.next_event()) is not None:
            self._on_event(event)
            left -= 1
        if not self.is_over:
            self._output.pump()
            self.close_if_unused()
            self._on_change(self)
        return not left

    def _on_event(self, event: ClientEvent) -> None:
        if isinstance(event, ConnectionEnded):
            reason = f"HTTP/2 connection error {event.code}"
            self._output.write()
            self._end(lambda: FramingError(reason))
        elif (stream := self._streams.get(event.stream_id)) is not None:
            self._on_stream(stream, event)

    def _on_stream(
        self,
        stream: H2Stream,
        event: HeadArrived | BodyArrived | ResponseEnded | ResponseBroken | StreamClosed,
    ) -> None:
        match event:
            case HeadArrived():
                stream.on_head(event.head, has_ended=event.has_ended)
            case BodyArrived():
                stream.on_body(event.data)
            case ResponseEnded():
                stream.on_end()
            case ResponseBroken():
                self._close_stream(stream, event.fault)
            case StreamClosed():
                fault = UpstreamRefused() if event.is_refused else UpstreamReset(of_stream=True)
                self._close_stream(stream, fault)
            case _:
                assert_never(event)

    # Ends.

    def _close_stream(self, stream: H2Stream, fault: FramingError | UpstreamFailure) -> None:
        del self._streams[stream.stream_id]
        self._output.drop(stream)
        stream.on_fault(fault)

    def _stop_writing(self) -> None:
        """Lend no more streams; what the backend said before it left is still to be read."""
        self._may_write = False

    def _end(self, fault: Callable[[], FramingError | UpstreamFailure]) -> None:
        self.is_over = True
        if not self._is_taking:
            self._connection.close()
        for stream in list(self._streams.values()):
            self._close_stream(stream, fault())
        self._on_change(self)
