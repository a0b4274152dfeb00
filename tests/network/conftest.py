"""One contract, two networks: in memory under virtual time, and real sockets."""

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from tests.network.ends import AnyNetwork
from vsr.network.epoll import EpollNetwork
from vsr.network.memory import MemoryNetwork


@pytest.fixture(params=["memory", "epoll"])
def kind(request: pytest.FixtureRequest) -> str:
    """Name the network under test."""
    return str(request.param)


@pytest.fixture
def clock(kind: str) -> trio.testing.MockClock | None:
    """Return the clock: sockets need the real one."""
    return trio.testing.MockClock(autojump_threshold=0) if kind == "memory" else None


@pytest.fixture
async def network(
    kind: str, clock: trio.testing.MockClock | None, nursery: trio.Nursery
) -> AsyncIterator[AnyNetwork]:
    """Run the network under test."""
    del clock
    running: AnyNetwork = MemoryNetwork() if kind == "memory" else EpollNetwork()
    await nursery.start(running.run)
    yield running
    nursery.cancel_scope.cancel()
