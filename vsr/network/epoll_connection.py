"""One socket of the real network: reads when told, writes at once and waits only when short."""

import select
import socket
import struct
from collections.abc import Callable, Coroutine
from math import inf
from typing import Protocol

import outcome
import trio

from vsr.network.inbox import Inbox
from vsr.network.port import READ_AHEAD_BYTES, READ_SIZE_BYTES, ConnectionBroken
from vsr.network.timers import LazyTimers

_READ = select.EPOLLIN | select.EPOLLRDHUP
_WRITE = select.EPOLLOUT
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_ANYTHING = select.POLLIN | select.POLLRDHUP
"""Errors and hang-ups are reported without being asked for."""


class Watched(Protocol):
    """What acts on the events of one descriptor."""

    def on_events(self, events: int) -> None:
        """Act at once and without blocking."""
        ...


class Watcher(Protocol):
    """The network, as far as its sockets know it."""

    timers: LazyTimers

    def watch(self, fd: int, target: Watched, interest: int) -> None:
        """Register `fd`."""
        ...

    def change(self, fd: int, interest: int) -> None:
        """Change what `fd` is watched for."""
        ...

    def unwatch(self, fd: int) -> None:
        """Forget `fd`; it must still be open."""
        ...


class EpollConnection:
    """One socket; see `vsr.network.port.Connection`."""

    __slots__ = (
        "_closed",
        "_fd",
        "_inbox",
        "_interest",
        "_look",
        "_network",
        "_sock",
        "_writer",
        "peer",
    )

    def __init__(self, network: Watcher, sock: socket.socket, peer: str) -> None:
        self._network = network
        self._sock = sock
        self._fd = sock.fileno()
        self._inbox = Inbox(network.timers, self._resume_reading)
        self._writer: trio.lowlevel.Task | None = None
        self._closed = False
        self._look: Callable[[int], list[tuple[int, int]]] | None = None
        self.peer = peer
        self._interest = _READ
        network.watch(self._fd, self, _READ)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "gone" if self._inbox.ended else "open"
        return f"<EpollConnection {state}, {self._inbox.held_bytes} bytes held>"

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

    def is_idle(self) -> bool:
        """Return whether nothing has arrived, the kernel's own buffer included."""
        if self._closed or not self._inbox.is_silent():
            return False
        look = self._look
        if look is None:
            asked = select.poll()
            asked.register(self._fd, _ANYTHING)
            look = self._look = asked.poll
        # Half the price of a peek, which tells of an idle connection by an exception.
        return not look(0)

    def receive(self, *, until: float = inf) -> Coroutine[None, None, bytes]:
        """Return the next bytes, empty at the end of the stream."""
        return self._inbox.receive(until)

    def wait_until(self, until: float) -> None:
        """Let the `receive` that is under way give up at another time."""
        self._inbox.wait_until(until)

    def pump(
        self, sink: Callable[[bytes], bool], idle_s: float | None
    ) -> Coroutine[None, None, bool]:
        """Hand what arrives to `sink`, in the network's task."""
        return self._inbox.pump(sink, idle_s)

    def try_send(self, data: bytes) -> int:
        """Send what fits without waiting."""
        if self._closed:
            raise ConnectionBroken
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            raise ConnectionBroken from None

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of `data`."""
        if self._closed:
            raise ConnectionBroken
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            raise ConnectionBroken from None
        if sent != len(data):
            await self._send_rest(memoryview(data)[sent:])

    def shutdown_send(self) -> None:
        """Send the end of the stream."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._inbox.finish(broken=True)

    def close(self) -> None:
        """Close the socket; its number may belong to another one right after."""
        if self._closed:
            return
        self._closed = True
        self._set_interest(0)
        self._sock.close()
        self._inbox.discard()
        self._wake_writer()

    def abort(self) -> None:
        """Close the socket with a reset."""
        if not self._closed:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.close()

    def on_events(self, events: int) -> None:
        """Act on what epoll saw; runs in the network's task and never blocks."""
        if events & ~_READ:
            # Room to write, or an error that the writer's next attempt will meet.
            self._wake_writer()
        if self._interest & select.EPOLLIN:
            if events & ~_WRITE:
                self._read()
        elif events & ~(_WRITE | select.EPOLLIN):
            # Reading is paused, yet the peer has left: what it sent before can still be read.
            self._see_end_while_paused(reset=bool(events & select.EPOLLERR))

    def _read(self) -> None:
        inbox = self._inbox
        try:
            data = self._sock.recv(READ_SIZE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._set_interest(self._interest & ~_READ)
            inbox.finish(broken=True)
            return
        if not data:
            # Level-triggered, an ended stream would report itself for ever.
            self._set_interest(self._interest & ~_READ)
            inbox.finish()
            return
        inbox.deliver(data)
        if inbox.held_bytes >= READ_AHEAD_BYTES:
            self._set_interest(self._interest & ~select.EPOLLIN)

    def _see_end_while_paused(self, *, reset: bool) -> None:
        self._set_interest(self._interest & ~_READ)
        if reset:
            self._inbox.finish(broken=True)
        else:
            self._inbox.peer_left()

    def _resume_reading(self) -> None:
        if not self._closed and not self._inbox.ended:
            self._set_interest(self._interest | _READ)

    def _set_interest(self, interest: int) -> None:
        if interest == self._interest:
            return
        if not interest:
            self._network.unwatch(self._fd)
        elif not self._interest:
            self._network.watch(self._fd, self, interest)
        else:
            self._network.change(self._fd, interest)
        self._interest = interest

    async def _send_rest(self, rest: memoryview) -> None:
        while rest:
            self._writer = trio.lowlevel.current_task()
            self._set_interest(self._interest | _WRITE)
            await trio.lowlevel.wait_task_rescheduled(self._abort_send)
            if self._closed:
                raise ConnectionBroken
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise ConnectionBroken from None

    def _abort_send(self, _: object) -> trio.lowlevel.Abort:
        self._writer = None
        self._set_interest(self._interest & ~_WRITE)
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake_writer(self) -> None:
        writer = self._writer
        if writer is not None:
            self._writer = None
            if not self._closed:
                self._set_interest(self._interest & ~_WRITE)
            trio.lowlevel.reschedule(writer, outcome.Value(None))
