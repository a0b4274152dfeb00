"""What operators see of clusters at one moment, in plain values."""

from collections.abc import Iterable

import msgspec

from vsr.routing.generation import Active
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.clusters import Clusters
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outlier import OutlierDetector


class HostView(msgspec.Struct, frozen=True):
    """An endpoint as it is doing."""

    name: str
    is_available: bool
    is_healthy: bool
    is_ejected: bool
    is_quarantined: bool
    ejection_reason: str | None
    ejected_for_s: float | None
    in_flight: int
    weight: int
    latency_s: float | None
    attempts: dict[str, int]


class RuntimeView(msgspec.Struct, frozen=True):
    """A cluster as it is doing."""

    name: str
    lb_policy: str
    is_panicking: bool
    would_refuse: bool
    """Whether its breaker refuses a further attempt now."""
    active: int
    waiting: int
    limits: tuple[int, int, int]
    """Of connections, of attempts that wait, of requests."""
    hosts: tuple[HostView, ...]


def clusters_of(active: Active) -> Iterable[RuntimeCluster]:
    """Return the clusters of what serves now."""
    upstream = None if active.current is None else active.current.upstream
    return upstream if isinstance(upstream, Clusters) else ()


def view_of(clusters: Iterable[RuntimeCluster], now: float) -> tuple[RuntimeView, ...]:
    """Return clusters as they are at `now`, monotonic seconds."""
    return tuple(_cluster(each, now) for each in clusters)


def _cluster(cluster: RuntimeCluster, now: float) -> RuntimeView:
    state, breaker = cluster.state, cluster.state.gate.breaker
    limits = breaker.limits
    return RuntimeView(
        cluster.cluster.name,
        cluster.cluster.lb_policy,
        state.rotation.is_panicking,
        breaker.overflow_limit is not None,
        breaker.active,
        breaker.waiting,
        (limits.max_connections, limits.max_pending, limits.max_requests),
        tuple(_host(each, state.outliers, now) for each in state.hosts),
    )


def _host(host: Host, outliers: OutlierDetector | None, now: float) -> HostView:
    reason, until = (None, 0.0) if outliers is None else outliers.last_ejection(host)
    return HostView(
        host.endpoint.name,
        host.is_rotating,
        host.is_healthy,
        host.is_ejected,
        host.is_quarantined,
        None if reason is None else str(reason),
        max(0.0, round(until - now, 3)) if host.is_ejected else None,
        host.active,
        host.endpoint.weight,
        host.latency_s,
        {str(key): count for key, count in sorted(host.stats.outcomes().items())},
    )
