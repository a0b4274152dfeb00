"""What every network owes those who connect, listen and accept."""

import errno
import gc
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import trio

from tests.network.ends import (
    LOCALHOST,
    PATIENCE_S,
    AnyNetwork,
    connected,
    count_descriptors,
    count_open,
    eventually,
    expect_broken_accept,
    read,
    read_all,
    settle,
)
from vsr.network.memory import Fault, MemoryNetwork
from vsr.network.port import (
    ConnectFailed,
    Connection,
    ConnectionBroken,
    HostNotFound,
)


async def test_cancelled_accept_leaves_the_listener_intact(network: AnyNetwork) -> None:
    """The next accept gets the next client, and every client is accepted once."""
    listener = await network.listen(LOCALHOST, 0)
    before = count_open(network)
    with trio.move_on_after(0.01) as scope:
        await listener.accept()
    assert scope.cancelled_caught
    assert count_open(network) == before

    near = await network.connect(LOCALHOST, listener.port)
    with trio.fail_after(PATIENCE_S):
        far = await listener.accept()
    await near.send(b"hi")
    assert await read(far, 2) == b"hi"

    for end in (near, far, listener):
        end.close()


async def test_cancelled_connect_leaves_nothing(network: AnyNetwork) -> None:
    """Whoever gives up on a silent host holds no socket and no registration."""
    before = count_open(network)
    with silent_host(network) as (host, port), without_new_descriptors():
        with trio.move_on_after(0.05) as scope:
            await network.connect(host, port)

        assert scope.cancelled_caught
        assert count_open(network) == before


async def test_refused_connection_tells_the_number(network: AnyNetwork) -> None:
    """The local reply shows it."""
    listener = await network.listen(LOCALHOST, 0)
    port = listener.port
    listener.close()

    with without_new_descriptors(), pytest.raises(ConnectFailed) as caught:
        await network.connect(LOCALHOST, port)

    assert caught.value.errno == errno.ECONNREFUSED == 111
    assert str(caught.value) == "delayed connect error: 111"


async def test_unknown_host_is_told_from_a_refusal(network: AnyNetwork) -> None:
    """No address: another local reply."""
    if isinstance(network, MemoryNetwork):
        network.faults["unknown.invalid"] = Fault.UNKNOWN_HOST
    with trio.move_on_after(PATIENCE_S) as scope, pytest.raises(HostNotFound):
        await network.connect("unknown.invalid", 80)
    if scope.cancelled_caught:
        pytest.skip("the resolver of this machine does not answer fast")


@pytest.mark.parametrize("host", ["x" * 64 + ".invalid", "a..invalid", "white space.invalid"])
async def test_impossible_host_name_is_an_unknown_host(network: AnyNetwork, host: str) -> None:
    """What DNS cannot even be asked for has no address either."""
    if isinstance(network, MemoryNetwork):
        network.faults[host] = Fault.UNKNOWN_HOST

    with trio.fail_after(PATIENCE_S), pytest.raises(HostNotFound):
        await network.connect(host, 80)


async def test_many_connections_live_at_once(network: AnyNetwork) -> None:
    """200 echo at the same time, each with its own bytes."""
    listener = await network.listen(LOCALHOST, 0)
    answers: dict[int, bytes] = {}

    async def echo(connection: Connection) -> None:
        await connection.send(await read(connection, 100))
        await read_all(connection)
        connection.close()

    async def serve(nursery: trio.Nursery) -> None:
        for _ in range(200):
            nursery.start_soon(echo, await listener.accept())

    async def ask(index: int) -> None:
        connection = await network.connect(LOCALHOST, listener.port)
        await connection.send(b"%100d" % index)
        answers[index] = await read(connection, 100)
        connection.close()

    with trio.fail_after(4 * PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve, nursery)
            for index in range(200):
                nursery.start_soon(ask, index)
    listener.close()

    assert answers == {index: b"%100d" % index for index in range(200)}
    await eventually(lambda: count_open(network) == 0)


async def test_clients_wait_until_they_are_accepted(network: AnyNetwork) -> None:
    """More than one batch; what they sent meanwhile is there."""
    listener = await network.listen(LOCALHOST, 0)
    clients = [await network.connect(LOCALHOST, listener.port) for _ in range(100)]
    for index, client in enumerate(clients):
        await client.send(b"%03d" % index)

    got = []
    with trio.fail_after(PATIENCE_S):
        for _ in clients:
            served = await listener.accept()
            got.append(await read(served, 3))
            served.close()

    assert sorted(got) == [b"%03d" % index for index in range(100)]
    for client in clients:
        client.close()
    listener.close()


async def test_closed_listener_refuses_later_clients(network: AnyNetwork) -> None:
    """And tells the task that accepts; connections it handed out live on."""
    async with connected(network) as pair:
        port = pair.listener.port
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expect_broken_accept, pair.listener)
            await settle()
            pair.listener.close()
        pair.listener.close()

        with pytest.raises(ConnectFailed):
            await network.connect(LOCALHOST, port)
        await expect_broken_accept(pair.listener)
        await pair.near.send(b"on")
        assert await read(pair.far, 2) == b"on"


async def test_closed_listener_drops_clients_it_has_not_handed_out(network: AnyNetwork) -> None:
    """They learn it at once instead of waiting for an answer."""
    listener = await network.listen(LOCALHOST, 0)
    clients = [await network.connect(LOCALHOST, listener.port) for _ in range(3)]

    listener.close()

    for client in clients:
        with suppress(ConnectionBroken):
            assert await read_all(client) == b""
        client.close()
    await eventually(lambda: count_open(network) == 0)


async def test_taken_port_cannot_be_bound_again(network: AnyNetwork) -> None:
    """The error is the operating system's."""
    listener = await network.listen(LOCALHOST, 0)

    with without_new_descriptors(), pytest.raises(OSError, match=r"in use") as caught:
        await network.listen(LOCALHOST, listener.port)

    assert caught.value.errno == errno.EADDRINUSE
    listener.close()


async def test_finished_listener_hands_out_who_waits(network: AnyNetwork) -> None:
    """Clients whose connection stands are served, though nobody can connect any more."""
    listener = await network.listen(LOCALHOST, 0)
    port = listener.port
    clients = [await network.connect(LOCALHOST, port) for _ in range(3)]

    listener.finish()
    listener.finish()

    for client in clients:
        served = await listener.accept()
        await served.send(b"served")
        assert await client.receive() == b"served"
        served.close()
        client.close()
    await expect_broken_accept(listener)
    with pytest.raises(ConnectFailed):
        await network.connect(LOCALHOST, port)


async def test_accepted_connection_knows_its_peer(network: AnyNetwork) -> None:
    """The access log names it."""
    async with connected(network) as pair:
        assert pair.far.peer == LOCALHOST


@contextmanager
def silent_host(network: AnyNetwork) -> Iterator[tuple[str, int]]:
    """Yield an address that never answers a connection attempt."""
    if isinstance(network, MemoryNetwork):
        network.faults["silent.example"] = Fault.SILENT
        yield "silent.example", 80
        return
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((LOCALHOST, 0), backlog=0))
        # A full accept queue drops what comes next.
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)  # noqa: FBT003  # the standard library's own signature
            client.connect_ex(listener.getsockname())
        yield listener.getsockname()


@contextmanager
def without_new_descriptors() -> Iterator[None]:
    """Check that the block leaves no file descriptor open."""
    gc.collect()
    before = count_descriptors()
    yield
    assert count_descriptors() == before
