"""Outlier ejection: by failures in a row, up to a share of the cluster, and the way back."""

import pytest

from tests.upstream.policy.outlier_cluster import answer, detector_of, ejected, fail, hosts
from vsr.resources.reliability import OutlierDetection
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage
from vsr.upstream.policy.outlier import (
    Ejection,
    EjectionReason,
    OutlierDetector,
    observed_status,
)


@pytest.mark.parametrize("status", [200, 404, 429, 500, 503])
def test_response_is_observed_as_its_status(status: int) -> None:
    """Good ones too: they end a row of failures."""
    assert observed_status(AttemptOutcome(status=status)) == status


@pytest.mark.parametrize(
    "failure", [FailureKind.CONNECT_FAILURE, FailureKind.REFUSED_STREAM, FailureKind.RESET]
)
def test_broken_attempt_is_observed_as_503(failure: FailureKind) -> None:
    """Of its head or of its body."""
    assert observed_status(AttemptOutcome(failure=failure)) == 503


@pytest.mark.parametrize(
    "stage", [TimeoutStage.PER_TRY, TimeoutStage.FIRST_BYTE, TimeoutStage.TOTAL]
)
def test_timeout_is_observed_as_504(stage: TimeoutStage) -> None:
    """The total one too."""
    assert observed_status(AttemptOutcome(failure=FailureKind.TIMEOUT, stage=stage)) == 504


def test_idle_timeout_is_not_observed() -> None:
    """A model may think between two tokens."""
    outcome = AttemptOutcome(failure=FailureKind.TIMEOUT, stage=TimeoutStage.IDLE)

    assert observed_status(outcome) is None


@pytest.mark.parametrize(
    "failure", [FailureKind.CANCELLED, FailureKind.OVERFLOW, FailureKind.NO_HEALTHY_UPSTREAM]
)
def test_failure_that_is_not_the_endpoints_is_not_observed(failure: FailureKind) -> None:
    """A client that leaves and our own limits say nothing of the endpoint."""
    assert observed_status(AttemptOutcome(failure=failure)) is None


def test_threshold_of_failures_in_a_row_ejects() -> None:
    """The last of them says so, and why is noted once."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(3))

    changes = fail(detector, cluster[0], 1.0, times=3)

    assert changes == [False, False, True]
    assert ejected(cluster) == [0]
    assert detector.events == [Ejection(cluster[0], EjectionReason.CONSECUTIVE_5XX)]


def test_threshold_of_one_ejects_by_the_first_failure() -> None:
    """The smallest threshold there is."""
    cluster = hosts(2)

    assert fail(detector_of(cluster, OutlierDetection(1)), cluster[0], 1.0) == [True]


@pytest.mark.parametrize(("status", "is_failure"), [(200, False), (499, False), (500, True)])
def test_statuses_from_500_are_failures(status: int, is_failure: bool) -> None:  # noqa: FBT001  # a parameter
    """Those below are successes, 429 among them."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))

    assert detector.record(cluster[0], status, 1.0) == is_failure


def test_success_ends_the_row() -> None:
    """Two failures, a success and two more are no row of three."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(3))

    fail(detector, cluster[0], 1.0, times=2)
    detector.record(cluster[0], 429, 1.0)
    fail(detector, cluster[0], 1.0, times=2)

    assert ejected(cluster) == []


def test_endpoints_are_counted_apart() -> None:
    """Another endpoint's failures and successes don't matter."""
    cluster = hosts(3)
    detector = detector_of(cluster, OutlierDetection(2))

    fail(detector, cluster[0], 1.0)
    fail(detector, cluster[1], 1.0)
    detector.record(cluster[1], 200, 1.0)
    fail(detector, cluster[0], 1.0)

    assert ejected(cluster) == [0]


def test_refused_ejection_begins_the_row_anew() -> None:
    """The counter is set to 0 even if the cap keeps the endpoint in."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(3))
    fail(detector, cluster[1], 1.0, times=3)
    fail(detector, cluster[0], 1.0, times=3)
    assert ejected(cluster) == [1]
    detector.passed_check(cluster[1], 2.0)

    changes = fail(detector, cluster[0], 2.0, times=3)

    assert changes == [False, False, True]


def test_endpoint_out_of_rotation_is_not_ejected() -> None:
    """One that fails its health checks may still get calls, in panic."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(2))
    cluster[0].is_healthy = False

    assert not any(fail(detector, cluster[0], 1.0, times=5))
    assert ejected(cluster) == []


def test_counter_that_passed_the_threshold_does_not_eject() -> None:
    """It must equal it: only a success lets the endpoint be counted from 0 again."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(2))
    cluster[0].is_healthy = False
    fail(detector, cluster[0], 1.0, times=2)
    cluster[0].is_healthy = True

    assert not any(fail(detector, cluster[0], 2.0, times=5))
    detector.record(cluster[0], 200, 3.0)
    assert fail(detector, cluster[0], 3.0, times=2) == [False, True]


@pytest.mark.parametrize(
    ("count", "percent", "allowed"),
    [
        (2, 50, 1),
        (2, 49, 0),
        (2, 100, 2),
        (3, 33, 0),
        (3, 50, 1),
        (3, 66, 1),
        (3, 67, 2),
        (10, 50, 5),
        (10, 59, 5),
        (10, 9, 0),
        (1, 100, 1),
        (4, 0, 0),
    ],
)
def test_share_of_ejected_endpoints_is_capped(count: int, percent: int, allowed: int) -> None:
    """Without rounding, and without a first one for free."""
    cluster = hosts(count)
    detector = detector_of(cluster, OutlierDetection(1, max_ejection_percent=percent))

    changes = [fail(detector, host, 1.0)[0] for host in cluster]

    assert changes == [True] * allowed + [False] * (count - allowed)
    assert ejected(cluster) == list(range(allowed))
    assert len(detector.events) == allowed


def test_cap_is_a_share_of_all_endpoints() -> None:
    """Those that are unhealthy count as well, but not as ejected."""
    cluster = hosts(4)
    detector = detector_of(cluster, OutlierDetection(1))
    cluster[2].is_healthy = False
    cluster[3].is_healthy = False

    fail(detector, cluster[0], 1.0)
    fail(detector, cluster[1], 1.0)

    assert ejected(cluster) == [0, 1]


def test_quarantined_endpoints_count_on_neither_side_of_the_cap() -> None:
    """Half of the others may be out, and one of them at least is left."""
    cluster = hosts(4)
    detector = detector_of(cluster, OutlierDetection(1, max_ejection_percent=50))
    fail(detector, cluster[3], 1.0)
    cluster[2].is_quarantined = cluster[3].is_quarantined = True

    first, second = fail(detector, cluster[0], 2.0), fail(detector, cluster[1], 2.0)

    assert (first, second) == ([True], [False])
    assert ejected(cluster) == [0, 3]


def test_return_begins_the_row_anew() -> None:
    """Failures during the ejection, in panic or late ones, don't count afterwards."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(3))
    fail(detector, cluster[0], 0.0, times=3)
    fail(detector, cluster[0], 1.0, times=2)
    detector.sweep(30.0)

    assert fail(detector, cluster[0], 31.0, times=3) == [False, False, True]


def test_sweeps_are_due_every_interval() -> None:
    """Counted from the last one, or from the beginning."""
    detector = OutlierDetector(OutlierDetection(1), hosts(2), 100.0)
    assert detector.next_sweep_at == 110.0

    detector.sweep(113.0)

    assert detector.next_sweep_at == 123.0


def test_sweep_of_calm_endpoints_changes_nothing() -> None:
    """And says so."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(1))
    for host in cluster:
        answer(detector, host, 100)

    assert not detector.sweep(10.0)
    assert detector.events == []


def test_return_of_an_unhealthy_endpoint_does_not_change_rotation() -> None:
    """Its ejection ends even so."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 0.0)
    cluster[0].is_healthy = False

    assert not detector.sweep(30.0)
    assert ejected(cluster) == []


def test_one_healthy_endpoint_among_the_returned_changes_rotation() -> None:
    """Whatever its place among them."""
    for unhealthy in range(2):
        cluster = hosts(4)
        detector = detector_of(cluster, OutlierDetection(1))
        for host in cluster[:2]:
            fail(detector, host, 0.0)
        cluster[unhealthy].is_healthy = False

        assert detector.sweep(30.0)


def test_sweep_tells_that_it_returned_an_endpoint_and_ejected_it_again() -> None:
    """Rotation ends as it began, but the ejection is there to be counted."""
    cluster = hosts(5)
    detector = detector_of(cluster, OutlierDetection(200))
    fail(detector, cluster[4], 0.0, times=200)
    detector.sweep(20.0)
    detector.events.clear()
    for host in cluster[:4]:
        answer(detector, host, 100, now=25.0)
    answer(detector, cluster[4], 0, now=25.0)

    assert detector.sweep(30.0)
    assert ejected(cluster) == [4]
    assert detector.events == [Ejection(cluster[4], EjectionReason.SUCCESS_RATE)]


def test_passing_check_returns_an_endpoint_at_once() -> None:
    """Long before its time, and it is counted from 0."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(3))
    fail(detector, cluster[0], 0.0, times=3)
    fail(detector, cluster[0], 1.0, times=2)

    assert detector.passed_check(cluster[0], 2.0)
    assert ejected(cluster) == []
    assert fail(detector, cluster[0], 3.0, times=3) == [False, False, True]


def test_passing_check_of_an_endpoint_that_is_in_changes_nothing() -> None:
    """Its failures in a row go on."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(2))
    fail(detector, cluster[0], 0.0)

    assert not detector.passed_check(cluster[0], 1.0)
    assert fail(detector, cluster[0], 2.0) == [True]


def test_passing_check_of_an_unhealthy_endpoint_does_not_change_rotation() -> None:
    """Its ejection ends even so."""
    cluster = hosts(2)
    detector = detector_of(cluster, OutlierDetection(1))
    fail(detector, cluster[0], 0.0)
    cluster[0].is_healthy = False

    assert not detector.passed_check(cluster[0], 1.0)
    assert ejected(cluster) == []
