"""Backends that choose their version: what shares a connection and what does not."""

from collections.abc import Callable

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.h2_backend import OK, H2Backend, start_h2_backend
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint, HttpVersion
from vsr.upstream.background import Background
from vsr.upstream.h2_pool import H2Pool, _Host
from vsr.upstream.pool import PooledConnection

ENDPOINT = Endpoint("e", "b.test", 443, tls=True)


@attrs.define(eq=False)
class Chooser:
    """A dialler whose backend chooses HTTP/2 as long as `speaks_h2`."""

    network: MemoryNetwork
    http2: H2Backend
    http1: RawBackend
    speaks_h2: bool = False
    takes_s: float = 1.0
    dials: int = 0
    agreed: set[Connection] = attrs.field(factory=set)

    async def dial(self, endpoint: Endpoint) -> MemoryConnection:
        """Connect to the one or the other."""
        self.dials += 1
        await trio.sleep(self.takes_s)
        speaks_h2 = self.speaks_h2
        port = self.http2.port if speaks_h2 else self.http1.port
        connection = await self.network.connect(endpoint.host, port)
        if speaks_h2:
            self.agreed.add(connection)
        return connection


@attrs.define(eq=False)
class Scene:
    """A pool over it."""

    chooser: Chooser
    pool: H2Pool

    async def get(self, got: list[PooledConnection]) -> None:
        """Do as an attempt does."""
        got.append(self.pool.take_idle(ENDPOINT) or await self.pool.dial(ENDPOINT))


@pytest.fixture
async def scene(
    monkeypatch: pytest.MonkeyPatch,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> Scene:
    """Return a pool for `auto`; what was agreed upon is told by the dialler."""
    network, background = MemoryNetwork(), Background()
    await nursery.start(network.run)
    await nursery.start(background.run)
    http2 = await start_h2_backend(nursery, network, OK)
    http1 = await RawBackend(network, reply(200, b"{}")).start(nursery)
    chooser = Chooser(network, http2, http1)
    speaks: Callable[[Connection], bool] = chooser.agreed.__contains__
    monkeypatch.setattr("vsr.upstream.h2_pool._speaks_h2", speaks)
    return Scene(chooser, H2Pool(chooser, HttpVersion.AUTO, 10.0, background))


async def get_many(scene: Scene, count: int) -> list[PooledConnection]:
    """Get so many at a time."""
    got: list[PooledConnection] = []
    async with trio.open_nursery() as calls:
        for _ in range(count):
            calls.start_soon(scene.get, got)
    return got


async def test_http_1_is_dialled_once_per_call(
    scene: Scene, autojump_clock: trio.testing.MockClock
) -> None:
    """The first dial tells; its connection is used, and everybody else dials at the same time."""
    got = await get_many(scene, 5)
    later = await get_many(scene, 5)

    assert all(each.stream is None for each in [*got, *later])
    assert len({each.connection for each in [*got, *later]}) == 10
    assert scene.chooser.dials == 10
    assert trio.current_time() == pytest.approx(3)
    assert (scene.pool.in_use, scene.pool.idle) == (10, 0)
    for each in got:
        scene.pool.drop(each)
    assert scene.pool.in_use == 5


async def test_backend_may_change_to_http_2(
    scene: Scene, autojump_clock: trio.testing.MockClock
) -> None:
    """The dial that finds it out is thrown away; nothing of it stays."""
    await get_many(scene, 1)
    scene.chooser.speaks_h2 = True

    got = await get_many(scene, 3)

    assert all(each.stream is not None for each in got)
    assert scene.chooser.http2.open_sessions == 1
    for each in got:
        scene.pool.drop(each)
    assert (scene.pool.in_use, scene.pool.idle) == (1, 1)


async def test_backend_may_change_to_http_1(
    scene: Scene, autojump_clock: trio.testing.MockClock
) -> None:
    """When its HTTP/2 connection is gone."""
    scene.chooser.speaks_h2 = True
    [first] = await get_many(scene, 1)
    scene.pool.drop(first)
    scene.chooser.speaks_h2 = False
    scene.chooser.http2.sessions[0].close()
    await trio.testing.wait_all_tasks_blocked()

    [second] = await get_many(scene, 1)

    assert (first.stream is None, second.stream is None) == (False, True)


async def test_connection_that_comes_as_its_call_ends_is_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The dial was the call's alone, and nobody else wants it."""
    hand_over = H2Pool._found_http_1
    got: list[PooledConnection] = []

    with trio.CancelScope() as scope:

        def found(pool: H2Pool, host: _Host, connection: Connection) -> None:
            hand_over(pool, host, connection)
            scope.cancel()

        monkeypatch.setattr(H2Pool, "_found_http_1", found)
        await scene.get(got)
    await trio.testing.wait_all_tasks_blocked()

    assert (got, scene.pool.in_use, len(scene.chooser.http1.accepted)) == ([], 0, 1)
    assert scene.chooser.http1.open_connections == 0
