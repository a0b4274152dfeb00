"""The clusters of one configuration at run time, and the pools they share."""

import random
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import trio

from vsr.errors import NoHealthyEndpoint
from vsr.network.port import Network
from vsr.resources.cluster import Cluster
from vsr.resources.snapshot import Snapshot
from vsr.routing.effect import ImmediateResponse
from vsr.routing.plan import Alternatives, Call
from vsr.routing.ports import Journal, Served
from vsr.slices import Sliced
from vsr.upstream.background import Background, Keep, plainly
from vsr.upstream.candidates import CandidateBreakers
from vsr.upstream.chain import Chain
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.cluster_state import ClusterState, new_state
from vsr.upstream.dialer import SecurityDomain, TlsContexts
from vsr.upstream.mix import Mix
from vsr.upstream.pools import ContextKey, PoolMaker
from vsr.upstream.quarantine import Quarantine
from vsr.upstream.upkeep import keep_up
from vsr.upstream.wire import Wire

if TYPE_CHECKING:
    from vsr.upstream.h2_pool import AnyPool


class Surroundings(msgspec.Struct, frozen=True):
    """What clusters need of the process."""

    network: Network
    rng: random.Random
    tls_context: TlsContexts
    """Makes the context of TLS settings; asked once for all pools that have the same."""
    background: Background = msgspec.field(default_factory=Background)
    """Where shared connections work."""
    quarantine: Quarantine = msgspec.field(default_factory=Quarantine)
    """Which endpoints are not called."""


def build_clusters(
    snapshot: Snapshot, surroundings: Surroundings, previous: "Clusters | None" = None
) -> Sliced["Clusters"]:
    """Build the clusters of `snapshot`, in slices.

    Args:
        snapshot: what to serve.
        surroundings: of the process.
        previous: what has been served so far. A cluster that is unchanged goes on with its
            state, and a security domain that is still used with its pool. Both are shared
            with `previous`, which goes on as it is should these clusters never serve.

    Raises:
        ConfigRejected: TLS settings cannot be used; `previous` is left as it is.
    """
    inherited = {} if previous is None else previous.states
    maker = PoolMaker(
        surroundings.network,
        surroundings.tls_context,
        surroundings.background,
        {} if previous is None else previous.pools,
        {} if previous is None else previous.contexts,
    )
    built: dict[bytes, RuntimeCluster] = {}
    for cluster in snapshot.clusters:
        state = inherited.get(cluster) or new_state(cluster, surroundings.rng)
        built[cluster.name.encode()] = RuntimeCluster(
            cluster,
            Wire.of(cluster, snapshot),
            maker.provide(cluster, state),
            surroundings.rng,
            Mix.of(cluster, snapshot) if cluster.profiles else None,
        )
        yield
    clusters = Clusters(maker, built)
    if previous is not None:
        clusters.breakers = previous.breakers
    clusters.breakers.join(clusters, snapshot)
    surroundings.quarantine.join(clusters)
    clusters.keep = surroundings.background.keep
    return clusters


class Clusters:
    """Implements `routing.ports.Upstream`; pools are shared by endpoints of one security domain."""

    def __init__(self, maker: PoolMaker, built: Mapping[bytes, RuntimeCluster]) -> None:
        """Take what was built; see `build_clusters`."""
        self.pools: Mapping[SecurityDomain, AnyPool] = maker.pools
        """By what their connections have in common."""
        self.contexts: Mapping[ContextKey, ssl.SSLContext] = maker.contexts
        """Of the TLS settings in use."""
        self._by_name = built
        self._default = next(iter(self._by_name.values()), None)
        self._join_pools()
        self.breakers = CandidateBreakers()
        self.keep: Keep = plainly

    @property
    def connections_in_use(self) -> int:
        """Return how many backend connections carry a request."""
        return sum(pool.in_use for pool in self.pools.values())

    @property
    def idle_connections(self) -> int:
        """Return how many backend connections wait for use."""
        return sum(pool.idle for pool in self.pools.values())

    def __iter__(self) -> Iterator[RuntimeCluster]:
        """Yield the clusters in the document's order."""
        return iter(self._by_name.values())

    @property
    def states(self) -> dict[Cluster, ClusterState]:
        """Return the state of every cluster, by what the cluster is."""
        return {each.cluster: each.state for each in self._by_name.values()}

    def state_of(self, model: str) -> ClusterState | None:
        """Return the state of the named cluster; None if there is none."""
        found = self._by_name.get(model.encode())
        return None if found is None else found.state

    def cluster_for(self, route_key: bytes) -> RuntimeCluster:
        """Return the named cluster, or the default one."""
        found = self._by_name.get(route_key, self._default)
        if found is None:
            raise NoHealthyEndpoint
        return found

    async def send_along(
        self,
        call: Call,
        alternatives: Alternatives,
        *,
        listener_s: float | None,
        started_at: float,
        journal: Journal,
    ) -> Served | ImmediateResponse:
        """Send `call` and, when it fails, its alternatives; see `routing.ports.Upstream`."""
        chain = Chain(
            self.cluster_for, self.breakers, alternatives, listener_s, started_at, journal
        )
        return await chain.run(call)

    async def run(self) -> None:
        """Sweep and check endpoints until cancelled; returns if no cluster needs it."""
        for cluster in self._by_name.values():
            cluster.now = trio.lowlevel.current_clock().current_time
        async with trio.open_nursery() as tasks:
            for cluster in self._by_name.values():
                if cluster.needs_upkeep:
                    tasks.start_soon(keep_up, cluster, self.keep)

    async def warm(self) -> None:
        """Wait until every endpoint that is checked has been checked once; `run` is running."""
        for cluster in self._by_name.values():
            await cluster.warmed.wait()

    def close(self) -> None:
        """Let go what no other configuration wants; connections in use close later."""
        self.breakers.leave(self)
        for pool in self.pools.values():
            pool.leave(self)

    def _join_pools(self) -> None:
        wanted: dict[AnyPool, set[tuple[str, int]]] = {pool: set() for pool in self.pools.values()}
        for cluster in self:
            for host in cluster.state.hosts:
                wanted[host.pool].add(host.endpoint.host_port)
        for pool, host_ports in wanted.items():
            pool.join(self, host_ports)
