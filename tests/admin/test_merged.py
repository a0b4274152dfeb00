"""What several workers say of themselves, put together."""

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from vsr.admin.merged import merge_backends, merge_components, merge_generations
from vsr.admin.ports import GenerationView
from vsr.admin.views import (
    BackendsView,
    BreakerView,
    ClusterView,
    ComponentView,
    EndpointView,
    WorkersBreaker,
)

COUNTS = st.integers(0, 1000)
MAYBE_S = st.none() | st.floats(0, 300)
BREAKERS = st.builds(
    BreakerView, st.booleans(), COUNTS, COUNTS, st.just(10), st.just(20), st.just(30)
)
ENDPOINTS = st.builds(
    EndpointView,
    name=st.sampled_from("abc"),
    available=st.booleans(),
    healthy=st.booleans(),
    ejected=st.booleans(),
    quarantined=st.booleans(),
    ejection_reason=st.none() | st.just("consecutive_5xx"),
    ejected_for_s=MAYBE_S,
    in_flight=COUNTS,
    weight=st.just(1),
    latency_ms=MAYBE_S,
    attempts=st.dictionaries(st.sampled_from(["2xx", "5xx", "reset"]), COUNTS),
    workers=st.just(()),
)
CLUSTERS = st.builds(
    ClusterView,
    name=st.sampled_from("mno"),
    lb_policy=st.just("round_robin"),
    panic=st.booleans(),
    breaker=BREAKERS,
    endpoints=st.lists(ENDPOINTS, max_size=3, unique_by=lambda each: each.name).map(tuple),
    workers=st.just(()),
)
VIEWS = st.builds(
    BackendsView,
    version=st.integers(1, 3),
    clusters=st.lists(CLUSTERS, max_size=3, unique_by=lambda each: each.name).map(tuple),
    missing=st.just(()),
)
TOLD = st.dictionaries(st.integers(1, 4), VIEWS, max_size=4)
Place = tuple[str, str]


def counted(views: list[BackendsView]) -> tuple[Counter[Place], Counter[tuple[Place, str]]]:
    """Return what is in flight, and what has ended how, endpoint by endpoint."""
    in_flight, attempts = Counter[Place](), Counter[tuple[Place, str]]()
    for view in views:
        for cluster in view.clusters:
            for endpoint in cluster.endpoints:
                place = cluster.name, endpoint.name
                in_flight[place] += endpoint.in_flight
                for outcome, count in endpoint.attempts.items():
                    attempts[place, outcome] += count
    return in_flight, attempts


@given(TOLD)
def test_nothing_is_lost_or_counted_twice(told: dict[int, BackendsView]) -> None:
    """Every endpoint that any worker has is there once, with the sums of all."""
    merged = merge_backends(told, (9,))

    assert counted([merged]) == counted(list(told.values()))
    places = [
        (cluster.name, each.name) for cluster in merged.clusters for each in cluster.endpoints
    ]
    assert len(places) == len(set(places))
    assert merged.missing == (9,)
    for cluster in merged.clusters:
        theirs = [each for view in told.values() for each in view.clusters]
        breakers = [each.breaker for each in theirs if each.name == cluster.name]
        assert cluster.breaker.active == sum(each.active for each in breakers)
        assert cluster.breaker.waiting == sum(each.waiting for each in breakers)
        assert cluster.breaker.max_requests == 30


@given(TOLD)
def test_every_opinion_is_kept(told: dict[int, BackendsView]) -> None:
    """By worker, just as it was told; the summary is one that they bear out."""
    merged = merge_backends(told)

    kept = {
        (opinion.worker, cluster.name, endpoint.name): opinion
        for cluster in merged.clusters
        for endpoint in cluster.endpoints
        for opinion in endpoint.workers
    }
    said = {
        (worker, cluster.name, endpoint.name): endpoint
        for worker, view in told.items()
        for cluster in view.clusters
        for endpoint in cluster.endpoints
    }
    assert kept.keys() == said.keys()
    for key, opinion in kept.items():
        for field in opinion.__struct_fields__:
            assert field == "worker" or getattr(opinion, field) == getattr(said[key], field)
    for cluster in merged.clusters:
        for endpoint in cluster.endpoints:
            opinions = endpoint.workers
            assert endpoint.available is any(each.available for each in opinions)
            assert endpoint.healthy is all(each.healthy for each in opinions)
            assert endpoint.ejected is any(each.ejected for each in opinions)
            assert (endpoint.ejected_for_s, endpoint.ejection_reason) in [
                (each.ejected_for_s, each.ejection_reason) for each in opinions
            ]
            spans = [each.ejected_for_s or 0.0 for each in opinions]
            assert (endpoint.ejected_for_s or 0.0) == max(spans)


@given(TOLD)
def test_order_is_that_of_the_newest_version(told: dict[int, BackendsView]) -> None:
    """Whoever is heard first."""
    merged = merge_backends(told)

    assert merge_backends(dict(reversed(told.items()))) == merged
    newest = max((view.version for view in told.values()), default=0)
    assert merged.version == newest
    for worker in sorted(told):
        if told[worker].version == newest:
            names = [each.name for each in told[worker].clusters]
            assert [each.name for each in merged.clusters][: len(names)] == names
            break


def test_panic_is_told_worker_by_worker() -> None:
    """Of one is enough for the summary."""
    calm = ClusterView("m", "round_robin", False, BreakerView(False, 1, 0, 1, 2, 3), ())  # noqa: FBT003
    panicking = msgspec.structs.replace(calm, panic=True)

    merged = merge_backends({1: BackendsView(1, (calm,)), 2: BackendsView(1, (panicking,))})

    [cluster] = merged.clusters
    assert cluster.panic
    assert cluster.workers == (
        WorkersBreaker(1, panic=False, breaker=calm.breaker),
        WorkersBreaker(2, panic=True, breaker=calm.breaker),
    )


def test_requests_of_all_workers_are_counted_by_version() -> None:
    """A worker that was asked just before a change calls the older version active."""
    merged = merge_generations(
        [
            (GenerationView(3, active=True, leases=2), GenerationView(1, active=False, leases=1)),
            (GenerationView(2, active=True, leases=4), GenerationView(1, active=False, leases=5)),
            (GenerationView(2, active=True, leases=0),),
        ]
    )

    assert merged == (
        GenerationView(3, active=True, leases=2),
        GenerationView(2, active=False, leases=4),
        GenerationView(1, active=False, leases=6),
    )


def test_version_that_nobody_uses_any_more_is_not_alive() -> None:
    """Though a worker still called it active."""
    merged = merge_generations(
        [(GenerationView(3, active=True, leases=0),), (GenerationView(2, active=True, leases=0),)]
    )

    assert merged == (GenerationView(3, active=True, leases=0),)


def test_components_are_told_apart_by_worker() -> None:
    """Those of the supervisor first."""
    own = ComponentView("workers", 0, "fatal", "running", 0, "")
    theirs = ComponentView("ejection", 0, "restart", "waiting", 2, "OSError")

    merged = merge_components([own], {2: [theirs], 1: [theirs]})

    assert [(each.name, each.worker) for each in merged] == [
        ("workers", 0),
        ("ejection", 1),
        ("ejection", 2),
    ]
