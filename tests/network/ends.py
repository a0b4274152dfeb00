"""Both ends of a connection on the network under test, and what tests do with them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio

from vsr.network.epoll import EpollNetwork
from vsr.network.epoll_connection import EpollConnection
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import READ_AHEAD_BYTES, Connection, ConnectionBroken, Listener

LOCALHOST = "127.0.0.1"


PATIENCE_S = 5.0
"""Nothing here takes long; whoever waits longer hangs."""


MORE_THAN_BUFFERS_BYTES = 24 * 1024 * 1024
"""More than the kernel keeps between two sockets."""


AnyNetwork = MemoryNetwork | EpollNetwork
"""The networks under test."""


@attrs.define
class Pair:
    """Both ends of a connection."""

    near: Connection
    """The end that connected."""
    far: Connection
    """The end that was accepted."""
    listener: Listener


@asynccontextmanager
async def connected(network: AnyNetwork) -> AsyncIterator[Pair]:
    """Open a connection; everything is closed at the end."""
    listener = await network.listen(LOCALHOST, 0)
    with trio.fail_after(PATIENCE_S):
        near = await network.connect(LOCALHOST, listener.port)
        far = await listener.accept()
    try:
        with trio.fail_after(4 * PATIENCE_S):
            await trio.lowlevel.checkpoint()
            yield Pair(near, far, listener)
    finally:
        near.close()
        far.close()
        listener.close()
    await eventually(lambda: count_open(network) == 0)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds; the kernel may need a moment."""
    with trio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # the kernel sets no event
            await trio.sleep(0.001)


async def settle() -> None:
    """Let everything that can happen now happen."""
    for _ in range(20):
        await trio.sleep(0.001)


def count_open(network: AnyNetwork) -> int:
    """Return how many connections or sockets the network knows of."""
    if isinstance(network, MemoryNetwork):
        return network.open_connections
    return network.open_sockets


def descriptor_of(connection: Connection) -> int | None:
    """Return the number of the connection's socket, None in memory."""
    return connection._fd if isinstance(connection, EpollConnection) else None


def held(connection: Connection) -> int:
    """Return the bytes that wait unread on our side of the kernel."""
    assert isinstance(connection, MemoryConnection | EpollConnection)
    return connection._inbox.held_bytes


async def read(connection: Connection, size: int) -> bytes:
    """Read exactly `size` bytes."""
    data = bytearray()
    with trio.fail_after(PATIENCE_S):
        while len(data) < size:
            piece = await connection.receive()
            assert piece, "the stream ended early"
            data += piece
    assert len(data) == size
    return bytes(data)


async def read_all(connection: Connection) -> bytes:
    """Read until the end of the stream."""
    data = bytearray()
    with trio.fail_after(PATIENCE_S):
        while piece := await connection.receive():
            data += piece
    return bytes(data)


def watch(connection: Connection) -> list[str]:
    """Return a list that gets one entry per call of `on_gone`."""
    calls: list[str] = []
    connection.on_gone = lambda: calls.append("gone")
    return calls


async def send_ignoring_breakage(connection: Connection, data: bytes) -> None:
    """Send, whatever comes of it."""
    with suppress(ConnectionBroken):
        await connection.send(data)


async def expect_broken_receive(connection: Connection) -> None:
    """Read until the connection proves broken; an end of stream is none."""
    with trio.fail_after(PATIENCE_S), pytest.raises(ConnectionBroken):
        await connection.receive()


async def expect_broken_send(connection: Connection) -> None:
    """Send more than the buffers hold and see it break."""
    with trio.fail_after(PATIENCE_S), pytest.raises(ConnectionBroken):
        await send_repeatedly(connection)


async def send_repeatedly(connection: Connection) -> None:
    """Send more than the buffers hold, piece by piece."""
    for _ in range(MORE_THAN_BUFFERS_BYTES // READ_AHEAD_BYTES):
        await connection.send(bytes(READ_AHEAD_BYTES))


async def expect_broken_accept(listener: Listener) -> None:
    """Wait for a client until the listener is closed."""
    with trio.fail_after(PATIENCE_S), pytest.raises(ConnectionBroken):
        await listener.accept()


def count_descriptors() -> int:
    """Return how many file descriptors this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
