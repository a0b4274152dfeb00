"""The real network of a process that is given its listening sockets."""

import errno
import socket
from collections.abc import Callable, Collection, Coroutine

import attrs

from vsr.network.epoll import EpollNetwork
from vsr.network.epoll_connection import EpollConnection
from vsr.network.epoll_listener import EpollListener
from vsr.network.port import Place


@attrs.define(eq=False)
class InheritedNetwork:
    """Implements `vsr.network.port.Network`: where it would bind, it takes what it was given."""

    network: EpollNetwork
    _given: dict[Place, socket.socket] = attrs.field(factory=dict, init=False)

    def give(self, address: str, port: int, sock: socket.socket) -> None:
        """Let `listen` have a socket that others listen on, too; the one before is closed."""
        before = self._given.pop((address, port), None)
        if before is not None:
            before.close()
        self._given[address, port] = sock

    def drop(self) -> None:
        """Close what was given and is not wanted."""
        while self._given:
            self._given.popitem()[1].close()

    def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> Coroutine[None, None, EpollConnection]:
        """Open a connection."""
        return self.network.connect(host, port, ipv4_only=ipv4_only, allows=allows)

    async def listen(self, address: str, port: int) -> EpollListener:
        """Take the socket that was given for this address and port.

        Raises:
            OSError: there is none.
        """
        return await self.bind(address, port)

    async def bind(self, address: str, port: int, beside: Collection[Place] = ()) -> EpollListener:
        """Take the socket that was given for this address and port, bound or listening.

        Raises:
            OSError: there is none.
        """
        del beside  # its owner has bound it
        sock = self._given.pop((address, port), None)
        if sock is None:
            raise OSError(errno.EADDRNOTAVAIL, "no socket was given")
        return EpollListener(self.network, sock, is_shared=True)
