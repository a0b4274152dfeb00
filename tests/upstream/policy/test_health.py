"""Active health checks of one endpoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.resources.cluster import Endpoint
from vsr.resources.reliability import HealthCheck
from vsr.upstream.policy.health import CheckResult, HealthState, check_result
from vsr.upstream.policy.host import Host

SUCCESS = CheckResult.SUCCESS
WRONG_STATUS = CheckResult.WRONG_STATUS
NETWORK_ERROR = CheckResult.NETWORK_ERROR


def state(*results: CheckResult, healthy_threshold: int = 1) -> HealthState:
    """Return the state of an endpoint after those checks, one a second."""
    settings = HealthCheck("/health", healthy_threshold=healthy_threshold)
    checked = HealthState(settings, Host(Endpoint("a", "127.0.0.1", 8000)))
    for second, result in enumerate(results):
        checked.record(result, float(second))
    return checked


@pytest.mark.parametrize(
    ("status", "result"),
    [(200, SUCCESS), (201, WRONG_STATUS), (204, WRONG_STATUS), (503, WRONG_STATUS)],
)
def test_only_status_200_passes(status: int, result: CheckResult) -> None:
    """Any other status is wrong, those of success too."""
    assert check_result(status) is result


def test_check_without_response_is_a_network_error() -> None:
    """There is no status to go by."""
    assert check_result(None) is NETWORK_ERROR


def test_endpoint_starts_unhealthy_and_pending() -> None:
    """Nothing is known of it; a cluster that becomes checked doesn't trust it meanwhile."""
    checked = state()

    assert checked.is_pending
    assert not checked.host.is_healthy


@pytest.mark.parametrize("result", CheckResult)
def test_first_check_ends_pending(result: CheckResult) -> None:
    """Warming waits for its end, not for a pass."""
    assert not state(result).is_pending


def test_first_pass_makes_healthy_at_once() -> None:
    """The threshold doesn't apply to the first check."""
    checked = state(healthy_threshold=3)

    assert checked.record(SUCCESS, 0.0)
    assert checked.host.is_healthy


@pytest.mark.parametrize("result", [WRONG_STATUS, NETWORK_ERROR])
def test_first_failure_decides_at_once(result: CheckResult) -> None:
    """It stays unhealthy, and from then on the threshold of passes applies."""
    checked = state(healthy_threshold=2)

    assert not checked.record(result, 0.0)
    assert not checked.host.is_healthy
    assert not checked.record(SUCCESS, 1.0)
    assert checked.record(SUCCESS, 2.0)


def test_wrong_status_makes_unhealthy_at_once() -> None:
    """Whatever the threshold."""
    checked = state(SUCCESS)

    assert checked.record(WRONG_STATUS, 1.0)
    assert not checked.host.is_healthy


def test_network_errors_make_unhealthy_at_the_threshold() -> None:
    """The third one in a row."""
    checked = state(SUCCESS)

    changes = [checked.record(NETWORK_ERROR, 1.0) for _ in range(4)]

    assert changes == [False, False, True, False]
    assert not checked.host.is_healthy


def test_pass_ends_the_row_of_network_errors() -> None:
    """Two, a pass and two more are no row of three."""
    checked = state(SUCCESS, NETWORK_ERROR, NETWORK_ERROR, SUCCESS, NETWORK_ERROR, NETWORK_ERROR)

    assert checked.host.is_healthy


@pytest.mark.parametrize("result", [WRONG_STATUS, NETWORK_ERROR])
def test_unhealthy_endpoint_does_not_accumulate(result: CheckResult) -> None:
    """Failures while unhealthy don't count once it is healthy again."""
    checked = state(result, result, result, SUCCESS, NETWORK_ERROR, NETWORK_ERROR)

    assert checked.host.is_healthy


def test_one_pass_makes_healthy_again() -> None:
    """By default."""
    checked = state(SUCCESS, WRONG_STATUS)

    assert checked.record(SUCCESS, 2.0)
    assert checked.host.is_healthy


def test_passes_make_healthy_at_the_threshold() -> None:
    """In a row: a failure between them begins it anew."""
    checked = state(WRONG_STATUS, SUCCESS, SUCCESS, NETWORK_ERROR, healthy_threshold=3)

    changes = [checked.record(SUCCESS, 4.0) for _ in range(4)]

    assert changes == [False, False, True, False]
    assert checked.host.is_healthy


@given(
    results=st.lists(st.sampled_from(CheckResult)),
    unhealthy_threshold=st.integers(1, 4),
    healthy_threshold=st.integers(1, 4),
)
def test_health_follows_from_the_last_results(
    results: list[CheckResult], unhealthy_threshold: int, healthy_threshold: int
) -> None:
    """Only the row of results at the end of a history changes an endpoint, and it says so."""
    settings = HealthCheck(
        "/health", unhealthy_threshold=unhealthy_threshold, healthy_threshold=healthy_threshold
    )
    checked = HealthState(settings, Host(Endpoint("a", "127.0.0.1", 8000)))

    for last, result in enumerate(results):
        was_healthy = checked.host.is_healthy
        history = results[: last + 1]
        if last == 0:
            is_healthy = result is SUCCESS
        elif was_healthy:
            errors = [NETWORK_ERROR] * unhealthy_threshold
            is_healthy = result is not WRONG_STATUS and history[-unhealthy_threshold:] != errors
        else:
            is_healthy = history[-healthy_threshold:] == [SUCCESS] * healthy_threshold

        has_changed = checked.record(result, float(last))

        assert checked.host.is_healthy == is_healthy
        assert has_changed == (is_healthy != was_healthy)


@pytest.mark.parametrize("has_traffic", [True, False])
def test_first_check_is_due_immediately(has_traffic: bool) -> None:  # noqa: FBT001  # a parameter
    """With or without traffic."""
    assert state().next_at(7.0, has_traffic=has_traffic) == 7.0


def test_next_check_follows_the_end_of_the_last() -> None:
    """By the interval, however late somebody asks."""
    checked = state()
    checked.record(SUCCESS, 100.0)
    checked.record(NETWORK_ERROR, 112.0)

    assert checked.next_at(115.0, has_traffic=True) == 122.0


def test_checks_are_rare_before_any_traffic() -> None:
    """A minute apart while the cluster has never carried a request."""
    checked = state()
    checked.record(SUCCESS, 100.0)

    assert checked.next_at(100.0, has_traffic=False) == 160.0
