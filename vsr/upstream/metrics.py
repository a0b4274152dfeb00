"""What operators see of clusters: made of plain counts when somebody asks, not per request.

Source of names, labels and buckets: the reference's standalone mode, metrics; those of fallbacks
are our addition.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate

import attrs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.stats import DURATION_BOUNDS_S, ClusterStats

_UNKNOWN = "unknown"
_OF_HOST = ("cluster", "endpoint")
_BOUNDS = (*(f"{bound:.12g}" for bound in DURATION_BOUNDS_S), "+Inf")

_Named = list[tuple[str, ClusterState]]
_Sample = tuple[tuple[str, ...], float]


def make_renderer(
    clusters: Callable[[], Iterable[RuntimeCluster]],
    more: Callable[[], Iterable[Metric]] = tuple,
) -> Callable[[], bytes]:
    """Return what renders the metrics of the clusters there are at the time.

    In Prometheus' text format 0.0.4. A cluster that is no longer served has no series any more.

    Args:
        clusters: what is served.
        more: what else is to be told.
    """
    registry = CollectorRegistry()
    registry.register(_Served(clusters, more))
    return partial(generate_latest, registry)


@attrs.frozen
class _Served(Collector):
    clusters: Callable[[], Iterable[RuntimeCluster]]
    more: Callable[[], Iterable[Metric]]

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from cluster_metrics(self.clusters())
        yield from self.more()


def cluster_metrics(clusters: Iterable[RuntimeCluster]) -> Iterator[Metric]:
    """Yield the metrics of `clusters`, in a fixed order."""
    named = [(each.cluster.name, each.state) for each in clusters]
    of_attempt = ("cluster", "endpoint", "outcome")
    yield _counter("requests", "Calls by how they ended.", ("cluster", "outcome"), _requests(named))
    yield _counter("attempts", "Attempts by how they ended.", of_attempt, _attempts(named))
    yield _durations(named)
    yield _counter(
        "egress_refused",
        "Connections that the egress policy allowed no address for.",
        _OF_HOST,
        _per_host(named, _egress_refused),
    )
    yield _gauge("active_requests", "Attempts under way.", _OF_HOST, _per_host(named, _active))
    yield _counter("streams", "Response bodies by how they ended.", of_attempt, _streams(named))
    yield _one_label("retries", "Attempts that were repeated.", "outcome", named, _retries)
    yield from _rotation(named)
    yield _two_labels("ejections", "Endpoints left out.", ("endpoint", "reason"), named, _ejections)
    yield _two_labels("health_checks", "Health checks.", ("endpoint", "outcome"), named, _checks)
    yield _one_label("overflow", "Calls that a limit refused.", "limit", named, _overflows)
    yield _two_labels(
        "fallbacks", "Failed calls that went on.", ("class", "model"), named, _went_on
    )
    yield _one_label("fallback_stops", "Failed calls that did not.", "reason", named, _stayed)


def _rotation(named: _Named) -> Iterator[Metric]:
    """Yield where calls may go."""
    yield _gauge("endpoint_healthy", "1 if calls may go there.", _OF_HOST, _per_host(named, _well))
    yield _gauge(
        "endpoint_quarantined",
        "1 if an operator has taken it out of rotation.",
        _OF_HOST,
        _per_host(named, _quarantined),
    )
    panic = (((name,), float(state.rotation.is_panicking)) for name, state in named)
    yield _gauge(
        "cluster_panic", "1 if calls go to endpoints that are not well.", ("cluster",), panic
    )


def _counter(
    name: str, text: str, labels: tuple[str, ...], samples: Iterable[_Sample]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"llm_upstream_{name}", text, labels=labels)
    for values, count in samples:
        family.add_metric([value or _UNKNOWN for value in values], count)
    return family


def _gauge(
    name: str, text: str, labels: tuple[str, ...], samples: Iterable[_Sample]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"llm_upstream_{name}", text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _one_label(
    name: str,
    text: str,
    label: str,
    named: _Named,
    counts_of: Callable[[ClusterStats], Mapping[str, int]],
) -> CounterMetricFamily:
    samples = (
        ((cluster, str(value)), float(count))
        for cluster, state in named
        for value, count in counts_of(state.stats).items()
    )
    return _counter(name, text, ("cluster", label), samples)


def _two_labels(
    name: str,
    text: str,
    labels: tuple[str, str],
    named: _Named,
    counts_of: Callable[[ClusterStats], Mapping[tuple[str, str], int]],
) -> CounterMetricFamily:
    samples = (
        ((cluster, str(first), str(second)), float(count))
        for cluster, state in named
        for (first, second), count in counts_of(state.stats).items()
    )
    return _counter(name, text, ("cluster", *labels), samples)


def _requests(named: _Named) -> Iterator[_Sample]:
    """Yield the calls: every attempt that was not repeated ended one."""
    for name, state in named:
        ended = sum((host.stats.outcomes() for host in state.hosts), state.stats.unplaced.copy())
        ended.subtract(state.stats.retries)
        for outcome, count in sorted(ended.items()):
            yield (name, str(outcome)), count


def _attempts(named: _Named) -> Iterator[_Sample]:
    for name, state in named:
        for host in state.hosts:
            for outcome, count in host.stats.outcomes().items():
                yield (name, host.endpoint.name, str(outcome)), count
        for outcome, count in state.stats.unplaced.items():
            yield (name, _UNKNOWN, str(outcome)), count


def _durations(named: _Named) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "llm_upstream_attempt_duration_seconds",
        "From the beginning of an attempt to its response head or failure.",
        labels=("cluster", "endpoint"),
    )
    for name, state in named:
        for host in state.hosts:
            counts = accumulate(host.stats.durations)
            buckets = [*zip(_BOUNDS, map(float, counts), strict=True)]
            family.add_metric((name, host.endpoint.name), buckets, host.stats.seconds)
    return family


def _streams(named: _Named) -> Iterator[_Sample]:
    for name, state in named:
        for host in state.hosts:
            stats, endpoint = host.stats, host.endpoint.name
            ends = {"complete": stats.complete, "closed": stats.closed, **stats.broken}
            for outcome, count in ends.items():
                if count:
                    yield (name, endpoint, str(outcome)), count


def _per_host(named: _Named, value_of: Callable[[Host], float]) -> Iterator[_Sample]:
    for name, state in named:
        for host in state.hosts:
            yield (name, host.endpoint.name), value_of(host)


def _active(host: Host) -> float:
    return float(host.active)


def _egress_refused(host: Host) -> float:
    return float(host.stats.egress_refusals)


def _well(host: Host) -> float:
    return float(host.is_rotating)


def _quarantined(host: Host) -> float:
    return float(host.is_quarantined)


def _retries(stats: ClusterStats) -> Mapping[str, int]:
    return stats.retries


def _overflows(stats: ClusterStats) -> Mapping[str, int]:
    return stats.overflows


def _stayed(stats: ClusterStats) -> Mapping[str, int]:
    return stats.fallback_stops


def _ejections(stats: ClusterStats) -> Mapping[tuple[str, str], int]:
    return stats.ejections


def _checks(stats: ClusterStats) -> Mapping[tuple[str, str], int]:
    return stats.checks


def _went_on(stats: ClusterStats) -> Mapping[tuple[str, str], int]:
    return stats.fallbacks
