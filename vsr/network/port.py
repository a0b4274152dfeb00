"""The port that all sockets come through, so that tests and dry runs can replace the network.

An implementation delivers bytes as they arrive, reads ahead at most `READ_AHEAD_BYTES` per
connection, and keeps watching a connection whose reader is busy elsewhere: a peer that leaves is
seen at once, not at the next read.
"""

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Protocol

READ_SIZE_BYTES = 65_536
"""The most that one read takes from a connection."""
READ_AHEAD_BYTES = 65_536
"""Bytes held for a reader that is busy elsewhere; beyond it the peer is no longer read."""

Place = tuple[str, int]
"""Address and port that are bound."""


class NetworkError(Exception):
    """The outside broke a connection; never holds an address."""


class ConnectionBroken(NetworkError):
    """The peer reset the connection, or it can no longer carry data."""


class ReceiveTimedOut(NetworkError):
    """Nothing arrived until the given time; the connection itself is still intact."""


class ConnectFailed(NetworkError):
    """A connection could not be set up; `errno` is the operating system's number, 0 if unknown."""

    def __init__(self, errno: int = 0) -> None:
        super().__init__(f"delayed connect error: {errno}" if errno else "")
        self.errno = errno


class HostNotFound(ConnectFailed):
    """The host name did not resolve."""


class NothingAllowed(ConnectFailed):
    """The host has addresses, but the caller allows none of them; nothing was connected to."""


class TlsFailed(ConnectFailed):
    """The TLS handshake failed; `reason` is OpenSSL's word for it."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Connection(Protocol):
    """One byte stream. One task reads and one task writes at a time."""

    on_gone: Callable[[], None] | None
    """Called once, synchronously, when the peer closes, half-closes or resets."""

    @property
    def peer(self) -> str:
        """Return the peer's IP address, empty when unknown."""
        ...

    @property
    def is_gone(self) -> bool:
        """Return whether the peer has closed, half-closed or reset."""
        ...

    def is_idle(self) -> bool:
        """Return whether the connection is open and silent: safe to send a new request on."""
        ...

    async def receive(self, *, until: float = inf) -> bytes:
        """Return the next bytes, empty at the end of the stream.

        Args:
            until: give up at this monotonic time.

        Raises:
            ConnectionBroken: the peer reset the connection.
            ReceiveTimedOut: nothing arrived until `until`.
        """
        ...

    def wait_until(self, until: float) -> None:
        """Let the `receive` that is under way, if there is one, give up at another time."""
        ...

    async def pump(self, sink: Callable[[bytes], bool], idle_s: float | None) -> bool:
        """Hand what arrives to `sink` until it returns False or the stream ends.

        Where the implementation can, `sink` runs in the task that takes bytes from the network, so
        that a relayed chunk wakes no other task. It must be quick and must not raise.

        Args:
            sink: returns whether it wants more.
            idle_s: limit of each single wait; None means no limit.

        Returns:
            Whether the stream has ended.

        Raises:
            ConnectionBroken: the peer reset the connection.
            ReceiveTimedOut: nothing arrived for `idle_s`.
        """
        ...

    def try_send(self, data: bytes) -> int:
        """Send what fits without waiting; return how many bytes that was.

        Raises:
            ConnectionBroken: the peer is gone.
        """
        ...

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of `data`, waiting as long as the peer does not read.

        After a cancellation an unknown part is sent: close the connection.

        Raises:
            ConnectionBroken: the peer is gone.
        """
        ...

    def shutdown_send(self) -> None:
        """Tell the peer that nothing more will be sent; reading stays possible."""
        ...

    def close(self) -> None:
        """Close both directions at once; closing again does nothing."""
        ...

    def abort(self) -> None:
        """Close with a reset, so that the peer cannot take what it has for a whole answer."""
        ...


class Listener(Protocol):
    """A bound socket."""

    @property
    def port(self) -> int:
        """Return the bound port."""
        ...

    async def accept(self) -> Connection:
        """Return the next connection.

        Raises:
            ConnectionBroken: the listener was closed.
        """
        ...

    def open(self) -> None:
        """Let clients come, which are refused before.

        Raises:
            OSError: another process has come to listen there.
        """
        ...

    def take_waiting(self) -> "Sequence[Connection]":
        """Return who waits to be accepted now."""
        ...

    def close(self) -> None:
        """Stop listening: later connections are refused, those not accepted yet are dropped."""
        ...

    def finish(self, handshakes_s: float = 0.0) -> None:
        """Stop listening; connections that wait to be accepted are still handed out.

        Args:
            handshakes_s: what clients that have begun to connect get to end that, who would be
                reset otherwise; from now on nobody else gets here.
        """
        ...


class Network(Protocol):
    """Where connections come from."""

    async def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> Connection:
        """Open a connection to a DNS name or IP literal; the caller limits the time.

        The name is resolved once: what is connected to is an address that `allows` was asked about.

        Args:
            host: without brackets.
            port: at each of its addresses.
            ipv4_only: leave out its IPv6 addresses.
            allows: whether an IP address may be connected to; None allows all.

        Raises:
            HostNotFound: the name has no address.
            NothingAllowed: it has addresses, but none that is allowed.
            ConnectFailed: no address accepted.
        """
        ...

    async def listen(self, address: str, port: int) -> Listener:
        """Bind and listen; port 0 picks a free one.

        Raises:
            OSError: the address cannot be bound.
        """
        ...

    async def bind(self, address: str, port: int, beside: Collection[Place] = ()) -> Listener:
        """Bind without taking clients, which `Listener.open` begins; port 0 picks a free one.

        Args:
            address: an IP address or a name.
            port: nobody else gets it from now on.
            beside: listeners of this port that are given up for this one: addresses may overlap.

        Raises:
            OSError: the address cannot be bound.
        """
        ...
