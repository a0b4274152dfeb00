"""One listening socket of the real network."""

import errno
import select
import socket
from collections import deque
from collections.abc import Sequence

import outcome
import trio

from vsr.network.epoll_connection import EpollConnection, Watcher
from vsr.network.listening import BACKLOG, begin_listening, retire
from vsr.network.port import ConnectionBroken
from vsr.network.timers import Timer

_ACCEPT_BATCH = 64
_ACCEPT_RETRY_S = 0.1
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class EpollListener:
    """One listening socket; see `vsr.network.port.Listener`."""

    def __init__(
        self,
        network: Watcher,
        sock: socket.socket,
        beside: "Sequence[EpollListener]" = (),
        *,
        is_shared: bool = False,
    ) -> None:
        """Take a socket of `vsr.network.listening`.

        Args:
            network: watches it.
            sock: is bound.
            beside: whose sockets it was bound beside.
            is_shared: other processes accept from it, so each takes one client at a time; whoever
                owns it lets it listen.
        """
        sock.settimeout(0)
        self._beside = tuple(beside)
        self._is_shared = is_shared
        self._batch = 1 if is_shared else _ACCEPT_BATCH
        self._network = network
        self._sock = sock
        self._fd = sock.fileno()
        self._accepted: deque[EpollConnection] = deque()
        self._acceptor: trio.lowlevel.Task | None = None
        self._closed = False
        self.is_retired = False
        """Whether only those come that were on their way."""
        self._watching = False

    @property
    def port(self) -> int:
        """Return the bound port."""
        port: int = self._sock.getsockname()[1]
        return port

    @property
    def is_closed(self) -> bool:
        """Return whether nothing is left of it."""
        return self._closed

    @property
    def sock(self) -> socket.socket:
        """Return the socket itself."""
        return self._sock

    def open(self) -> None:
        """Let clients come."""
        beside = [each.sock for each in self._beside if not each.is_closed]
        self._beside = ()
        if not self._is_shared:
            begin_listening(self._sock, beside)

    async def accept(self) -> EpollConnection:
        """Return the next connection; until called, clients wait in the accept queue."""
        while not self._accepted:
            if self._closed:
                raise ConnectionBroken
            # Else one that is cancelled by now would take the place of whoever accepts after it.
            await trio.lowlevel.checkpoint_if_cancelled()
            self._acceptor = trio.lowlevel.current_task()
            self._watch()
            await trio.lowlevel.wait_task_rescheduled(self._abort_accept)
        return self._accepted.popleft()

    def take_waiting(self) -> list[EpollConnection]:
        """Return who waits to be accepted."""
        if not self._closed:
            self._accept_some(BACKLOG)
        waiting, self._accepted = list(self._accepted), deque()
        return waiting

    def close(self) -> None:
        """Stop listening; connections accepted but not yet handed out are closed."""
        if self._closed:
            return
        self._close_socket()
        while self._accepted:
            self._accepted.popleft().close()
        self._wake()

    def finish(self, handshakes_s: float = 0.0) -> None:
        """Take no new clients, and stop listening once those that have come are accepted."""
        if self._closed:
            return
        self.is_retired = retire(self._sock)
        self._accept_some(BACKLOG)
        if handshakes_s and self.is_retired:
            self._network.timers.set(Timer(self.finish), trio.current_time() + handshakes_s)
        else:
            self._close_socket()
        if self._accepted or self._closed:
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
