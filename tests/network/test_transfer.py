"""What every network owes those who send and receive: all bytes, bounds, time limits."""

import os

import pytest
import trio

from tests.network.ends import (
    MORE_THAN_BUFFERS_BYTES,
    PATIENCE_S,
    AnyNetwork,
    connected,
    eventually,
    held,
    read,
    settle,
)
from vsr.network.epoll_connection import EpollConnection
from vsr.network.memory import MemoryConnection
from vsr.network.port import (
    READ_AHEAD_BYTES,
    READ_SIZE_BYTES,
    Connection,
    ReceiveTimedOut,
)


async def test_bytes_arrive_both_ways(network: AnyNetwork) -> None:
    """In order, and a reader that waits is woken."""
    async with connected(network) as pair:
        await pair.near.send(b"ping")
        assert await read(pair.far, 4) == b"ping"

        await pair.far.send(memoryview(b"pong"))
        await pair.far.send(b"!")
        assert await read(pair.near, 5) == b"pong!"


async def test_large_transfers_cross_each_other(network: AnyNetwork) -> None:
    """Both directions at once, each with more than the buffers hold."""
    there, back = os.urandom(4096) * 512, os.urandom(4096) * 512
    got: dict[str, bytes] = {}

    async def receive_all(name: str, connection: Connection) -> None:
        got[name] = await read(connection, len(there))

    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.near.send, there)
        nursery.start_soon(pair.far.send, back)
        nursery.start_soon(receive_all, "far", pair.far)
        nursery.start_soon(receive_all, "near", pair.near)

    assert got == {"far": there, "near": back}


@pytest.mark.parametrize("piece_bytes", [16_384, 65_536, MORE_THAN_BUFFERS_BYTES])
async def test_read_ahead_is_bounded(network: AnyNetwork, piece_bytes: int) -> None:
    """Nobody reads: the sender comes to a halt and hardly anything is held."""
    piece = bytes(piece_bytes)
    sent = 0

    async def send_for_ever(connection: Connection) -> None:
        nonlocal sent
        while True:
            await connection.send(piece)
            sent += len(piece)

    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(send_for_ever, pair.near)
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()
        before = sent
        await settle()

        assert sent == before
        assert sent < MORE_THAN_BUFFERS_BYTES
        assert held(pair.far) < READ_AHEAD_BYTES + READ_SIZE_BYTES
        nursery.cancel_scope.cancel()


async def test_one_read_is_bounded(network: AnyNetwork) -> None:
    """However much was sent at once, a read takes `READ_SIZE_BYTES` at most; nothing is lost."""
    data = os.urandom(READ_SIZE_BYTES * 3)
    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.near.send, data)
        got = b""
        sizes: list[int] = []
        with trio.fail_after(PATIENCE_S):
            while len(got) < len(data):
                piece = await pair.far.receive()
                sizes.append(len(piece))
                got += piece

    assert got == data
    assert max(sizes) <= READ_SIZE_BYTES


async def test_sender_goes_on_when_the_reader_does(network: AnyNetwork) -> None:
    """Pausing and resuming lose nothing."""
    data = os.urandom(1024) * 4096
    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.near.send, data)
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()

        assert await read(pair.far, len(data)) == data


async def test_receive_gives_up_in_time_and_the_connection_lives(network: AnyNetwork) -> None:
    """The limit is absolute, and only that one wait fails."""
    async with connected(network) as pair:
        until = trio.current_time() + 0.02
        with pytest.raises(ReceiveTimedOut):
            await pair.far.receive(until=until)
        assert until <= trio.current_time() < until + 1
        assert not pair.far.is_gone

        await pair.near.send(b"late")
        assert await pair.far.receive(until=trio.current_time() + PATIENCE_S) == b"late"
        await pair.far.send(b"fine")
        assert await read(pair.near, 4) == b"fine"


async def test_receive_limit_in_the_past_gives_up_at_once(network: AnyNetwork) -> None:
    """It does not wait for ever."""
    async with connected(network) as pair:
        with trio.fail_after(1), pytest.raises(ReceiveTimedOut):
            await pair.far.receive(until=trio.current_time() - 1)


async def test_waiting_bytes_beat_the_limit(network: AnyNetwork) -> None:
    """What has arrived is given out, however late it is asked for."""
    async with connected(network) as pair:
        await pair.near.send(b"here")
        await eventually(lambda: held(pair.far) == 4)

        assert await pair.far.receive(until=trio.current_time() - 1) == b"here"


async def test_limit_of_an_earlier_read_does_not_end_a_later_one(network: AnyNetwork) -> None:
    """Each wait has its own limit, none included."""
    async with connected(network) as pair:
        await pair.near.send(b"a")
        assert await pair.far.receive(until=trio.current_time() + 0.02) == b"a"

        with trio.move_on_after(0.05) as scope:
            await pair.far.receive()

        assert scope.cancelled_caught


async def test_shorter_limit_behind_a_longer_one_holds(network: AnyNetwork) -> None:
    """The timer moves both ways."""
    async with connected(network) as pair:
        await pair.near.send(b"a")
        await pair.far.receive(until=trio.current_time() + 3600)
        await pair.near.send(b"b")
        await pair.far.receive(until=trio.current_time() + 3600)

        with trio.fail_after(1), pytest.raises(ReceiveTimedOut):
            await pair.far.receive(until=trio.current_time() + 0.01)


async def test_cancelled_receive_loses_nothing(network: AnyNetwork) -> None:
    """No reader stays behind that would swallow the next bytes."""
    async with connected(network) as pair:
        with trio.move_on_after(0.01) as scope:
            await pair.far.receive(until=trio.current_time() + 3600)
        assert scope.cancelled_caught

        await pair.near.send(b"next")
        await eventually(lambda: held(pair.far) == 4)
        assert await pair.far.receive() == b"next"


async def test_receive_in_a_cancelled_scope_keeps_the_bytes(network: AnyNetwork) -> None:
    """Cancelled or not, bytes are never taken and dropped."""
    async with connected(network) as pair:
        await pair.near.send(b"next")
        await eventually(lambda: held(pair.far) == 4)
        with trio.CancelScope() as scope:
            scope.cancel()
            await pair.far.receive()

        assert scope.cancelled_caught
        assert await pair.far.receive() == b"next"


async def test_cancelled_send_leaves_no_writer(network: AnyNetwork) -> None:
    """The connection can be closed, and reading never notices."""
    async with connected(network) as pair:
        with trio.move_on_after(0.02) as scope:
            await pair.near.send(bytes(MORE_THAN_BUFFERS_BYTES))
        assert scope.cancelled_caught

        assert isinstance(pair.near, MemoryConnection | EpollConnection)
        assert pair.near._writer is None
        await pair.far.send(b"still")
        assert await read(pair.near, 5) == b"still"
