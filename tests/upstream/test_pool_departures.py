"""Backends that leave at any time: a pool holds exactly what can be used again."""

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network.ends import AnyNetwork, eventually
from vsr.network.epoll import EpollNetwork
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint
from vsr.upstream.pool import Pool, PooledConnection

ENDPOINTS = [Endpoint("a", "a.test", 1), Endpoint("b", "b.test", 2)]
LOCAL = "127.0.0.1"


class FakeDialer:
    """Hands out connections in memory; keeps the backends' ends."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.far: list[MemoryConnection] = []

    async def dial(self, endpoint: Endpoint) -> Connection:
        """Connect."""
        del endpoint
        await trio.lowlevel.checkpoint()
        near, far = MemoryConnection(self.network), MemoryConnection(self.network)
        near.join(far)
        self.far.append(far)
        return near


@attrs.define(eq=False)
class Lent:
    """A connection as a test knows it."""

    pooled: PooledConnection
    far: MemoryConnection
    endpoint: Endpoint
    is_idle: bool = False
    has_left: bool = False
    """Whether the backend has closed, or has sent what nobody asked for."""


@attrs.define(eq=False)
class PoolModel:
    """A pool beside the plainest account of what it must hold."""

    pool: Pool
    dialer: FakeDialer
    known: list[Lent] = attrs.field(factory=list)
    is_closed: bool = False

    async def acquire(self, which: int) -> None:
        """Take a connection: the one released last that is sound, or a new one."""
        endpoint = ENDPOINTS[which % 2]
        pooled = self.pool.take_idle(endpoint)
        sound = [lent for lent in self.known if lent.is_idle and lent.endpoint is endpoint]
        if pooled is None:
            assert all(lent.has_left for lent in sound), "a sound one was there"
            for lent in sound:
                lent.is_idle = False
            pooled = await self.pool.dial(endpoint)
            self.known.append(Lent(pooled, self.dialer.far[-1], endpoint))
        else:
            [lent] = [lent for lent in sound if lent.pooled is pooled]
            assert not lent.has_left, "a connection was lent whose backend had left"
            lent.is_idle = False

    def give_back(self, which: int, *, drops: bool) -> None:
        """Release or drop a connection in use."""
        in_use = [lent for lent in self.known if self._is_in_use(lent)]
        if not in_use:
            return
        lent = in_use[which % len(in_use)]
        if drops:
            self.pool.drop(lent.pooled)
            self.known.remove(lent)
            return
        self.pool.release(lent.pooled)
        if self.is_closed or lent.pooled.connection.is_gone:
            self.known.remove(lent)
        else:
            self._released(lent)

    def leave(self, which: int, how: str) -> None:
        """Let a backend close one of its connections."""
        if not self.known:
            return
        lent = self.known[which % len(self.known)]
        if how == "shutdown_send":
            lent.far.shutdown_send()
        else:
            lent.far.close()
        lent.has_left = True
        if lent.is_idle:
            self.known.remove(lent)

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()
        self.is_closed = True
        self.known = [lent for lent in self.known if not lent.is_idle]

    def check(self) -> None:
        """Compare."""
        idle = [lent for lent in self.known if lent.is_idle]
        in_use = [lent for lent in self.known if self._is_in_use(lent)]
        assert (self.pool.idle, self.pool.in_use) == (len(idle), len(in_use))
        assert all(not lent.pooled.connection.is_closed for lent in self.known)  # type: ignore[attr-defined]  # in memory

    def _is_in_use(self, lent: Lent) -> bool:
        return not lent.is_idle

    def _released(self, lent: Lent) -> None:
        lent.is_idle = True
        self.known.remove(lent)
        self.known.append(lent)


async def _play(steps: list[tuple[str, int]]) -> None:
    dialer = FakeDialer()
    model = PoolModel(Pool(dialer), dialer)
    for step, which in steps:
        if step == "acquire":
            await model.acquire(which)
        elif step in {"release", "drop"}:
            model.give_back(which, drops=step == "drop")
        elif step == "close pool":
            model.close()
        else:
            model.leave(which, step)
        model.check()
    while any(not lent.is_idle for lent in model.known):
        model.give_back(0, drops=False)
    model.check()
    model.close()
    model.check()
    for far in dialer.far:
        far.close()
    assert dialer.network.open_connections == 0


_steps = st.sampled_from(
    ["acquire"] * 6 + ["release"] * 4 + ["drop", "close", "close", "shutdown_send", "close pool"]
)


@given(
    steps=st.lists(st.tuples(_steps, st.sampled_from([0, 0, 0, 1, 2, 3])), min_size=5, max_size=40)
)
@settings(deadline=None, max_examples=300)
def test_pool_holds_what_can_be_used_again(steps: list[tuple[str, int]]) -> None:
    """Whoever leaves while idle is forgotten at once; whoever leaves in use when it comes back."""
    trio.run(_play, steps, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("uses", [1, 2, 5])
async def test_connection_in_use_is_not_closed_when_its_backend_leaves(
    uses: int, autojump_clock: trio.testing.MockClock
) -> None:
    """What the backend sent before it left is still to be read; then it is not kept."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    pooled = await pool.dial(ENDPOINTS[0])
    for _ in range(uses - 1):
        pool.release(pooled)
        assert pool.take_idle(ENDPOINTS[0]) is pooled

    await dialer.far[0].send(b"the rest")
    dialer.far[0].close()
    data = await pooled.connection.receive()
    pool.release(pooled)

    assert data == b"the rest"
    assert (pool.in_use, pool.idle) == (0, 0)
    assert pool.take_idle(ENDPOINTS[0]) is None


async def test_connection_is_watched_again_each_time_it_waits(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Used many times, then left while idle; and its neighbours stay."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    neighbour, pooled = await pool.dial(ENDPOINTS[0]), await pool.dial(ENDPOINTS[0])
    pool.release(neighbour)
    for _ in range(5):
        pool.release(pooled)
        assert pool.take_idle(ENDPOINTS[0]) is pooled
    pool.release(pooled)

    dialer.far[1].close()

    assert pool.idle == 1
    assert pool.take_idle(ENDPOINTS[0]) is neighbour


@attrs.define(eq=False)
class NetworkDialer:
    """Dials one port of a network."""

    network: AnyNetwork
    port: int

    async def dial(self, endpoint: Endpoint) -> Connection:
        """Connect."""
        del endpoint
        return await self.network.connect(LOCAL, self.port)


@pytest.mark.parametrize("network_type", [MemoryNetwork, EpollNetwork])
@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
async def test_idle_connection_is_forgotten_on_every_network(
    network_type: type[AnyNetwork], how: str, nursery: trio.Nursery
) -> None:
    """Closed, reset or half-closed by its backend, without being asked for."""
    network = network_type()
    await nursery.start(network.run)
    listener = await network.listen(LOCAL, 0)
    pool = Pool(NetworkDialer(network, listener.port))
    idle, used = await pool.dial(ENDPOINTS[0]), await pool.dial(ENDPOINTS[0])
    fars = [await listener.accept(), await listener.accept()]
    pool.release(idle)
    assert pool.idle == 1

    for far in fars:
        getattr(far, how)()
    await eventually(lambda: pool.idle == 0)
    await eventually(lambda: used.connection.is_gone)

    assert pool.in_use == 1
    pool.release(used)
    assert (pool.in_use, pool.idle) == (0, 0)
    for far in fars:
        far.close()
    listener.close()
    nursery.cancel_scope.cancel()
