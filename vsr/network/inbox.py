"""The receiving half of a connection: bytes that wait for a reader, or a reader for bytes."""

from collections import deque
from collections.abc import Callable, Coroutine
from math import inf

import msgspec
import outcome
import trio

from vsr.network.port import READ_AHEAD_BYTES, ConnectionBroken, ReceiveTimedOut
from vsr.network.timers import LazyTimers, Timer


class _Delivery(msgspec.Struct, gc=False):
    """What a reader is woken with.

    Stands in for `outcome.Value`, of which the woken task calls `unwrap` alone and which costs
    several times as much to make.
    """

    data: bytes

    def unwrap(self) -> bytes:
        """Return the bytes; called by the reader's task."""
        return self.data


class Inbox:
    """Bytes received but not yet read; at most one task reads at a time.

    `on_room` is called when a full inbox has been emptied, `on_gone` when the stream ended. The
    delivering side calls `deliver` and `finish` from any task; nothing here awaits but `receive`.
    """

    __slots__ = (
        "_chunks",
        "_error",
        "_idle_s",
        "_now",
        "_reader",
        "_sink",
        "_timer",
        "_timers",
        "ended",
        "has_peer_left",
        "held_bytes",
        "on_gone",
        "on_room",
    )

    def __init__(self, timers: LazyTimers, on_room: Callable[[], None]) -> None:
        self._chunks: deque[bytes] = deque()
        self._reader: trio.lowlevel.Task | None = None
        self._sink: Callable[[bytes], bool] | None = None
        self._idle_s = inf
        self._now = trio.lowlevel.current_clock().current_time
        self._timers = timers
        self._timer: Timer | None = None
        self._error: type[ConnectionBroken] | None = None
        self.held_bytes = 0
        self.ended = False
        self.has_peer_left = False
        self.on_gone: Callable[[], None] | None = None
        self.on_room = on_room

    @property
    def is_full(self) -> bool:
        """Return whether the peer should not be read further."""
        return self.held_bytes >= READ_AHEAD_BYTES

    def is_silent(self) -> bool:
        """Return whether nothing waits to be read and the stream has not ended."""
        return not self.ended and not self._chunks

    def deliver(self, data: bytes) -> None:
        """Hand `data` to the waiting reader, or hold it."""
        reader = self._reader
        if reader is None:
            self._chunks.append(data)
            self.held_bytes += len(data)
            return
        sink = self._sink
        if sink is not None and sink(data):
            self._put_off_timeout()
            return
        if sink is not None:
            data = b""  # the sink has it, and wants the reader to take over
            self._sink = None
        self._reader = None
        if self._timer is not None:
            self._timer.at = inf
        trio.lowlevel.reschedule(reader, _Delivery(data))  # type: ignore[arg-type]  # see there

    def finish(self, *, broken: bool = False) -> None:
        """Record the end of the stream and wake the reader; later calls do nothing."""
        if self.ended:
            return
        self.ended = True
        self._error = ConnectionBroken if broken else None
        reader = self._reader
        if reader is not None:
            self._release_reader()
            result = outcome.Error(ConnectionBroken()) if broken else outcome.Value(b"")
            trio.lowlevel.reschedule(reader, result)
        self.peer_left()

    def peer_left(self) -> None:
        """Tell `on_gone`, once; what the peer sent before it left can still be read."""
        if self.has_peer_left:
            return
        self.has_peer_left = True
        if self.on_gone is not None:
            self.on_gone()

    def discard(self) -> None:
        """Forget everything: our own side closed. A waiting reader gets `ConnectionBroken`."""
        self.on_gone = None
        self._chunks.clear()
        self.held_bytes = 0
        self.finish(broken=True)
        if self._timer is not None:
            self._timers.discard(self._timer)
            self._timer = None

    def receive(self, until: float) -> Coroutine[None, None, bytes]:
        """Return the next bytes, empty at the end; see `Connection.receive`.

        To be awaited at once. No coroutine of ours stands between the reader and its wait.
        """
        if self._chunks or self.ended:
            return self._receive_held()
        self._reader = trio.lowlevel.current_task()
        if until != inf:
            self._set_timer(until)
        return trio.lowlevel.wait_task_rescheduled(self._abort_receive)  # noqa: ASYNC105  # see above

    def wait_until(self, until: float) -> None:
        """Give up at another time; see `Connection.wait_until`."""
        if self._reader is not None and self._sink is None:
            self._set_timer(until)

    async def _receive_held(self) -> bytes:
        if self._chunks:
            await trio.lowlevel.checkpoint_if_cancelled()
            was_full = self.is_full
            data = self._chunks.popleft()
            self.held_bytes -= len(data)
            if was_full and not self.is_full:
                self.on_room()
            return data
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._error is not None:
            raise self._error
        return b""

    async def pump(self, sink: Callable[[bytes], bool], idle_s: float | None) -> bool:
        """Hand what arrives to `sink` as it is delivered; see `Connection.pump`."""
        while self._chunks:
            if not sink(await self.receive(inf)):
                return False
        if self.ended:
            return not await self.receive(inf)
        self._idle_s = inf if idle_s is None else idle_s
        self._reader = trio.lowlevel.current_task()
        self._sink = sink
        if self._idle_s != inf:
            self._set_timer(self._now() + self._idle_s)
        await trio.lowlevel.wait_task_rescheduled(self._abort_receive)
        return self.ended and not self._chunks

    def _put_off_timeout(self) -> None:
        if self._timer is not None and self._idle_s != inf:
            self._timer.at = self._now() + self._idle_s

    def _set_timer(self, until: float) -> None:
        if self._timer is None:
            self._timer = Timer(self._expire)
        self._timers.set(self._timer, until)

    def _abort_receive(self, _: object) -> trio.lowlevel.Abort:
        self._release_reader()
        return trio.lowlevel.Abort.SUCCEEDED

    def _release_reader(self) -> None:
        self._reader = self._sink = None
        if self._timer is not None:
            self._timer.at = inf

    def _expire(self) -> None:
        reader = self._reader
        if reader is not None:
            self._release_reader()
            trio.lowlevel.reschedule(reader, outcome.Error(ReceiveTimedOut()))
