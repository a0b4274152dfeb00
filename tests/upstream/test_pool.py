"""Backend connections: reuse, replacement, limits, what comes back and what does not."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import clusters_of, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.errors import UpstreamConnectFailure
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint
from vsr.upstream.pool import MAX_IDLE_PER_HOST, Pool, PooledConnection

BODY = chat_body(model="auto")
ENDPOINT = Endpoint("e", "b.test", 1)
OTHER = Endpoint("o", "b.test", 2)


class FakeDialer:
    """Hands out connections in memory; keeps the backend's ends."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.far: list[MemoryConnection] = []
        self.delay_s = 0.0
        self.fails = False

    async def dial(self, endpoint: Endpoint) -> Connection:
        """Connect after the delay, or fail."""
        del endpoint
        await trio.sleep(self.delay_s)
        if self.fails:
            raise UpstreamConnectFailure
        near, far = MemoryConnection(self.network), MemoryConnection(self.network)
        near.join(far)
        self.far.append(far)
        return near


async def _acquire(pool: Pool, endpoint: Endpoint = ENDPOINT) -> PooledConnection:
    return pool.take_idle(endpoint) or await pool.dial(endpoint)


async def _acquire_all(pool: Pool, count: int) -> list[PooledConnection]:
    return [await _acquire(pool) for _ in range(count)]


async def test_newest_idle_connection_is_used_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The others may then grow old and go."""
    pool = Pool(FakeDialer())
    first, second, third = await _acquire_all(pool, 3)
    for pooled in (second, first, third):
        pool.release(pooled)

    again = await _acquire_all(pool, 3)

    assert [third, first, second] == again
    assert (pool.in_use, pool.idle) == (3, 0)


async def test_connections_of_other_endpoints_are_not_lent(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Host and port are the key."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    first = await _acquire(pool)
    pool.release(first)

    other = await _acquire(pool, OTHER)

    assert (len(dialer.far), pool.in_use, pool.idle) == (2, 1, 1)
    assert other.siblings is not first.siblings


@pytest.mark.parametrize("how", ["close", "shutdown_send", "abort", "send"])
async def test_stale_connection_is_replaced(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Closed, half-closed, reset, or with unasked bytes on it: none is used again."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    pool.release(await _acquire(pool))

    if how == "send":
        await dialer.far[0].send(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    else:
        getattr(dialer.far[0], how)()
    pooled = await _acquire(pool)

    assert len(dialer.far) == 2
    assert (pool.in_use, pool.idle) == (1, 0)
    assert pooled.connection.is_idle()
    pool.drop(pooled)
    dialer.far[1].close()
    dialer.far[0].close()
    assert dialer.network.open_connections == 0


async def test_idle_connection_that_its_backend_closes_is_forgotten_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No sweep, no wait for the next use."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    for pooled in await _acquire_all(pool, 3):
        pool.release(pooled)

    dialer.far[1].close()

    assert pool.idle == 2
    assert dialer.network.open_connections == 4


async def test_idle_connections_are_bounded(autojump_clock: trio.testing.MockClock) -> None:
    """Beyond the limit a connection that comes back is closed."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    used = await _acquire_all(pool, MAX_IDLE_PER_HOST + 3)

    for pooled in used:
        pool.release(pooled)

    assert (pool.in_use, pool.idle) == (0, MAX_IDLE_PER_HOST)
    assert [far.is_gone for far in dialer.far].count(True) == 3


async def test_closed_pool_closes_what_comes_back(autojump_clock: trio.testing.MockClock) -> None:
    """Idle ones at once; those in use when they are released."""
    dialer = FakeDialer()
    pool = Pool(dialer)
    used, idle = await _acquire_all(pool, 2)
    pool.release(idle)

    pool.close()
    was_used_closed = dialer.far[0].is_gone
    pool.release(used)

    assert not was_used_closed
    assert (pool.in_use, pool.idle) == (0, 0)
    assert all(far.is_gone for far in dialer.far)


@pytest.mark.parametrize("fails", [False, True])
async def test_failed_or_cancelled_dial_takes_no_slot(
    fails: bool,  # noqa: FBT001  # a parameter of the table
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report L1: nothing leaks, however often connecting is given up."""
    dialer = FakeDialer()
    dialer.delay_s, dialer.fails = 10, fails
    pool = Pool(dialer)

    for _ in range(100):
        if fails:
            with pytest.raises(UpstreamConnectFailure):
                await _acquire(pool)
        else:
            with trio.move_on_after(1):
                await _acquire(pool)

    assert (pool.in_use, pool.idle, dialer.network.open_connections) == (0, 0, 0)


async def test_requests_in_turn_share_one_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Buffered, streamed, errors, HEAD: all give it back."""
    network = MemoryNetwork()
    faults = (None, 400, None, Fault.INFORMATIONAL, Fault.STATUS, None)
    backend = await start_backend(nursery, network, Script(faults=faults))
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    for stream in (False, True) * 3:
        await router.ask(chat_body(model="auto", stream=stream))
    await router.ask(target=b"/x", method=b"HEAD")
    await router.ask(target=b"/x", method=b"GET")

    assert backend.accepted_connections == 1
    assert clusters_of(router.generation).idle_connections == 1


@pytest.mark.parametrize(
    ("fault", "connections"),
    [
        (Fault.CONNECTION_CLOSE, 3),
        (Fault.UNTIL_CLOSE, 3),
        (Fault.STALE_KEEP_ALIVE, 3),
        (Fault.LENGTH_TOO_SHORT, 3),
    ],
)
async def test_connection_that_can_carry_no_more_is_not_kept(
    fault: Fault,
    connections: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field reports L3 and X5: said so, closed, or spoiled; the next request never meets it."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(fault=fault))
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    statuses = [(await router.ask(BODY)).status for _ in range(3)]
    await trio.testing.wait_all_tasks_blocked()

    assert statuses == [200] * 3
    assert backend.accepted_connections == connections
    assert clusters_of(router.generation).idle_connections == 0
    assert backend.open_connections == 0


async def test_models_of_one_security_domain_share_connections(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And those of another do not."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(
        model_of(backend.port, "alpha"),
        model_of(backend.port, "beta"),
        model_of(backend.port, "gamma", reliability="{connect_timeout: 1s}"),
    )
    router = await start_router(nursery, network, document)

    for name in ("alpha", "beta", "gamma", "beta", "gamma"):
        await router.ask(chat_body(model=name))

    assert len(backend.accepted) == 2
