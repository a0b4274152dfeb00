"""Listening sockets of the kernel that give way to one another."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from vsr.network.listening import begin_listening, bound_socket, listening_socket, retire

PATIENCE_S = 10
HERE = "127.0.0.1"
ANY = "0.0.0.0"
ANY6 = "::"
MOVES = [
    (HERE, ANY),
    (ANY, HERE),
    (ANY, ANY6),
    (ANY6, ANY),
    (ANY6, HERE),
    (HERE, ANY6),
    (HERE, "127.0.0.2"),
    ("::1", ANY6),
    (ANY6, "::1"),
    (HERE, "::1"),
]


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Return what closes sockets."""
    with ExitStack() as stack:
        yield stack


def port_of(sock: socket.socket) -> int:
    """Return the port of a socket."""
    port: int = sock.getsockname()[1]
    return port


def reached(address: str) -> str:
    """Return where a client finds what listens on an address."""
    return {ANY: HERE, ANY6: HERE}.get(address, address)


def connect(opened: ExitStack, address: str, port: int) -> socket.socket:
    """Return a client."""
    return opened.enter_context(socket.create_connection((address, port), PATIENCE_S))


def count(sock: socket.socket) -> int:
    """Return how many clients wait to be accepted."""
    sock.settimeout(0)
    for number in range(100):
        try:
            sock.accept()[0].close()
        except BlockingIOError:
            return number
    raise AssertionError


@pytest.mark.parametrize(("old_address", "new_address"), MOVES)
def test_socket_takes_over_from_one_on_the_same_port(
    opened: ExitStack, old_address: str, new_address: str
) -> None:
    """Its clients come when it listens; then no other comes to the old one, whose own it keeps."""
    old = opened.enter_context(listening_socket(old_address, 0))
    port = port_of(old)

    new = opened.enter_context(bound_socket(new_address, port, [old]))
    connect(opened, reached(old_address), port)
    begin_listening(new, [old])
    assert retire(old)
    for _ in range(3):
        connect(opened, reached(new_address), port)

    assert count(old) == 1
    assert count(new) == 3


@pytest.mark.parametrize(("old_address", "new_address"), MOVES)
def test_second_router_finds_the_address_in_use_at_any_time(
    opened: ExitStack, old_address: str, new_address: str
) -> None:
    """Before, while both are there, and when the old one has left."""
    old = opened.enter_context(listening_socket(old_address, 0))
    port = port_of(old)
    taken: list[int | None] = []

    def start_second() -> None:
        for address in {old_address, new_address}:
            with pytest.raises(OSError, match="in use") as caught:
                listening_socket(address, port)
            taken.append(caught.value.errno)

    new = opened.enter_context(bound_socket(new_address, port, [old]))
    start_second()
    begin_listening(new, [old])
    start_second()
    retire(old)
    old.close()
    with pytest.raises(OSError, match="in use"):
        listening_socket(new_address, port)

    assert set(taken) == {errno.EADDRINUSE}


def test_address_changes_again_while_the_old_socket_is_still_there(opened: ExitStack) -> None:
    """There and back any number of times."""
    now = opened.enter_context(listening_socket(HERE, 0))
    port = port_of(now)

    for address in (ANY, HERE, ANY6, ANY, HERE) * 2:
        new = opened.enter_context(bound_socket(address, port, [now], was_ours=True))
        begin_listening(new, [now])
        retire(now)
        now = new
        connect(opened, HERE, port)
        assert count(now) == 1


def test_port_is_free_again_for_whoever_gave_it_up_and_has_not_closed_it(opened: ExitStack) -> None:
    """A listener that goes elsewhere and comes back within a second; nobody else may."""
    left = opened.enter_context(listening_socket(HERE, 0))
    port = port_of(left)
    retire(left)

    with pytest.raises(OSError, match="in use"):
        bound_socket(HERE, port)
    back = opened.enter_context(bound_socket(HERE, port, was_ours=True))
    begin_listening(back)
    connect(opened, HERE, port)

    assert count(back) == 1


def test_bound_socket_refuses_clients_and_keeps_the_port(opened: ExitStack) -> None:
    """Until it listens; whoever tries meanwhile does not get it, nor is it in the way later."""
    bound = opened.enter_context(bound_socket(HERE, 0))
    port = port_of(bound)

    with pytest.raises(ConnectionRefusedError):
        connect(opened, HERE, port)
    for address in (HERE, ANY, ANY6):
        with pytest.raises(OSError, match="in use"):
            listening_socket(address, port)
    begin_listening(bound)
    connect(opened, HERE, port)

    assert count(bound) == 1


def test_connections_of_an_earlier_listener_are_in_nobodys_way(opened: ExitStack) -> None:
    """Neither open ones nor those that were closed here first, which the kernel remembers."""
    first = listening_socket(HERE, 0)
    port = port_of(first)
    connect(opened, HERE, port)
    opened.enter_context(first.accept()[0])
    client = connect(opened, HERE, port)
    first.accept()[0].close()
    assert client.recv(1) == b""
    first.close()

    again = opened.enter_context(bound_socket(HERE, port))
    with pytest.raises(OSError, match="in use"):
        listening_socket(ANY, port)
    begin_listening(again)
    client = connect(opened, HERE, port)
    again.accept()[0].close()
    assert client.recv(1) == b""
    again.close()

    opened.enter_context(listening_socket(HERE, port))  # a restart


def test_address_beside_itself_is_refused(opened: ExitStack) -> None:
    """By another name: the kernel would share clients out among both."""
    old = opened.enter_context(listening_socket(HERE, 0))

    with pytest.raises(OSError, match="another name"):
        bound_socket("localhost", port_of(old), [old])
    connect(opened, HERE, port_of(old))

    assert count(old) == 1


def test_stranger_on_the_port_is_not_joined(opened: ExitStack) -> None:
    """Whatever else of the port is ours."""
    stranger = opened.enter_context(listening_socket("127.0.0.2", 0))
    port = port_of(stranger)
    ours = opened.enter_context(listening_socket(HERE, port))

    for address in (ANY, ANY6):
        with pytest.raises(OSError, match="in use"):
            bound_socket(address, port, [ours], was_ours=True)


def test_ipv6_takes_ipv4_clients_whatever_the_default_is(opened: ExitStack) -> None:
    """As documented for `::`."""
    listening = opened.enter_context(listening_socket(ANY6, 0))

    connect(opened, HERE, port_of(listening))
    connect(opened, "::1", port_of(listening))

    assert listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
    assert count(listening) == 2


def test_retired_socket_refuses_clients(opened: ExitStack) -> None:
    """Where nobody else listens; who waits is served, and once more changes nothing."""
    listening = opened.enter_context(listening_socket(HERE, 0))
    connect(opened, HERE, port_of(listening))

    assert retire(listening)
    assert retire(listening)
    with pytest.raises(ConnectionRefusedError):
        connect(opened, HERE, port_of(listening))

    assert count(listening) == 1


def test_handshake_under_way_ends_where_it_began(opened: ExitStack) -> None:
    """As of a client far away; on loopback only what waits for data is as slow."""
    old = opened.enter_context(listening_socket(HERE, 0))
    old.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, PATIENCE_S)
    client = connect(opened, HERE, port_of(old))
    new = opened.enter_context(bound_socket(ANY, port_of(old), [old]))
    begin_listening(new, [old])
    waiting = count(old)

    retire(old)
    client.sendall(b"late")
    old.settimeout(PATIENCE_S)
    served = opened.enter_context(old.accept()[0])

    assert waiting == count(new) == 0
    assert served.recv(4) == b"late"
