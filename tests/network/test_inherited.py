"""The network of a process that is given its listening sockets."""

import errno
import os
import socket

import pytest
import trio

from vsr.network.epoll import EpollNetwork
from vsr.network.inherited import InheritedNetwork
from vsr.network.listening import listening_socket

HOST = "127.0.0.1"
PATIENCE_S = 10


async def start(nursery: trio.Nursery) -> InheritedNetwork:
    """Start a process's network."""
    network = EpollNetwork()
    await nursery.start(network.run)
    return InheritedNetwork(network)


async def test_shared_socket_is_accepted_from_by_both(nursery: trio.Nursery) -> None:
    """Whoever closes first, its queued clients are the other one's."""
    bound = listening_socket(HOST, 0)
    port = bound.getsockname()[1]
    first, second = await start(nursery), await start(nursery)
    first.give(HOST, port, bound)
    second.give(HOST, port, socket.socket(fileno=os.dup(bound.fileno())))
    leaving, staying = await first.listen(HOST, port), await second.listen(HOST, port)

    with trio.fail_after(PATIENCE_S):
        near = await second.connect(HOST, port)
        leaving.close()
        far = await staying.accept()
        await far.send(b"served")
        got = await near.receive()

    assert got == b"served"
    for connection in (near, far):
        connection.close()
    staying.close()


async def test_clients_of_a_shared_socket_are_accepted_one_at_a_time(nursery: trio.Nursery) -> None:
    """A process that is busy with one leaves the others to its peers."""
    bound = listening_socket(HOST, 0)
    port = bound.getsockname()[1]
    network = await start(nursery)
    network.give(HOST, port, bound)
    listener = await network.listen(HOST, port)

    with trio.fail_after(PATIENCE_S):
        clients = [await network.connect(HOST, port) for _ in range(3)]
        served = await listener.accept()
        bound.settimeout(PATIENCE_S)
        others = [bound.accept()[0] for _ in range(2)]

    assert len(others) == 2
    for connection in (served, *clients):
        connection.close()
    for sock in others:
        sock.close()
    listener.close()


async def test_no_socket_is_bound_that_was_not_given(nursery: trio.Nursery) -> None:
    """Each is given once; one that is given anew takes the place of the one before."""
    network = await start(nursery)
    old, new = listening_socket(HOST, 0), listening_socket(HOST, 0)
    network.give(HOST, 1, old)
    network.give(HOST, 1, new)

    listener = await network.listen(HOST, 1)
    with pytest.raises(OSError, match="no socket") as caught:
        await network.listen(HOST, 1)

    assert caught.value.errno == errno.EADDRNOTAVAIL
    assert old.fileno() == -1
    assert listener.port == new.getsockname()[1]
    listener.close()
