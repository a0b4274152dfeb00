"""The clusters of one configuration at run time: where a call goes and what it looks like there."""

import random
import ssl
from collections.abc import Callable, Coroutine, Mapping

import attrs

from vsr.deadline import Deadline
from vsr.errors import NoHealthyEndpoint
from vsr.http.framing import HOP_BY_HOP
from vsr.network.port import Network
from vsr.resources.cluster import Cluster
from vsr.resources.snapshot import Snapshot
from vsr.routing.plan import Call
from vsr.routing.ports import Journal
from vsr.routing.request import CREDENTIALS, USER_KEY_HEADERS
from vsr.upstream.attempt import Response, WireRequest, try_endpoint
from vsr.upstream.dialer import DomainDialer, SecurityDomain
from vsr.upstream.policy.balancer import RoundRobin
from vsr.upstream.pool import Pool

_DROPPED = (
    HOP_BY_HOP
    | USER_KEY_HEADERS
    | {
        b"trailer",
        b"expect",
        b"host",
        b"content-length",
        b"x-vsr-looper-request",
        b"x-vsr-looper-secret",
        b"x-vsr-looper-decision",
        b"x-vsr-looper-iteration",
        b"x-authz-user-id",
        b"x-authz-user-groups",
        b"x-authz-team-id",
        b"x-authz-tenant-id",
    }
)
"""What never reaches a backend as the client sent it.

Source: the reference's upstream layer, which lets team and tenant pass; who calls is no backend's
business, so here they don't.
"""

_ROUTE_KEY = b"x-selected-model"
"""The core sets it on every call that it routes."""


@attrs.define(eq=False)
class RuntimeCluster:
    """One cluster with its balancer and the pool of its security domain."""

    cluster: Cluster
    pool: Pool
    balancer: RoundRobin
    dropped: frozenset[bytes]
    """What never reaches its backends unless the core set it."""
    replaced: frozenset[bytes]
    """The same for a call that nobody routed, and the names that the cluster sets itself."""
    key: bytes
    """The route key that names it; a call with another one came here by default."""
    _timeouts: dict[float | None, tuple[float | None, float | None]] = attrs.field(
        factory=dict, init=False
    )

    def timeouts(self, listener_s: float | None) -> tuple[float | None, float | None]:
        """Return total and idle timeout under a listener's default; None means no limit."""
        found = self._timeouts.get(listener_s)
        if found is None:
            cluster = self.cluster
            found = self._timeouts[listener_s] = (
                cluster.total_s(listener_s),
                cluster.idle_s(listener_s),
            )
        return found

    def send(
        self, call: Call, *, deadline: Deadline, idle_s: float | None, journal: Journal
    ) -> Coroutine[None, None, Response]:
        """Send `call` to one endpoint; see `routing.ports.UpstreamCluster`.

        Retries, fallback, breakers and ejection are decided here, around `try_endpoint`, once the
        policies exist; the order is the reference's: admit, pick, attempt, record, decide.
        """
        del deadline  # the request's scope ends the first attempt; retries will look at it
        endpoint = self.balancer.pick()
        if endpoint is None:
            raise NoHealthyEndpoint
        request = self.wire_request(call)
        return try_endpoint(
            request, self.cluster, endpoint, self.pool, idle_s=idle_s, journal=journal
        )

    def wire_request(self, call: Call) -> WireRequest:
        """Return `call` as this cluster's backends get it.

        The core has given a call that it routed the cluster's headers, and what the decision adds
        to them. One that is only passed on gets the headers here, but no credential.
        """
        cluster, headers, target = self.cluster, call.headers, call.target
        lines = headers.lines
        if cluster.base_path and call.route_key != self.key:
            target = _with_base_path(target, cluster.base_path.encode())
        if _ROUTE_KEY not in call.own_headers:
            lines = [line for line in lines if line[0] not in self.replaced]
            lines += cluster.route_headers
        elif not self.dropped.isdisjoint(headers.first_values()):
            own = call.own_headers
            lines = [
                line
                for line in lines
                if line[0] not in self.dropped or (line[0] in own and line[0] in CREDENTIALS)
            ]
        return WireRequest(call.method, target, lines, call.body)


class Clusters:
    """Implements `routing.ports.Upstream`; pools are shared by clusters of one security domain."""

    def __init__(
        self,
        snapshot: Snapshot,
        network: Network,
        rng: random.Random,
        tls_context: Callable[[], ssl.SSLContext],
    ) -> None:
        self._pools: dict[SecurityDomain, Pool] = {}
        dropped = _DROPPED | snapshot.settings.key_headers | _identity_headers(snapshot)
        self._by_name: Mapping[bytes, RuntimeCluster] = {
            cluster.name.encode(): RuntimeCluster(
                cluster,
                self._pool_for(SecurityDomain.of(cluster), network, tls_context),
                RoundRobin(cluster.endpoints, rng),
                _dropped(cluster, dropped),
                _dropped(cluster, dropped) | _own_names(cluster),
                cluster.name.encode(),
            )
            for cluster in snapshot.clusters
        }
        self._default = next(iter(self._by_name.values()), None)

    @property
    def connections_in_use(self) -> int:
        """Return how many backend connections carry a request."""
        return sum(pool.in_use for pool in self._pools.values())

    @property
    def idle_connections(self) -> int:
        """Return how many backend connections wait for use."""
        return sum(pool.idle for pool in self._pools.values())

    def cluster_for(self, route_key: bytes) -> RuntimeCluster:
        """Return the named cluster, or the default one."""
        found = self._by_name.get(route_key, self._default)
        if found is None:
            raise NoHealthyEndpoint
        return found

    def close(self) -> None:
        """Close idle connections; those in use close with their response."""
        for pool in self._pools.values():
            pool.close()

    def _pool_for(
        self,
        domain: SecurityDomain,
        network: Network,
        tls_context: Callable[[], ssl.SSLContext],
    ) -> Pool:
        pool = self._pools.get(domain)
        if pool is None:
            pool = self._pools[domain] = Pool(DomainDialer(domain, network, tls_context))
        return pool


def _identity_headers(snapshot: Snapshot) -> frozenset[bytes]:
    names = (listener.identity.header_names for listener in snapshot.listeners)
    return frozenset().union(*names)


def _dropped(cluster: Cluster, always: frozenset[bytes]) -> frozenset[bytes]:
    """Return the fields that this cluster's backends don't get as the client sent them.

    A backend that we authenticate to gets no credential but ours: a client's key for one provider
    must not reach another.
    """
    return always if cluster.credential is None else always | CREDENTIALS


def _own_names(cluster: Cluster) -> frozenset[bytes]:
    own = {name for name, _ in cluster.route_headers}
    return frozenset(own if cluster.credential is None else own | {cluster.credential[0]})


def _with_base_path(target: bytes, base_path: bytes) -> bytes:
    """Return `target` with its `/v1` segment replaced; `/v1beta` and the rest stay.

    Source: the reference's default route.
    """
    if target == b"/v1" or target.startswith((b"/v1/", b"/v1?")):
        return base_path + target[3:]
    return target
