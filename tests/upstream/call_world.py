"""The upstream layer between scripted backends and clients, with everything that happens noted."""

import errno
import random
import re
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import cast

import attrs
import trio
import trio.testing

from tests.engine.stepped_backend import Act
from tests.upstream.call_guest import Guest
from tests.upstream.call_scenarios import (
    FIRST_PORT,
    ID,
    PLAYS,
    Ask,
    Configuration,
    Play,
    Reach,
    Read,
    Scenario,
)
from vsr.http.h1_server import End, ServerConnection
from vsr.network.memory import Fault, MemoryConnection, MemoryListener, MemoryNetwork
from vsr.network.port import ConnectFailed, ConnectionBroken
from vsr.resources.snapshot import Snapshot
from vsr.routing.engine import Engine
from vsr.routing.generation import ActiveGeneration, Generation
from vsr.slices import at_once
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.clusters import Clusters, Surroundings, build_clusters
from vsr.upstream.h2_pool import AnyPool

SLOW_S = 0.2
"""What connecting to a slow backend takes."""
_CALL = re.compile(rb"x-call: (\d{4}) (\w+)")


class WatchedNetwork(MemoryNetwork):
    """Notes what was dialled; hosts can be put out of reach."""

    def __init__(self) -> None:
        super().__init__()
        self.dialled: list[MemoryConnection] = []
        """Our ends of all connections."""
        self.reach: dict[str, Reach] = {}

    async def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> MemoryConnection:
        """Open a connection unless the host is out of reach."""
        reach = self.reach.get(host, Reach.LISTENING)
        if reach is Reach.SLOW:
            await trio.sleep(SLOW_S)
        if reach is Reach.REFUSING:
            await trio.lowlevel.checkpoint()
            raise ConnectFailed(errno.ECONNREFUSED)
        connection = await super().connect(host, port, ipv4_only=ipv4_only, allows=allows)
        self.dialled.append(connection)
        return connection

    def turn(self, backend: int, reach: Reach) -> None:
        """Let connecting to a backend meet something else."""
        host = f"b{backend}.test"
        self.reach[host] = reach
        faults = {Reach.UNKNOWN: Fault.UNKNOWN_HOST, Reach.UNREACHABLE: Fault.SILENT}
        self.faults.pop(host, None)
        if reach in faults:
            self.faults[host] = faults[reach]


@attrs.define(eq=False)
class Seen:
    """One request of which a backend has got a byte."""

    call: int
    model: str
    backend: int
    at: float
    play: Play


@attrs.define(eq=False)
class Backend:
    """Answers as its plays say, in turn and over again."""

    number: int
    plays: Sequence[str]
    seen: list[Seen]
    """Of all backends."""
    _asked: int = attrs.field(default=0, init=False)

    async def run(self, listener: MemoryListener) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as tasks:
            while True:
                tasks.start_soon(self._serve, await listener.accept())

    async def _serve(self, connection: MemoryConnection) -> None:
        http = ServerConnection()
        with trio.CancelScope() as scope, suppress(ConnectionBroken):
            connection.on_gone = scope.cancel
            if self._next.reads is Read.NOTHING:
                self._asked += 1
                connection.abort()
            while not connection.is_gone and await self._answer(connection, http):
                pass
        connection.close()

    @property
    def _next(self) -> Play:
        return PLAYS[self.plays[self._asked % len(self.plays)]]

    async def _answer(self, connection: MemoryConnection, http: ServerConnection) -> bool:
        """Answer one request; return whether the connection goes on."""
        data = await connection.receive()
        if not data:
            return False
        found = _CALL.search(data)
        assert found is not None, data
        play = self._next
        self._asked += 1
        model = found[2].decode()
        self.seen.append(Seen(int(found[1]), model, self.number, trio.current_time(), play))
        http.feed(data)
        while play.reads is Read.WHOLE and (event := http.next_event()) is not End.REQUEST:
            if event is None:
                http.feed(await connection.receive())
        for step in play.steps:
            if isinstance(step, bytes):
                await connection.send(step.replace(ID, found[1]))
            elif isinstance(step, float):
                await trio.sleep(step)
            elif step is Act.HANG:
                await trio.sleep_forever()
            else:
                connection.abort() if step is Act.RESET else connection.close()
                return False
        return play.reads is Read.WHOLE


@attrs.define(eq=False)
class World:
    """All that there is."""

    scenario: Scenario
    network: WatchedNetwork = attrs.field(factory=WatchedNetwork, init=False)
    seen: list[Seen] = attrs.field(factory=list, init=False)
    guests: list[Guest] = attrs.field(factory=list, init=False)
    active: ActiveGeneration = attrs.field(factory=ActiveGeneration, init=False)
    generations: list[Generation] = attrs.field(factory=list, init=False)
    pools: set[AnyPool] = attrs.field(factory=set, init=False)
    """All that ever were."""
    states: set[ClusterState] = attrs.field(factory=set, init=False)
    _rng: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rng = random.Random(self.scenario.seed)  # noqa: S311  # as everywhere upstream

    async def start(self, nursery: trio.Nursery) -> None:
        """Let the network and the backends run."""
        nursery.start_soon(self.network.run)
        for number, plays in enumerate(self.scenario.plays):
            listener = await self.network.listen("", FIRST_PORT + number)
            nursery.start_soon(Backend(number, plays, self.seen).run, listener)
        await trio.testing.wait_all_tasks_blocked()

    def serve(self, configuration: Configuration, nursery: trio.Nursery) -> None:
        """Let a configuration serve from now on."""
        previous = self.active.current
        around = Surroundings(self.network, self._rng, lambda *_: ssl.create_default_context())
        earlier = None if previous is None else cast("Clusters", previous.upstream)
        clusters = at_once(build_clusters(Snapshot("", clusters=configuration), around, earlier))
        self.pools.update(clusters.pools.values())
        self.states.update(clusters.states.values())
        scope = trio.CancelScope()
        generation = Generation(
            len(self.generations) + 1,
            Snapshot("", clusters=configuration),
            cast("Engine", None),
            clusters,
            on_unused=clusters.close,
            on_retired=scope.cancel,
        )
        self.generations.append(generation)
        nursery.start_soon(partial(_run_in, scope, clusters))
        self.active.activate(generation)

    def welcome(self, ask: Ask, nursery: trio.Nursery) -> None:
        """Let a client come."""
        generation = self.active.current
        assert generation is not None
        clusters = cast("Clusters", generation.upstream)
        guest = Guest(len(self.guests) + 1, ask, clusters, trio.current_time())
        self.guests.append(guest)
        nursery.start_soon(self._host, guest, generation.lease())

    async def _host(self, guest: Guest, generation: Generation) -> None:
        try:
            await guest.come()
        finally:
            generation.release()

    @property
    def present(self) -> list[Guest]:
        """Return the clients that have neither been served nor left."""
        return [guest for guest in self.guests if guest.ended_at is None]


async def _run_in(scope: trio.CancelScope, clusters: Clusters) -> None:
    with scope:
        await clusters.run()
