"""What several workers say of themselves, put together: sums are exact, opinions stay apart."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from vsr.admin.ports import GenerationView
from vsr.admin.views import (
    BackendsView,
    BreakerView,
    ClusterView,
    ComponentView,
    EndpointView,
    WorkersBreaker,
    WorkersEndpoint,
)


def merge_generations(told: Iterable[Sequence[GenerationView]]) -> tuple[GenerationView, ...]:
    """Return versions that are alive, the newest first, with the requests of all workers.

    A worker that was asked just before a version was committed calls an older one active: the
    newest of these is what serves.
    """
    leases: dict[int, int] = {}
    newest = 0
    for each in told:
        for generation in each:
            version = generation.version
            leases[version] = leases.get(version, 0) + generation.leases
            newest = max(newest, version) if generation.active else newest
    return tuple(
        GenerationView(version, version == newest, leases[version])
        for version in sorted(leases, reverse=True)
        if leases[version] or version == newest
    )


def merge_components(
    own: Iterable[ComponentView], told: Mapping[int, Iterable[ComponentView]]
) -> tuple[ComponentView, ...]:
    """Return the components of the process that asks, then those of each worker."""
    theirs = (
        msgspec.structs.replace(each, worker=worker)
        for worker, components in sorted(told.items())
        for each in components
    )
    return (*own, *theirs)


def merge_backends(told: Mapping[int, BackendsView], missing: tuple[int, ...] = ()) -> BackendsView:
    """Return the backends of all workers.

    Args:
        told: by worker.
        missing: workers that told nothing.

    Returns:
        Clusters in the order of the newest version that was told of; what only workers with an
        older one have, as amid a change of the configuration, is behind it.
    """
    newest_first = sorted(told.items(), key=lambda each: (-each[1].version, each[0]))
    by_name: dict[str, dict[int, ClusterView]] = {}
    for worker, view in newest_first:
        for cluster in view.clusters:
            by_name.setdefault(cluster.name, {})[worker] = cluster
    version = newest_first[0][1].version if newest_first else 0
    return BackendsView(version, tuple(map(_merge_cluster, by_name.values())), missing)


def _merge_cluster(told: Mapping[int, ClusterView]) -> ClusterView:
    newest = next(iter(told.values()))
    by_name: dict[str, dict[int, EndpointView]] = {}
    for worker, cluster in told.items():
        for endpoint in cluster.endpoints:
            by_name.setdefault(endpoint.name, {})[worker] = endpoint
    return ClusterView(
        newest.name,
        newest.lb_policy,
        any(each.panic for each in told.values()),
        _merge_breaker([each.breaker for each in told.values()]),
        tuple(map(_merge_endpoint, by_name.values())),
        tuple(
            WorkersBreaker(worker, each.panic, each.breaker)
            for worker, each in sorted(told.items())
        ),
    )


def _merge_breaker(told: Sequence[BreakerView]) -> BreakerView:
    return msgspec.structs.replace(
        told[0],
        open=any(each.open for each in told),
        active=sum(each.active for each in told),
        waiting=sum(each.waiting for each in told),
    )


def _merge_endpoint(told: Mapping[int, EndpointView]) -> EndpointView:
    views = list(told.values())
    attempts: Counter[str] = Counter()
    for each in views:
        attempts.update(each.attempts)
    # Who leaves it out for longest knows best why; else whoever has ever done so.
    ejecting = max(views, key=lambda each: (each.ejected_for_s or 0.0, bool(each.ejection_reason)))
    return EndpointView(
        views[0].name,
        available=any(each.available for each in views),
        healthy=all(each.healthy for each in views),
        ejected=any(each.ejected for each in views),
        quarantined=any(each.quarantined for each in views),
        ejection_reason=ejecting.ejection_reason,
        ejected_for_s=ejecting.ejected_for_s,
        in_flight=sum(each.in_flight for each in views),
        weight=views[0].weight,
        latency_ms=None,
        attempts=dict(sorted(attempts.items())),
        workers=tuple(_opinion(worker, each) for worker, each in sorted(told.items())),
    )


def _opinion(worker: int, view: EndpointView) -> WorkersEndpoint:
    return WorkersEndpoint(
        worker,
        view.available,
        view.healthy,
        view.ejected,
        view.quarantined,
        view.ejection_reason,
        view.ejected_for_s,
        view.in_flight,
        view.latency_ms,
    )
