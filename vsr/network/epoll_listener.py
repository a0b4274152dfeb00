"""One listening socket of the real network."""

import errno
import select
import socket
from collections import deque

import outcome
import trio

from vsr.network.epoll_connection import EpollConnection, Watcher
from vsr.network.port import ConnectionBroken
from vsr.network.timers import Timer

_ACCEPT_BATCH = 64
_BACKLOG = 4096
"""No more than this wait, see `listening_socket`."""
_ACCEPT_RETRY_S = 0.1
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def listening_socket(address: str, port: int) -> socket.socket:
    """Bind and listen on `address`.

    Raises:
        OSError: it cannot be bound.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


class EpollListener:
    """One listening socket; see `vsr.network.port.Listener`."""

    def __init__(self, network: Watcher, sock: socket.socket, *, is_shared: bool = False) -> None:
        """Take a socket that listens; where other processes accept from it, one at a time."""
        sock.settimeout(0)
        self._batch = 1 if is_shared else _ACCEPT_BATCH
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
        self._close_socket()
        while self._accepted:
            self._accepted.popleft().close()
        self._wake()

    def finish(self) -> None:
        """Stop listening once the accept queue is empty: what waits there would be reset."""
        if self._closed:
            return
        self._accept_some(_BACKLOG)
        self._close_socket()
        self._wake()

    def on_events(self, _: int) -> None:
        """Accept what waits; runs in the network's task."""
        if not self._accept_some(self._batch):
            self._pause_accepting()
        if self._accepted:
            self._wake()

    def _accept_some(self, limit: int) -> bool:
        """Accept up to `limit` connections; return False if we are out of descriptors."""
        for _attempt in range(limit):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                break
            except OSError as error:
                return error.errno not in _OUT_OF_DESCRIPTORS
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted.append(EpollConnection(self._network, sock, address[0]))
        return True

    def _close_socket(self) -> None:
        self._closed = True
        self._unwatch()
        self._sock.close()

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
