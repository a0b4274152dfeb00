"""The clusters of one configuration at run time, and the pools they share."""

import random
from collections.abc import Iterator, Mapping

import attrs
import trio

from vsr.errors import NoHealthyEndpoint
from vsr.network.port import Network
from vsr.resources.cluster import Cluster, HttpVersion
from vsr.resources.snapshot import Snapshot
from vsr.routing.effect import ImmediateResponse
from vsr.routing.plan import Alternatives, Call
from vsr.routing.ports import Journal, Served
from vsr.upstream.background import Background
from vsr.upstream.chain import Breakers, Chain
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.cluster_state import ClusterState, new_state
from vsr.upstream.dialer import DomainDialer, SecurityDomain, TlsContexts
from vsr.upstream.h2_pool import AnyPool, H2Pool
from vsr.upstream.pool import Pool
from vsr.upstream.upkeep import keep_up
from vsr.upstream.wire import Wire


@attrs.frozen
class Surroundings:
    """What clusters need of the process."""

    network: Network
    rng: random.Random
    tls_context: TlsContexts
    background: Background


class Clusters:
    """Implements `routing.ports.Upstream`; pools are shared by clusters of one security domain."""

    def __init__(
        self, snapshot: Snapshot, surroundings: Surroundings, previous: "Clusters | None" = None
    ) -> None:
        """Build the clusters of `snapshot`.

        Args:
            snapshot: what to serve.
            surroundings: of the process.
            previous: what has been served so far. A cluster that is unchanged goes on with its
                state, and a security domain that is still used with its pool. Both are shared
                with `previous`, which goes on as it is should these clusters never serve.
        """
        self._surroundings = surroundings
        inherited = {} if previous is None else previous.states
        domains = {cluster.name: SecurityDomain.of(cluster) for cluster in snapshot.clusters}
        shared: dict[SecurityDomain, AnyPool] = {} if previous is None else previous.pools
        self.pools: dict[SecurityDomain, AnyPool] = {
            each: shared[each] for each in domains.values() if each in shared
        }
        """By what their connections have in common."""
        self._by_name: Mapping[bytes, RuntimeCluster] = {
            cluster.name.encode(): RuntimeCluster(
                cluster,
                self._pool_for(domains[cluster.name]),
                Wire.of(cluster, snapshot),
                inherited.get(cluster) or new_state(cluster, surroundings.rng),
                surroundings.rng,
            )
            for cluster in snapshot.clusters
        }
        self._default = next(iter(self._by_name.values()), None)
        for pool in self.pools.values():
            clusters = (each.cluster for each in self if each.pool is pool)
            pool.join(self, {end.host_port for each in clusters for end in each.endpoints})
        self.breakers: Breakers = {} if previous is None else previous.breakers

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
        async with trio.open_nursery() as tasks:
            for cluster in self._by_name.values():
                if cluster.needs_upkeep:
                    tasks.start_soon(keep_up, cluster)

    async def warm(self) -> None:
        """Wait until every endpoint that is checked has been checked once; `run` is running."""
        for cluster in self._by_name.values():
            await cluster.warmed.wait()

    def close(self) -> None:
        """Close idle connections that no other configuration wants; those in use close later."""
        for pool in self.pools.values():
            pool.leave(self)

    def _pool_for(self, domain: SecurityDomain) -> AnyPool:
        pool = self.pools.get(domain)
        if pool is None:
            around, version = self._surroundings, domain.http_version
            dialer = DomainDialer(domain, around.network, around.tls_context)
            if version is HttpVersion.HTTP_1_1:
                pool = Pool(dialer)
            else:
                pool = H2Pool(dialer, version, domain.connect_timeout_s, around.background)
            self.pools[domain] = pool
        return pool
