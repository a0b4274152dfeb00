"""The writing half of an HTTP/2 connection: windows, room and turns of the streams that send."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

import outcome
import trio

from vsr.network.port import Connection, ConnectionBroken, NetworkError

MOST_UNWRITTEN_BYTES = 65_536
"""Beyond this nothing more of any body is put out."""


class Speaker(Protocol):
    """The protocol of a connection, as far as writing it goes."""

    def take_output(self) -> bytes:
        """Return what is to be sent to the peer."""
        ...


class SendingStream(Protocol):
    """A stream that has something to send."""

    @property
    def has_unsent(self) -> bool:
        """Return whether frames are still to be put out."""
        ...

    def send_frame(self) -> int:
        """Put out one frame; return what it took, 0 when no window is open."""
        ...

    def went_out(self) -> None:
        """Go on: all that was put out has been taken by the network."""
        ...


class Output:
    """Writes what the protocol puts out, at once if the network takes it, else by one task."""

    def __init__(
        self, connection: Connection, http: Speaker, on_broken: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._http = http
        self._on_broken = on_broken
        self._blocked: dict[SendingStream, None] = {}
        """Streams that wait for a window, or for room; the first is the next to send."""
        self._unwritten: deque[tuple[int, SendingStream]] = deque()
        """Streams that wait until so many bytes are written."""
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        """Bytes put out since the beginning."""
        self._written_bytes = 0
        """Those of them that the network has taken."""
        self._is_sending = False
        self._task: trio.lowlevel.Task | None = None
        self._waiter: trio.lowlevel.Task | None = None

    @property
    def unwritten_bytes(self) -> int:
        """Return what the network has not taken."""
        return self._queued_bytes - self._written_bytes

    def push(self, stream: SendingStream) -> bool:
        """Send what a stream holds; return whether all of it went out.

        If not, its `went_out` follows.
        """
        room = MOST_UNWRITTEN_BYTES - self.unwritten_bytes
        while stream.has_unsent and room > 0:
            taken = stream.send_frame()
            if not taken:
                break
            room -= taken
        self.write()
        if stream.has_unsent:
            self._blocked[stream] = None
            return False
        return self._is_written(stream)

    def drop(self, stream: SendingStream) -> None:
        """Send no more of a stream."""
        self._blocked.pop(stream, None)

    def pump(self) -> None:
        """Send what streams wait with, one frame of each in turn, as windows and room allow."""
        done: list[SendingStream] = []
        room = MOST_UNWRITTEN_BYTES - self.unwritten_bytes
        has_moved = True
        while self._blocked and has_moved and room > 0:
            has_moved = False
            for stream in list(self._blocked):
                taken = stream.send_frame() if room > 0 else 0
                if not taken:
                    continue
                has_moved = True
                room -= taken
                del self._blocked[stream]
                if stream.has_unsent:
                    self._blocked[stream] = None  # behind the others
                else:
                    done.append(stream)
        self.write()
        for stream in done:
            if self._is_written(stream):
                stream.went_out()

    def write(self) -> None:
        """Send what the protocol has put out, as far as the network takes it at once."""
        data = self._http.take_output()
        if not data:
            return
        self._queued_bytes += len(data)
        if not self._is_sending and not self._queue:
            try:
                sent = self._connection.try_send(data)
            except ConnectionBroken:
                self._on_broken()
                return
            self._written_bytes += sent
            data = data[sent:]
        if data:
            self._queue.append(data)
            self._wake_run()

    async def run(self) -> None:
        """Write what the network did not take at once, until cancelled or broken."""
        while True:
            while self._queue:
                data = b"".join(self._queue)
                self._queue.clear()
                self._is_sending = True
                try:
                    await self._connection.send(data)
                except NetworkError:
                    self._on_broken()
                    return
                self._is_sending = False
                self._written_bytes += len(data)
                self._tell_written()
                self.pump()
            self._wake_waiter()
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort_run)

    async def wait_written(self) -> None:
        """Wait until the network has taken all; `run` must be running."""
        while self.unwritten_bytes:
            self._waiter = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort_wait)

    def _is_written(self, stream: SendingStream) -> bool:
        """Return whether all is written; if not, tell `stream` once what is put out by now is."""
        if not self.unwritten_bytes:
            return True
        self._unwritten.append((self._queued_bytes, stream))
        return False

    def _tell_written(self) -> None:
        while self._unwritten and self._unwritten[0][0] <= self._written_bytes:
            self._unwritten.popleft()[1].went_out()

    def _wake_run(self) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task, outcome.Value(None))
            self._task = None

    def _wake_waiter(self) -> None:
        if self._waiter is not None:
            trio.lowlevel.reschedule(self._waiter, outcome.Value(None))
            self._waiter = None

    def _abort_run(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _abort_wait(self, _: object) -> trio.lowlevel.Abort:
        self._waiter = None
        return trio.lowlevel.Abort.SUCCEEDED
