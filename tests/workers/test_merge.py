"""The metrics of several workers as one."""

from vsr.workers.merge import Merged
from vsr.workers.messages import Family, Sample

CALLS, ACTIVE, HEALTHY = (
    "llm_upstream_requests",
    "llm_upstream_active_requests",
    "llm_upstream_endpoint_healthy",
)


def told(
    calls: float, active: float = 0, healthy: float = 1, model: str = "a"
) -> tuple[Family, ...]:
    """Return what a worker tells."""
    labels = {"cluster": model}
    return (
        Family(CALLS, "Calls.", "counter", (Sample(CALLS + "_total", labels, calls),)),
        Family(ACTIVE, "Active.", "gauge", (Sample(ACTIVE, labels, active),)),
        Family(HEALTHY, "Well.", "gauge", (Sample(HEALTHY, labels, healthy),)),
    )


def read(families: tuple[Family, ...]) -> dict[str, float]:
    """Return the samples by what identifies them."""
    return {
        each.name + "".join(f" {key}={value}" for key, value in sorted(each.labels.items())): (
            each.value
        )
        for family in families
        for each in family.samples
    }


def test_counts_are_summed_and_views_are_told_apart() -> None:
    """How many attempts are under way is a sum; who is well is each worker's own view."""
    got = read(Merged().merge({1: told(3, 1), 2: told(4, 2, 0)}))

    assert got == {
        f"{CALLS}_total cluster=a": 7,
        f"{ACTIVE} cluster=a": 3,
        f"{HEALTHY} cluster=a worker=1": 1,
        f"{HEALTHY} cluster=a worker=2": 0,
    }


def test_counters_do_not_fall_when_a_worker_ends() -> None:
    """What it has told of stays in the sum, what was under way there does not."""
    merged = Merged()
    merged.merge({1: told(3, 1), 2: told(4, 2)})
    merged.end(2)

    without = read(merged.merge({1: told(5, 1)}))
    again = read(merged.merge({1: told(5, 1), 2: told(1, 1)}))

    assert without[f"{CALLS}_total cluster=a"] == 9
    assert without[f"{ACTIVE} cluster=a"] == 1
    assert f"{HEALTHY} cluster=a worker=2" not in without
    assert again[f"{CALLS}_total cluster=a"] == 10


def test_series_that_no_worker_has_any_more_are_gone() -> None:
    """Those of a model that is not served; they do not come back with it."""
    merged = Merged()
    merged.merge({1: told(3), 2: told(4)})
    merged.end(2)

    gone = read(merged.merge({1: told(1, model="b")}))
    back = read(merged.merge({1: told(2)}))

    assert f"{CALLS}_total cluster=a" not in gone
    assert back[f"{CALLS}_total cluster=a"] == 2


def test_worker_that_does_not_answer_counts_as_before() -> None:
    """It is busy, not gone."""
    merged = Merged()
    merged.merge({1: told(3), 2: told(4)})

    got = read(merged.merge({1: told(5)}))

    assert got[f"{CALLS}_total cluster=a"] == 9
