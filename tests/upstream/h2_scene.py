"""A Router whose one model has HTTP/2 backends, seen from all sides."""

from collections.abc import Sequence
from contextlib import suppress

import attrs
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.fakes.h2_backend import H2Backend, Play, Session, model_over_h2, start_h2_backend
from tests.fakes.router import RunningRouter, clusters_of, document_of, start_router
from vsr.deadline import Deadline
from vsr.errors import UpstreamFailure
from vsr.headers import Headers
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken
from vsr.routing.outcome import Attempt
from vsr.routing.plan import Call
from vsr.routing.ports import Journal
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.h2_pool import H2Pool
from vsr.upstream.response import Response

BODY, STREAM = chat_body(model="auto"), chat_body(model="auto", stream=True)
NOTHING = {"lent": 0, "waiters": 0, "dials": 0, "active": 0, "hosts": 0, "leases": 0}


@attrs.define(eq=False)
class Scene:
    """A Router and its backends."""

    router: RunningRouter
    backends: list[H2Backend]

    @property
    def network(self) -> MemoryNetwork:
        """Return the network of all."""
        return self.router.network

    @property
    def backend(self) -> H2Backend:
        """Return the first backend."""
        return self.backends[0]

    @property
    def session(self) -> Session:
        """Return its newest connection."""
        return self.backend.sessions[-1]

    @property
    def cluster(self) -> RuntimeCluster:
        """Return the one cluster."""
        return next(iter(clusters_of(self.router.generation)))

    @property
    def pool(self) -> H2Pool:
        """Return its pool."""
        pool = self.cluster.state.hosts[0].pool
        assert isinstance(pool, H2Pool)
        return pool

    async def ask(self, body: bytes = BODY) -> Got:
        """Send one request and read its answer to the end."""
        return await self.router.ask(body)

    async def begin(self, body: bytes = BODY) -> MemoryConnection:
        """Send one request; return the client's connection, on which it may leave."""
        client = await self.router.connect()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n"
        await client.send(head % len(body) + body)
        await trio.testing.wait_all_tasks_blocked()
        return client

    async def send(
        self, journal: Journal, body: bytes = b"{}", *, idle_s: float | None = None
    ) -> Response:
        """Make one call of the cluster, without a gateway around it."""
        call = Call(b"POST", b"/v1/chat/completions", Headers(), body, b"alpha")
        return await self.cluster.send(
            call, now=trio.current_time(), deadline=Deadline(), idle_s=idle_s, journal=journal
        )

    async def failing(self, body: bytes = b"{}") -> list[Attempt]:
        """Make a call that fails or is answered; return its attempts."""
        journal = Journal([])
        with suppress(UpstreamFailure):
            response = await self.send(journal, body)
            response.close()
        return journal.attempts

    async def held(self) -> dict[str, int]:
        """Return what calls hold, once nothing moves."""
        await trio.testing.wait_all_tasks_blocked()
        state, pool = self.cluster.state, self.pool
        hosts = pool._hosts.values()
        return {
            "lent": pool.in_use,
            "waiters": sum(len(host.waiters) for host in hosts),
            "dials": sum(len(host.dials) for host in hosts),
            "active": state.gate.breaker.active + state.gate.breaker.waiting,
            "hosts": sum(host.active for host in state.hosts),
            "leases": self.router.generation.leases,
        }

    async def open_streams(self) -> int:
        """Return how many streams are open for the backends, and for us, once nothing moves."""
        await trio.testing.wait_all_tasks_blocked()
        ours = sum(
            len(each._streams) + len(each._http._streams) + len(each._output._blocked)
            for host in self.pool._hosts.values()
            for each in host.connections
        )
        return ours + sum(
            session.open_streams
            for backend in self.backends
            for session in backend.sessions
            if not session.is_closed
        )


async def start_h2_scene(
    nursery: trio.Nursery,
    *plays: Play,
    reliability: str = "",
    more: Sequence[Sequence[Play]] = (),
    network: MemoryNetwork | None = None,
    **members: object,
) -> Scene:
    """Start a Router and its backends.

    Args:
        nursery: everything lives in it.
        plays: of the first backend, call by call.
        reliability: the model's, as the inside of a YAML mapping.
        more: plays of further backends.
        network: on which it all is; a new one by default.
        members: of the first backend.
    """
    network = network or MemoryNetwork()
    backends = [await start_h2_backend(nursery, network, *plays, **members)]
    backends += [await start_h2_backend(nursery, network, *each) for each in more]
    model = model_over_h2(*(each.port for each in backends), reliability=reliability)
    router = await start_router(nursery, network, document_of(model))
    scene = Scene(router, backends)
    scene.cluster.state.rotation._balancer._next = 0  # type: ignore[attr-defined]  # the first one's turn
    return scene


async def read_on(client: MemoryConnection) -> bytes:
    """Read until there is nothing more, or the client has left."""
    got = b""
    with suppress(ConnectionBroken):
        while data := await client.receive():
            got += data
    return got
