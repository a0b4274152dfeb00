"""The real network: non-blocking sockets on one level-triggered epoll that one task serves.

Every connection stays registered for its whole life. Compared with a wait per read this saves two
system calls and a checkpoint per wake-up, and it shows a peer that leaves while its reader is busy.
"""

import errno
import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Coroutine
from math import inf
from typing import Protocol

import outcome
import trio

from vsr.network.inbox import Inbox
from vsr.network.port import READ_SIZE_BYTES, ConnectFailed, ConnectionBroken, HostNotFound
from vsr.network.timers import LazyTimers, Timer

_READ = select.EPOLLIN | select.EPOLLRDHUP
_WRITE = select.EPOLLOUT
_BATCH_EVENTS = 256
_ACCEPT_BATCH = 64
_BACKLOG = 4096
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_ACCEPT_RETRY_S = 0.1
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Watched(Protocol):
    def on_events(self, events: int) -> None: ...


class EpollNetwork:
    """Sockets of this process; `run` must be running while any of them is used."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, _Watched] = {}
        self.timers = LazyTimers()

    @property
    def open_sockets(self) -> int:
        """Return how many sockets are registered."""
        return len(self._watched)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve all sockets until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.timers.run)
            task_status.started()
            poll, watched = self._epoll.poll, self._watched
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                for fd, events in poll(0, _BATCH_EVENTS):
                    # Looked up at the last moment: what an earlier event closed is gone by now.
                    target = watched.get(fd)
                    if target is not None:
                        target.on_events(events)

    async def connect(self, host: str, port: int, *, ipv4_only: bool = False) -> "EpollConnection":
        """Open a connection; addresses are tried in the resolver's order."""
        family = socket.AF_INET if ipv4_only and ":" not in host else socket.AF_UNSPEC
        try:
            found = await trio.socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # the latter: a name that no DNS label can hold
            raise HostNotFound from None
        failure = ConnectFailed()
        for address_family, kind, protocol, _, address in found:
            try:
                return await self._connect_to(
                    socket.socket(address_family, kind, protocol), address
                )
            except OSError as error:
                failure = ConnectFailed(error.errno or 0)
        raise failure

    async def listen(self, address: str, port: int) -> "EpollListener":
        """Bind and listen on `address`."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            sock.listen(_BACKLOG)
        except OSError:
            sock.close()
            raise
        return EpollListener(self, sock)

    def watch(self, fd: int, target: _Watched, interest: int) -> None:
        """Register `fd`."""
        self._watched[fd] = target
        self._epoll.register(fd, interest)

    def change(self, fd: int, interest: int) -> None:
        """Change what `fd` is watched for."""
        self._epoll.modify(fd, interest)

    def unwatch(self, fd: int) -> None:
        """Forget `fd`; it must still be open."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    async def _connect_to(self, sock: socket.socket, address: object) -> "EpollConnection":
        try:
            await _connect_socket(sock, address)
        except BaseException:
            sock.close()
            raise
        return EpollConnection(self, sock, "")


class EpollConnection:
    """One socket; see `vsr.network.port.Connection`."""

    __slots__ = ("_closed", "_fd", "_inbox", "_interest", "_network", "_sock", "_writer", "peer")

    def __init__(self, network: EpollNetwork, sock: socket.socket, peer: str) -> None:
        self._network = network
        self._sock = sock
        self._fd = sock.fileno()
        self._inbox = Inbox(network.timers, self._resume_reading)
        self._writer: trio.lowlevel.Task | None = None
        self._closed = False
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
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def receive(self, *, until: float = inf) -> Coroutine[None, None, bytes]:
        """Return the next bytes, empty at the end of the stream."""
        return self._inbox.receive(until)

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
        if inbox.is_full:
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


class EpollListener:
    """One listening socket; see `vsr.network.port.Listener`."""

    def __init__(self, network: EpollNetwork, sock: socket.socket) -> None:
        sock.settimeout(0)
        self._network = network
        self._sock = sock
        self._fd = sock.fileno()
        self._accepted: deque[EpollConnection] = deque()
        self._acceptor: trio.lowlevel.Task | None = None
        self._closed = False
        self._watching = False

    @property
    def port(self) -> int:
        """Return the bound port."""
        port: int = self._sock.getsockname()[1]
        return port

    async def accept(self) -> EpollConnection:
        """Return the next connection; until called, clients wait in the accept queue."""
        while not self._accepted:
            if self._closed:
                raise ConnectionBroken
            self._acceptor = trio.lowlevel.current_task()
            self._watch()
            await trio.lowlevel.wait_task_rescheduled(self._abort_accept)
        return self._accepted.popleft()

    def close(self) -> None:
        """Stop listening; connections accepted but not yet handed out are closed."""
        if self._closed:
            return
        self._closed = True
        self._unwatch()
        self._sock.close()
        while self._accepted:
            self._accepted.popleft().close()
        self._wake()

    def on_events(self, _: int) -> None:
        """Accept what waits; runs in the network's task."""
        for _attempt in range(_ACCEPT_BATCH):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    self._pause_accepting()
                break
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted.append(EpollConnection(self._network, sock, address[0]))
        if self._accepted:
            self._wake()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._network.watch(self._fd, self, select.EPOLLIN)

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._network.unwatch(self._fd)

    def _pause_accepting(self) -> None:
        """Out of descriptors: look again later instead of spinning on a full accept queue."""
        self._unwatch()
        timer = Timer(self._retry_accepting)
        self._network.timers.set(timer, trio.current_time() + _ACCEPT_RETRY_S)

    def _retry_accepting(self) -> None:
        if not self._closed and self._acceptor is not None:
            self._watch()

    def _abort_accept(self, _: object) -> trio.lowlevel.Abort:
        self._acceptor = None
        self._unwatch()
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        acceptor = self._acceptor
        if acceptor is not None:
            self._acceptor = None
            self._unwatch()
            trio.lowlevel.reschedule(acceptor, outcome.Value(None))


async def _connect_socket(sock: socket.socket, address: object) -> None:
    sock.settimeout(0)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    code = sock.connect_ex(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
    if code == errno.EINPROGRESS:
        await trio.lowlevel.wait_writable(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, "connect failed")
