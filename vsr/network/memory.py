"""A network in memory, for tests and dry runs: same port, no socket, any clock.

A connection holds at most `READ_AHEAD_BYTES` on its way and then makes the sender wait, as the
kernel's buffers would. Each host and port is free, listening, refusing, silent or unknown.
"""

import errno
import ipaddress
from collections import deque
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from math import inf

import outcome
import trio

from vsr.network.inbox import Inbox
from vsr.network.port import (
    READ_SIZE_BYTES,
    ConnectFailed,
    ConnectionBroken,
    HostNotFound,
    NothingAllowed,
    Place,
)
from vsr.network.timers import LazyTimers

_THIS_HOST = "127.0.0.1"


class Fault(StrEnum):
    """What a connection attempt to a host meets instead of a listener."""

    UNKNOWN_HOST = "unknown_host"
    SILENT = "silent"


class MemoryNetwork:
    """All connections of one virtual network; `run` serves its read timeouts."""

    def __init__(self) -> None:
        self.timers = LazyTimers()
        self.open_connections = 0
        self.faults: dict[str, Fault] = {}
        """Host name to the fault that connecting to it meets."""
        self.addresses: dict[str, Callable[[], Sequence[str]]] = {}
        """Host to what looking it up finds at the time; where it is missing, IP literals are their
        own address and names that of this host."""
        self._bound: dict[int, list[MemoryListener]] = {}
        """By port; the last one that is open takes who connects."""
        self._next_port = 49_152

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve read timeouts until cancelled."""
        task_status.started()
        await self.timers.run()

    async def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> "MemoryConnection":
        """Open a connection to whoever listens on `port`, whatever the host."""
        del ipv4_only
        await trio.lowlevel.checkpoint()
        fault = self.faults.get(host)
        if fault is Fault.UNKNOWN_HOST:
            raise HostNotFound
        if allows is not None and not any(map(allows, self._resolved(host))):
            raise NothingAllowed
        if fault is Fault.SILENT:
            await trio.sleep_forever()
        listeners = [each for each in self._bound.get(port, ()) if each.is_open]
        if not listeners:
            raise ConnectFailed(errno.ECONNREFUSED)
        near, far = MemoryConnection(self), MemoryConnection(self)
        near.join(far)
        listeners[-1].offer(far)
        return near

    async def listen(self, address: str, port: int) -> "MemoryListener":
        """Listen on `port`, whatever the address."""
        listener = await self.bind(address, port)
        listener.open()
        return listener

    async def bind(
        self, address: str, port: int, beside: Collection[Place] = ()
    ) -> "MemoryListener":
        """Take `port`; all addresses overlap here."""
        await trio.lowlevel.checkpoint()
        if not port:
            self._next_port += 1
            port = self._next_port
        bound = self._bound.setdefault(port, [])
        if any((each.address, port) not in beside for each in bound):
            raise OSError(errno.EADDRINUSE, "address in use")
        listener = MemoryListener(self, address, port)
        bound.append(listener)
        return listener

    def _resolved(self, host: str) -> Sequence[str]:
        look_up = self.addresses.get(host)
        if look_up is not None:
            return look_up()
        try:
            return (str(ipaddress.ip_address(host)),)
        except ValueError:
            return (_THIS_HOST,)

    def forget(self, port: int) -> None:
        """Let connections to `port` be refused from now on."""
        self._bound.pop(port, None)

    def release(self, listener: "MemoryListener") -> None:
        """Let nobody connect to `listener` from now on."""
        bound = self._bound.get(listener.port, [])
        if listener in bound:
            bound.remove(listener)


class MemoryConnection:
    """One end of a connection; see `vsr.network.port.Connection`."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._inbox = Inbox(network.timers, self._tell_room)
        self._far: MemoryConnection | None = None
        self._writer: trio.lowlevel.Task | None = None
        self._closed = False
        self.peer = _THIS_HOST
        network.open_connections += 1

    def join(self, far: "MemoryConnection") -> None:
        """Make `far` the other end."""
        self._far = far
        far._far = self  # noqa: SLF001  # the two ends are one thing

    @property
    def on_gone(self) -> Callable[[], None] | None:
        """Return the hang-up callback."""
        return self._inbox.on_gone

    @on_gone.setter
    def on_gone(self, callback: Callable[[], None] | None) -> None:
        self._inbox.on_gone = callback

    @property
    def is_gone(self) -> bool:
        """Return whether the peer has closed, half-closed or reset."""
        return self._inbox.has_peer_left

    @property
    def is_closed(self) -> bool:
        """Return whether our own end is closed."""
        return self._closed

    @property
    def held_bytes(self) -> int:
        """Return the bytes that arrived and were not read yet."""
        return self._inbox.held_bytes

    def is_idle(self) -> bool:
        """Return whether the connection is open and silent."""
        return not self._closed and self._inbox.is_silent()

    async def receive(self, *, until: float = inf) -> bytes:
        """Return the next bytes, empty at the end of the stream."""
        return await self._inbox.receive(until)

    def wait_until(self, until: float) -> None:
        """Let the `receive` that is under way give up at another time."""
        self._inbox.wait_until(until)

    async def pump(self, sink: Callable[[bytes], bool], idle_s: float | None) -> bool:
        """Hand what arrives to `sink`, in the sender's task."""
        return await self._inbox.pump(sink, idle_s)

    def try_send(self, data: bytes) -> int:
        """Send what fits without waiting."""
        far = self._open_far()
        if far._inbox.is_full:  # noqa: SLF001
            return 0
        taken = data[:READ_SIZE_BYTES]
        far._inbox.deliver(taken)  # noqa: SLF001
        return len(taken)

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of `data`, waiting while the other end holds a full buffer."""
        await trio.lowlevel.checkpoint_if_cancelled()
        far = self._open_far()
        for start in range(0, len(data), READ_SIZE_BYTES):
            while far._inbox.is_full:  # noqa: SLF001
                self._writer = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort_send)
                self._open_far()
            far._inbox.deliver(bytes(data[start : start + READ_SIZE_BYTES]))  # noqa: SLF001

    def shutdown_send(self) -> None:
        """Send the end of the stream."""
        if self._far is not None:
            self._far._inbox.finish()  # noqa: SLF001

    def close(self) -> None:
        """Close both directions."""
        self._close(broken=bool(self._inbox.held_bytes))

    def abort(self) -> None:
        """Close with a reset."""
        self._close(broken=True)

    def _close(self, *, broken: bool) -> None:
        if self._closed:
            return
        self._closed = True
        self._network.open_connections -= 1
        self._inbox.discard()
        self._wake_writer()
        if self._far is not None and not self._far._closed:  # noqa: SLF001
            self._far._inbox.finish(broken=broken)  # noqa: SLF001
            self._far._wake_writer()  # noqa: SLF001

    def _open_far(self) -> "MemoryConnection":
        far = self._far
        if self._closed or far is None or far._closed:  # noqa: SLF001
            raise ConnectionBroken
        return far

    def _tell_room(self) -> None:
        if self._far is not None:
            self._far._wake_writer()  # noqa: SLF001

    def _abort_send(self, _: object) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake_writer(self) -> None:
        writer = self._writer
        if writer is not None:
            self._writer = None
            trio.lowlevel.reschedule(writer, outcome.Value(None))


class MemoryListener:
    """A listening port; see `vsr.network.port.Listener`."""

    def __init__(self, network: MemoryNetwork, address: str, port: int) -> None:
        self._network = network
        self.address = address
        self.port = port
        self.is_open = False
        self._waiting: deque[MemoryConnection] = deque()
        self._arrived = trio.lowlevel.ParkingLot()
        self._closed = False

    def open(self) -> None:
        """Let clients come."""
        self.is_open = True

    def offer(self, connection: MemoryConnection) -> None:
        """Queue a new connection for `accept`."""
        self._waiting.append(connection)
        self._arrived.unpark()

    async def accept(self) -> MemoryConnection:
        """Return the next connection."""
        while not self._waiting:
            if self._closed:
                raise ConnectionBroken
            await self._arrived.park()
        return self._waiting.popleft()

    def take_waiting(self) -> "list[MemoryConnection]":
        """Return who waits to be accepted."""
        waiting, self._waiting = list(self._waiting), deque()
        return waiting

    def close(self) -> None:
        """Refuse later connections and drop those not accepted yet."""
        if self._closed:
            return
        self.finish()
        while self._waiting:
            self._waiting.popleft().abort()

    def finish(self, handshakes_s: float = 0.0) -> None:
        """Refuse later connections; there are no handshakes here."""
        del handshakes_s
        if not self._closed:
            self._closed = True
            self._network.release(self)
            self._arrived.unpark_all()
