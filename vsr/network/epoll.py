"""The real network: non-blocking sockets on one level-triggered epoll that one task serves.

Every connection stays registered for its whole life. Compared with a wait per read this saves two
system calls and a checkpoint per wake-up, and it shows a peer that leaves while its reader is busy.
"""

import errno
import select
import socket
from collections.abc import Callable, Collection

import trio

from vsr.network.epoll_connection import EpollConnection, Watched
from vsr.network.epoll_listener import EpollListener
from vsr.network.listening import bound_socket
from vsr.network.port import ConnectFailed, HostNotFound, NothingAllowed, Place
from vsr.network.timers import LazyTimers

_BATCH_EVENTS = 256


class EpollNetwork:
    """Sockets of this process; `run` must be running while any of them is used."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, Watched] = {}
        self._listeners: dict[EpollListener, Place] = {}
        """Closed ones are forgotten when the next one is bound."""
        self.timers = LazyTimers()

    @property
    def open_sockets(self) -> int:
        """Return how many sockets are registered."""
        return len(self._watched)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve all sockets until cancelled; a network that has run cannot be used again."""
        with self._epoll:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.timers.run)
                task_status.started()
                await self._serve()

    async def _serve(self) -> None:
        poll, watched = self._epoll.poll, self._watched
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for fd, events in poll(0, _BATCH_EVENTS):
                # Looked up at the last moment: what an earlier event closed is gone by now.
                target = watched.get(fd)
                if target is not None:
                    target.on_events(events)

    async def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> EpollConnection:
        """Open a connection; addresses are tried in the resolver's order."""
        family = socket.AF_INET if ipv4_only and ":" not in host else socket.AF_UNSPEC
        try:
            found = await trio.socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # the latter: a name that no DNS label can hold
            raise HostNotFound from None
        if allows is not None:
            found = [each for each in found if allows(str(each[4][0]))]
            if not found:
                raise NothingAllowed
        failure = ConnectFailed()
        for address_family, kind, protocol, _, address in found:
            try:
                return await self._connect_to(
                    socket.socket(address_family, kind, protocol), address
                )
            except OSError as error:
                failure = ConnectFailed(error.errno or 0)
        raise failure

    async def listen(self, address: str, port: int) -> EpollListener:
        """Bind and listen on `address`."""
        listener = await self.bind(address, port)
        try:
            listener.open()
        except OSError:
            listener.close()
            raise
        return listener

    async def bind(self, address: str, port: int, beside: Collection[Place] = ()) -> EpollListener:
        """Bind `address`."""
        open_ones = {each: at for each, at in self._listeners.items() if not each.is_closed}
        near = [each for each, place in open_ones.items() if place in beside]
        leaves = any(each.is_retired and at[1] == port for each, at in open_ones.items())
        sock = bound_socket(address, port, [each.sock for each in near], was_ours=leaves)
        listener = EpollListener(self, sock, near)
        self._listeners = {**open_ones, listener: (address, listener.port)}
        return listener

    def watch(self, fd: int, target: Watched, interest: int) -> None:
        """Register `fd`."""
        self._watched[fd] = target
        self._epoll.register(fd, interest)

    def change(self, fd: int, interest: int) -> None:
        """Change what `fd` is watched for."""
        if not self._epoll.closed:
            self._epoll.modify(fd, interest)

    def unwatch(self, fd: int) -> None:
        """Forget `fd`; it must still be open."""
        if self._watched.pop(fd, None) is not None and not self._epoll.closed:
            self._epoll.unregister(fd)

    async def _connect_to(self, sock: socket.socket, address: object) -> EpollConnection:
        try:
            await _connect_socket(sock, address)
        except BaseException:
            sock.close()
            raise
        return EpollConnection(self, sock, "")


async def _connect_socket(sock: socket.socket, address: object) -> None:
    sock.settimeout(0)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    code = sock.connect_ex(address)  # type: ignore[arg-type]  # as getaddrinfo gave it
    if code == errno.EINPROGRESS:
        await trio.lowlevel.wait_writable(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, "connect failed")
