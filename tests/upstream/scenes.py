"""A Router whose one model has several backends; each plays what a test says, call by call."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import attrs
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.engine.stepped_backend import EVENT_STREAM, LAST_CHUNK, Act, SteppedBackend, chunk
from tests.fakes.router import RunningRouter, as_snapshot, clusters_of, document_of, start_router
from tests.faults.moments import RecordingEngine, request_of
from tests.upstream.raw_backend import reply
from vsr.compose.generation import build_generation
from vsr.gateway.connection import H1Connection
from vsr.gateway.handler import RequestRun
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken
from vsr.routing.generation import Generation
from vsr.routing.outcome import Attempt
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.policy.balancer import RoundRobin

BODY, STREAM = chat_body(model="auto"), chat_body(model="auto", stream=True)
HEALTH_PATH = b"/health"
AT_ONCE_S = 0.05
NOTHING = dict.fromkeys(("active", "waiting", "slots", "hosts", "connections", "leases"), 0)

Play = Sequence[bytes | float | Act]
OK: Play = (reply(200, b"{}"),)
SILENT: Play = (Act.HANG,)
RESET: Play = (Act.RESET,)


def failing(status: int, *lines: HeaderLine) -> Play:
    """Return an answer with an error."""
    return (reply(status, b'{"error":{"message":"no"}}', *lines),)


def event(content: str) -> bytes:
    """Return one event of a stream, as a chunk."""
    delta = b'{"id":"c","choices":[{"index":0,"delta":{"content":"%b"}}]}' % content.encode()
    return chunk(b"data: %b\n\n" % delta)


END_OF_STREAM = (
    chunk(b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    + chunk(b"data: [DONE]\n\n")
    + LAST_CHUNK
)


def streaming(*gaps_s: float) -> Play:
    """Return a stream with an event at once and one behind each gap."""
    later = [step for gap_s in gaps_s for step in (gap_s, event("more"))]
    return (EVENT_STREAM + event("first"), *later, END_OF_STREAM)


@attrs.frozen
class Asked:
    """One call as a backend got it."""

    backend: int
    at: float
    head: RequestHead
    body: bytes


@attrs.define(eq=False)
class PlayingBackend(SteppedBackend):
    """Plays one play per call, the last of them for ever; health checks have one of their own."""

    number: int
    plays: Sequence[Play]
    calls: list[Asked]
    """Of all backends, in order."""
    weight: int = 1
    reads: bool = True
    """False never reads a byte."""
    health: Play = OK
    checks: list[Asked] = attrs.field(factory=list, init=False)
    accepted: int = attrs.field(default=0, init=False)
    _played: int = attrs.field(default=0, init=False)

    @property
    def host(self) -> str:
        """Return the name that the Router calls it by."""
        return f"b{self.number}.test"

    def rewind(self) -> None:
        """Play from the first play again."""
        self._played = 0

    async def _serve(self, connection: MemoryConnection) -> None:
        self.accepted += 1
        connection.on_gone = partial(self._left, connection)
        if not self.reads:
            await trio.sleep_forever()
        await super()._serve(connection)

    def _left(self, connection: MemoryConnection) -> None:
        self._note_gone()
        connection.close()

    async def _answer(self, connection: MemoryConnection) -> bool:
        head, body = self.seen[-1]
        asked = Asked(self.number, trio.current_time(), head, body)
        if head.target == HEALTH_PATH:
            self.checks.append(asked)
            self.steps = self.health
        else:
            self.calls.append(asked)
            self.steps = self.plays[min(self._played, len(self.plays) - 1)]
            self._played += 1
        return await super()._answer(connection)


def model_over(
    backends: Sequence[PlayingBackend], reliability: str = "", *, name: str = "alpha"
) -> str:
    """Return a model with these backends as YAML; `reliability` without its braces."""
    refs = ", ".join(
        f"{{endpoint: '{each.host}:{each.port}', weight: {each.weight}}}" for each in backends
    )
    return f"{{name: {name}, reliability: {{{reliability}}}, backend_refs: [{refs}]}}"


@attrs.define(eq=False)
class Scene:
    """A Router and its backends, seen from all sides."""

    router: RunningRouter
    backends: list[PlayingBackend]
    calls: list[Asked]
    """What the backends were asked, in order; health checks aside."""
    engine: RecordingEngine
    """Of the first generation."""
    generations: list[Generation]

    @property
    def network(self) -> MemoryNetwork:
        """Return the network of all."""
        return self.router.network

    @property
    def order(self) -> list[int]:
        """Return which backend got each call."""
        return [call.backend for call in self.calls]

    @property
    def times(self) -> list[float]:
        """Return when backends got calls."""
        return [call.at for call in self.calls]

    @property
    def state(self) -> ClusterState:
        """Return what the newest generation knows of its first cluster."""
        return next(iter(clusters_of(self.generations[-1]).states.values()))

    async def ask(self, body: bytes = BODY) -> Got:
        """Send one request and read its answer to the end."""
        return await self.router.ask(body)

    def replay(self) -> None:
        """Forget what was asked, and let every backend play from its first play again."""
        self.calls.clear()
        for backend in self.backends:
            backend.rewind()

    async def begin(self, body: bytes = BODY) -> MemoryConnection:
        """Send one request; return the client's connection, on which it may leave."""
        client = await self.router.connect()
        await client.send(request_of(body))
        return client

    def journal(self, request: int = -1) -> tuple[Attempt, ...]:
        """Return the attempts of one request of the first generation."""
        outcome = self.engine.plans[request].settlement.outcome
        assert outcome is not None, "the request goes on"
        return outcome.attempts

    async def held(self) -> dict[str, int]:
        """Return what all calls of all generations hold, once nothing moves."""
        await trio.testing.wait_all_tasks_blocked()
        clusters = [clusters_of(generation) for generation in self.generations]
        states = {state for each in clusters for state in each.states.values()}
        pools = {pool for each in clusters for pool in each.pools.values()}
        return {
            "active": sum(state.gate.breaker.active for state in states),
            "waiting": sum(state.gate.breaker.waiting for state in states),
            "slots": sum(state.slots.taken for state in states),
            "hosts": sum(host.active for state in states for host in state.hosts),
            "connections": sum(pool.in_use for pool in pools),
            "leases": sum(generation.leases for generation in self.generations),
        }

    async def reload(self, document: str) -> Generation:
        """Serve `document` from now on, as the process would."""
        version = len(self.generations) + 1
        previous = self.router.generation
        parts = self.router.parts
        generation = build_generation(parts, as_snapshot(document), version, previous)
        self.generations.append(generation)
        await self.router.router.activate(generation)
        return generation


async def start_backends(
    nursery: trio.Nursery, network: MemoryNetwork, plays: Sequence[Sequence[Play]]
) -> list[PlayingBackend]:
    """Start one backend for each list of plays; they share one record of calls."""
    calls: list[Asked] = []
    backends = [PlayingBackend(network, (), n, each, calls) for n, each in enumerate(plays)]
    for backend in backends:
        await backend.start(nursery)
    return backends


async def start_scene(
    nursery: trio.Nursery,
    reliability: str,
    *plays: Sequence[Play],
    weights: Sequence[int] = (),
    health: Sequence[Play] = (),
    routing: str = "",
    more: str = "",
    network: MemoryNetwork | None = None,
) -> Scene:
    """Start a Router whose model has one backend for each list of plays; the first has a turn.

    Args:
        nursery: everything lives in it.
        reliability: the model's, as the inside of a YAML mapping.
        plays: of each backend, call by call.
        weights: of the backends, 1 each by default.
        health: how each of them answers health checks, with 200 by default.
        routing: the `routing` block in YAML's flow style.
        more: further lines of the document.
        network: on which it all is; a new one by default.
    """
    network = network or MemoryNetwork()
    backends = await start_backends(nursery, network, plays)
    for backend, weight in zip(backends, weights, strict=False):
        backend.weight = weight
    for backend, play in zip(backends, health, strict=False):
        backend.health = play
    document = document_of(model_over(backends, reliability), routing=routing) + "\n" + more
    router = await start_router(nursery, network, document)
    engine = RecordingEngine(router.generation.engine)
    router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest
    scene = Scene(router, backends, backends[0].calls, engine, [router.generation])
    begin_at_first(scene)
    return scene


def begin_at_first(scene: Scene) -> None:
    """Let the first backend of a plain rotation, which begins anywhere, have the next turn."""
    balancer = scene.state.rotation._balancer
    if isinstance(balancer, RoundRobin):
        balancer._next = 0


def run_of(scene: Scene) -> RequestRun | None:
    """Return the run of the one request under way."""
    for server in scene.router.router.server._listeners:
        for connection in server.connections:
            if isinstance(connection, H1Connection) and isinstance(connection._run, RequestRun):
                return connection._run
    return None


@attrs.define(eq=False)
class Departure:
    """A client that leaves behind one step of any task."""

    scene: Scene
    client: MemoryConnection
    how: str
    begun: int | None = None
    """Attempts that had been begun by then, if the request was under way."""

    def __call__(self) -> None:
        """Leave."""
        run = run_of(self.scene)
        if run is not None:
            self.begun = len(run.journal.attempts)
        getattr(self.client, self.how)()


async def read_on(client: MemoryConnection) -> None:
    """Read until there is nothing more, or the client has left."""
    with suppress(ConnectionBroken):
        while await client.receive():
            pass
