"""Listening sockets of the operating system: bound first, opened to clients later, retired."""

import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

BACKLOG = 4096
"""Clients that may wait to be accepted; the kernel's own limit holds, too."""
_SO_BINDTOIFINDEX = 62
"""Python names it from 3.14 on."""
_NO_INTERFACE = 0x7FFF_FFFF
"""The index of an interface that there is not: the kernel counts them up from 1."""


def listening_socket(address: str, port: int) -> socket.socket:
    """Bind and listen on `address`.

    Raises:
        OSError: it cannot be bound.
    """
    sock = bound_socket(address, port)
    try:
        begin_listening(sock)
    except OSError:
        sock.close()
        raise
    return sock


def bound_socket(
    address: str, port: int, beside: Sequence[socket.socket] = (), *, was_ours: bool = False
) -> socket.socket:
    """Bind `address`; until `begin_listening` clients are refused, and nobody else gets the port.

    An IPv6 address that stands for all of them takes IPv4 clients as well, whatever the system's
    default is. Source: RFC 3493 section 5.3.

    Args:
        address: an IP address or a name.
        port: 0 picks a free one.
        beside: our own listening sockets of that port that are given up for it: their address may
            be one that holds this one, or is held by it.
        was_ours: whether a retired socket of ours may still be about to leave the port.

    Raises:
        OSError: it cannot be bound, or is the very address of one beside it.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # The port may hold connections of an earlier listener that have yet to end.
        _set(sock, socket.SO_REUSEADDR, 1)
        _beside(lambda: sock.bind((address, port)), sock, beside, may_share=was_ours)
        _check_apart(sock, beside)
        # Else another process could bind it, too, and be the first to listen.
        _set(sock, socket.SO_REUSEADDR, 0)
    except OSError:
        sock.close()
        raise
    return sock


def begin_listening(sock: socket.socket, beside: Sequence[socket.socket] = ()) -> None:
    """Let clients come to a socket of `bound_socket`.

    Args:
        sock: as bound.
        beside: as it was bound.

    Raises:
        OSError: another process listens there; only one that had bound the port before and listens
            in this very moment can.
    """
    # Its connections have this from it, and a restart needs it of them.
    _set(sock, socket.SO_REUSEADDR, 1)
    _beside(lambda: sock.listen(BACKLOG), sock, beside, may_share=True)


def retire(sock: socket.socket) -> bool:
    """Let no client come to a listening socket any more; those that are on their way still do.

    Closing it would reset who waits to be accepted, or has not finished the TCP handshake. Bound to
    an interface that there is not, it is found by no client that begins: that goes to whoever else
    listens, or is refused. A handshake under way knows its socket. Linux allows that to everybody
    from 5.7 on.

    Returns:
        Whether that is so; if not, it takes clients until it is closed.
    """
    try:
        if sock.getsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX) == _NO_INTERFACE:
            return True
        _set(sock, _SO_BINDTOIFINDEX, _NO_INTERFACE)
        _set(sock, socket.SO_REUSEPORT, 1)  # it is in nobody's way while it lasts
    except OSError:
        return False
    return True


def _beside(
    act: Callable[[], None],
    sock: socket.socket,
    beside: Sequence[socket.socket],
    *,
    may_share: bool,
) -> None:
    """Bind or listen where sockets of ours listen already, if there is need for that.

    The kernel lets addresses of one port overlap if every socket agrees. None agrees for longer
    than it takes: a second Router that is started by mistake is to find the address in use.
    """
    try:
        act()
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not (beside or may_share):
            raise
        with _sharing(sock, *beside):
            act()


def _check_apart(sock: socket.socket, beside: Sequence[socket.socket]) -> None:
    """Refuse an address beside itself: the kernel would hand some clients to the one that leaves.

    Raises:
        OSError: it is the same.
    """
    if any(sock.getsockname()[:2] == each.getsockname()[:2] for each in beside):
        raise OSError(errno.EADDRINUSE, "the address is listened on by another name")


@contextmanager
def _sharing(*socks: socket.socket) -> Iterator[None]:
    for sock in socks:
        _set(sock, socket.SO_REUSEPORT, 1)
    try:
        yield
    finally:
        for sock in socks:
            _set(sock, socket.SO_REUSEPORT, 0)


def _set(sock: socket.socket, option: int, value: int) -> None:
    sock.setsockopt(socket.SOL_SOCKET, option, value)
