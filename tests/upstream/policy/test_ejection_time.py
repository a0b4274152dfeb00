"""How long outliers are ejected: longer each time, until they stay in rotation."""

import pytest

from tests.upstream.policy.outlier_cluster import detector_of, ejected, fail, hosts, lasts
from vsr.resources.reliability import OutlierDetection
from vsr.upstream.policy.outlier import OutlierDetector


def test_ejection_lasts_the_base_time() -> None:
    """Thirty seconds by default; the sweep that ends it says so."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 1.0)

    assert not detector.sweep(30.9)
    assert ejected(cluster) == [0]
    assert detector.sweep(31.0)
    assert ejected(cluster) == []


def test_each_ejection_lasts_longer_up_to_the_maximum() -> None:
    """By the base time, for an endpoint that never stays in for an interval."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1, base_ejection_s=30, max_ejection_s=100))
    now = 0.0

    for duration_s in (30, 60, 90, 100, 100):
        fail(detector, cluster[0], now)

        assert lasts(detector, cluster[0], now, duration_s)
        now += duration_s


def test_base_time_above_the_maximum_counts() -> None:
    """The longest ejection is never shorter than the first."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1, base_ejection_s=400, max_ejection_s=300))

    for now in (0.0, 400.0):
        fail(detector, cluster[0], now)

        assert lasts(detector, cluster[0], now, 400)


@pytest.mark.parametrize(("calm", "duration_s"), [(1, 300), (2, 300), (3, 200), (4, 100), (9, 100)])
def test_multiplier_stops_one_above_the_maximum(calm: int, duration_s: float) -> None:
    """With 100 s and at most 300 s it reaches 4; each calm interval takes one, down to 0."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1, base_ejection_s=100))
    now = 0.0
    for _ in range(7):
        fail(detector, cluster[0], now)
        now += 300
        detector.sweep(now)
    for _ in range(calm):
        now = detector.next_sweep_at
        detector.sweep(now)

    fail(detector, cluster[0], now)

    assert lasts(detector, cluster[0], now, duration_s)


def test_multiplier_stays_while_out() -> None:
    """Neither the sweeps during an ejection nor the one that ends it take from it."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 0.0)
    for now in (10.0, 20.0, 30.0):
        detector.sweep(now)

    fail(detector, cluster[0], 30.0)

    assert lasts(detector, cluster[0], 30.0, 60)


@pytest.mark.parametrize(("sweep_at", "duration_s"), [(39.9, 60), (40.0, 30)])
def test_multiplier_falls_one_interval_after_the_return(sweep_at: float, duration_s: float) -> None:
    """Not by an earlier sweep."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 0.0)
    detector.sweep(30.0)
    detector.sweep(sweep_at)

    fail(detector, cluster[0], sweep_at)

    assert lasts(detector, cluster[0], sweep_at, duration_s)


def test_multiplier_stays_while_unhealthy() -> None:
    """It falls for endpoints in rotation."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 0.0)
    detector.sweep(30.0)
    cluster[0].is_healthy = False
    detector.sweep(40.0)
    cluster[0].is_healthy = True

    fail(detector, cluster[0], 40.0)

    assert lasts(detector, cluster[0], 40.0, 60)


def test_multiplier_falls_once_an_interval_after_any_return() -> None:
    """Sums of binary fractions must not make the sweep that is due come too early."""
    for tenth in range(200):
        start = tenth / 10
        cluster = hosts(2)
        settings = OutlierDetection(1, base_ejection_s=0.1, interval_s=0.1)
        detector = OutlierDetector(settings, cluster, start)
        fail(detector, cluster[0], start)
        detector.sweep(detector.next_sweep_at)
        detector.sweep(detector.next_sweep_at)

        now = detector.next_sweep_at
        fail(detector, cluster[0], now)
        detector.sweep(now + 0.1)

        assert ejected(cluster) == []


def test_failures_while_ejected_change_nothing() -> None:
    """Not even as many as the threshold: the ejection isn't prolonged."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(3, max_ejection_percent=100))
    fail(detector, cluster[0], 0.0, times=3)

    assert not any(fail(detector, cluster[0], 20.0, times=3))
    assert len(detector.events) == 1
    assert lasts(detector, cluster[0], 0.0, 30)


def test_passing_check_counts_as_a_return_for_the_multiplier() -> None:
    """The interval in rotation begins with it."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 0.0)
    detector.passed_check(cluster[0], 5.0)
    detector.sweep(10.0)

    fail(detector, cluster[0], 11.0)

    assert lasts(detector, cluster[0], 11.0, 60)
