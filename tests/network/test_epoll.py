"""What only the real network can get wrong: descriptors, and a loop that never rests."""

import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from tests.network.ends import (
    LOCALHOST,
    connected,
    count_descriptors,
    eventually,
    held,
    settle,
)
from vsr.network.epoll import EpollNetwork
from vsr.network.port import READ_AHEAD_BYTES, ConnectFailed, ConnectionBroken

_FEW_STEPS = 60
"""What the test's own polling costs; a spinning loop takes thousands."""


@attrs.define(eq=False)
class StepCounter(trio.abc.Instrument):
    """Counts how often any task runs."""

    steps: int = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count one step."""
        del task
        self.steps += 1


@asynccontextmanager
async def running() -> AsyncIterator[EpollNetwork]:
    """Run a network."""
    network = EpollNetwork()
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run)
        yield network
        nursery.cancel_scope.cancel()


async def count_steps() -> int:
    """Return how many task steps a short while takes."""
    counter = StepCounter()
    trio.lowlevel.add_instrument(counter)
    await settle()
    trio.lowlevel.remove_instrument(counter)
    return counter.steps


@pytest.mark.parametrize("how", ["nothing", "shutdown_send", "close", "abort"])
@pytest.mark.parametrize("fill_bytes", [0, 1, READ_AHEAD_BYTES * 2])
@pytest.mark.parametrize("half_closed_here", ["open", "half-closed"])
async def test_loop_rests_whatever_state_a_connection_is_in(
    how: str, fill_bytes: int, half_closed_here: str
) -> None:
    """A level-triggered event that nobody takes away would burn a core."""
    async with running() as network, connected(network) as pair:
        if half_closed_here == "half-closed":
            pair.far.shutdown_send()
        await pair.near.send(bytes(fill_bytes))
        await eventually(lambda: held(pair.far) >= min(fill_bytes, READ_AHEAD_BYTES))
        if how != "nothing":
            getattr(pair.near, how)()
            await eventually(lambda: pair.far.is_gone)
        await settle()

        assert await count_steps() < _FEW_STEPS


async def test_loop_rests_while_a_sender_is_blocked() -> None:
    """Waiting for room is waiting, also once the peer has half-closed."""
    async with running() as network, connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.near.send, bytes(24 * 1024 * 1024))
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()
        assert await count_steps() < _FEW_STEPS

        pair.far.shutdown_send()
        await eventually(lambda: pair.near.is_gone)
        await settle()
        assert await count_steps() < _FEW_STEPS
        nursery.cancel_scope.cancel()


async def test_loop_rests_while_clients_wait_to_be_accepted() -> None:
    """A server that takes no more connections leaves them in the accept queue."""
    async with running() as network:
        listener = await network.listen(LOCALHOST, 0)
        with trio.move_on_after(0.01):
            await listener.accept()
        clients = [await network.connect(LOCALHOST, listener.port) for _ in range(3)]
        await settle()

        assert await count_steps() < _FEW_STEPS

        for client in clients:
            client.close()
        listener.close()


async def test_acceptor_that_is_cancelled_does_not_stop_the_next_one() -> None:
    """As when a listener is handed over while its acceptor is about to ask for the next client."""
    async with running() as network:
        listener = await network.listen(LOCALHOST, 0)
        leaves = trio.CancelScope()

        async def come_late() -> None:
            with leaves:
                await trio.lowlevel.cancel_shielded_checkpoint()
                await trio.lowlevel.cancel_shielded_checkpoint()
                await listener.accept()

        async def serve() -> None:
            (await listener.accept()).close()

        with trio.fail_after(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(come_late)
                nursery.start_soon(serve)
                leaves.cancel()
                await settle()
                client = await network.connect(LOCALHOST, listener.port)

        client.close()
        listener.close()


async def test_finishing_listener_serves_who_has_begun_to_connect() -> None:
    """For as long as said; others are refused from the beginning, and nothing is left of it."""
    async with running() as network:
        listener = await network.listen(LOCALHOST, 0)
        # On loopback only a handshake that waits for data takes its time.
        listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 10)
        client = await network.connect(LOCALHOST, listener.port)
        port = listener.port
        started_at = trio.current_time()

        listener.finish(0.5)
        with pytest.raises(ConnectFailed):
            await network.connect(LOCALHOST, port)
        await client.send(b"late")
        with trio.fail_after(5):
            served = await listener.accept()
            got = await served.receive()
            with pytest.raises(ConnectionBroken):
                await listener.accept()

        assert got == b"late"
        assert trio.current_time() - started_at >= 0.5
        assert listener.is_closed
        for connection in (client, served):
            connection.close()


async def test_listener_comes_back_to_a_port_that_it_still_leaves() -> None:
    """Or that another one of this process has, which is given up for it."""
    async with running() as network:
        left = await network.listen(LOCALHOST, 0)
        port = left.port
        left.finish(10)
        back = await network.bind(LOCALHOST, port)
        back.open()
        wide = await network.bind("0.0.0.0", port, [(LOCALHOST, port)])
        wide.open()
        back.finish()
        client = await network.connect(LOCALHOST, port)
        with trio.fail_after(5):
            served = await wide.accept()

        for each in (client, served, left, wide):
            each.close()


def fill_descriptors() -> list[int]:
    """Open descriptors until every number up to the highest one is taken."""
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    return [os.dup(0) for _ in range(highest)]


async def test_out_of_descriptors_accepts_later() -> None:
    """No spinning on a full accept queue, and no client is lost."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running() as network:
        listener = await network.listen(LOCALHOST, 0)
        with socket.socket() as client:
            client.setblocking(False)  # noqa: FBT003  # the standard library's own signature
            blockers = fill_descriptors()
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(blockers) + 1, hard))
                client.connect_ex((LOCALHOST, listener.port))
                with trio.move_on_after(0.05) as scope:
                    await listener.accept()
                assert scope.cancelled_caught

                with trio.move_on_after(0.05):
                    await listener.accept()
                assert await count_steps() < _FEW_STEPS
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for blocker in blockers:
                    os.close(blocker)

            with trio.fail_after(2):
                served = await listener.accept()
            served.close()
        listener.close()


async def test_nothing_stays_open() -> None:
    """Connections and listeners give their descriptors back."""
    async with running() as network:
        before = count_descriptors()

        async with connected(network) as pair:
            await pair.near.send(b"x")
            pair.near.abort()

        assert network.open_sockets == 0
        assert count_descriptors() == before
