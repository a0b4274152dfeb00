"""Outlier ejection by success rate."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.upstream.policy.outlier_cluster import (
    NEVER,
    answer,
    detector_of,
    ejected,
    fail,
    hosts,
    lasts,
)
from vsr.resources.reliability import OutlierDetection
from vsr.upstream.policy.outlier import Ejection, EjectionReason


def test_endpoint_below_the_others_success_rate_is_ejected() -> None:
    """Although it never fails often enough in a row; the sweep says so, and why is noted."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(NEVER))
    for host in cluster[:4]:
        answer(detector, host, 100)
    answer(detector, cluster[4], 95)

    assert detector.sweep(10.0)
    assert ejected(cluster) == [4]
    assert detector.events == [Ejection(cluster[4], EjectionReason.SUCCESS_RATE)]


@pytest.mark.parametrize(
    ("percents", "out"),
    [
        # (mean - lowest) / population sigma: 1.9035, 1.8974 and 1.8999.
        ((94, 94, 95, 96, 89), [4]),
        ((95, 96, 97, 98, 89), []),
        ((89, 94, 97, 99, 100, 100), []),
    ],
)
def test_success_rate_is_low_below_mean_minus_1_9_sigma(
    percents: tuple[int, ...], out: list[int]
) -> None:
    """The deviation is the population's."""
    cluster = hosts(len(percents))
    detector = detector_of(cluster, OutlierDetection(NEVER))
    for host, percent in zip(cluster, percents, strict=True):
        answer(detector, host, percent)

    detector.sweep(10.0)

    assert ejected(cluster) == out


@given(count=st.integers(5, 10), requests=st.integers(100, 150), failures=st.integers(0, 100))
@example(count=7, requests=101, failures=3)
def test_equal_success_rates_eject_none(count: int, requests: int, failures: int) -> None:
    """However bad they are, and whatever the mean of equal fractions is rounded to."""
    cluster = hosts(count)
    detector = detector_of(cluster, OutlierDetection(NEVER, max_ejection_percent=100))
    for host in cluster:
        for place in range(requests):
            detector.record(host, 503 if place < failures else 200, 5.0)

    assert not detector.sweep(10.0)


@pytest.mark.parametrize(("requests", "is_ejected"), [(99, False), (100, True)])
def test_success_rate_needs_five_endpoints_with_a_hundred_requests(
    requests: int,
    is_ejected: bool,  # noqa: FBT001  # a parameter
) -> None:
    """One that is short of it is not counted."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(NEVER))
    answer(detector, cluster[0], 100, requests=requests)
    for host in cluster[1:4]:
        answer(detector, host, 100)
    answer(detector, cluster[4], 0)

    assert detector.sweep(10.0) == is_ejected


def test_success_rate_leaves_out_endpoints_with_few_requests() -> None:
    """A bad endpoint with few requests is neither ejected nor part of the mean."""
    cluster = hosts(6)
    detector = detector_of(cluster, OutlierDetection(NEVER))
    answer(detector, cluster[0], 0, requests=99)
    for host in cluster[1:5]:
        answer(detector, host, 100)
    answer(detector, cluster[5], 95)

    detector.sweep(10.0)

    assert ejected(cluster) == [5]


def test_success_rate_needs_five_endpoints_in_rotation() -> None:
    """One that fails its health checks is not counted, even if panic sends calls there."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(NEVER))
    for host in cluster[:4]:
        answer(detector, host, 100)
    answer(detector, cluster[4], 0)
    cluster[0].is_healthy = False

    assert not detector.sweep(10.0)


def test_success_rate_is_of_one_interval() -> None:
    """Requests of two intervals don't add up, not even those of endpoints out of rotation."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(NEVER))
    cluster[0].is_healthy = False
    for host in cluster[:4]:
        answer(detector, host, 100, requests=60)
    answer(detector, cluster[4], 0, requests=60)
    detector.sweep(10.0)
    cluster[0].is_healthy = True
    for host in cluster[:4]:
        answer(detector, host, 100, requests=60, now=15.0)
    answer(detector, cluster[4], 0, requests=60, now=15.0)

    assert not detector.sweep(20.0)


def test_failures_of_an_earlier_interval_are_forgotten() -> None:
    """They don't lower the rate of the next one."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(NEVER))
    answer(detector, cluster[4], 0, requests=50)
    detector.sweep(10.0)
    for host in cluster:
        answer(detector, host, 100, now=15.0)

    assert not detector.sweep(20.0)


@pytest.mark.parametrize(("percent", "out"), [(9, []), (10, [0]), (19, [0]), (20, [0, 1])])
def test_success_rate_ejection_is_capped(percent: int, out: list[int]) -> None:
    """By the same share as the other kind; endpoints go in their order."""
    cluster = hosts(10)
    settings = OutlierDetection(NEVER, max_ejection_percent=percent)
    detector = detector_of(cluster, settings)
    for host in cluster[:2]:
        answer(detector, host, 0)
    for host in cluster[2:]:
        answer(detector, host, 100)

    assert detector.sweep(10.0) == bool(out)
    assert ejected(cluster) == out


def test_sweep_returns_endpoints_before_it_compares_success_rates() -> None:
    """A returned one counts as in rotation, and leaves its share to the others."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(200, max_ejection_percent=20))
    fail(detector, cluster[0], 0.0, times=200)
    detector.sweep(20.0)
    for host in cluster[:4]:
        answer(detector, host, 100, now=25.0)
    answer(detector, cluster[4], 0, now=25.0)

    assert detector.sweep(30.0)
    assert ejected(cluster) == [4]


def test_sweep_compares_success_rates_before_it_lowers_multipliers() -> None:
    """An endpoint that it ejects didn't stay in rotation: its multiplier is not lowered."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(200))
    fail(detector, cluster[4], 0.0, times=200)
    detector.sweep(30.0)
    for host in cluster[:4]:
        answer(detector, host, 100, now=35.0)
    answer(detector, cluster[4], 0, now=35.0)
    detector.sweep(40.0)
    assert ejected(cluster) == [4]

    assert lasts(detector, cluster[4], 40.0, 60)
    fail(detector, cluster[4], 100.0, times=200)
    assert lasts(detector, cluster[4], 100.0, 90)
