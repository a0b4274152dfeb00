"""Circuit breaker of one backend as a candidate of fallbacks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.resources.reliability import CandidateBreaker
from vsr.upstream.policy.candidate_breaker import CandidateState, has_failed
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind

LISTED = frozenset({429, 502, 503, 504})


def state_of(
    *, failures: int = 3, cooldown_s: float = 30.0, probes: int = 1, failed_at: float | None = None
) -> CandidateState:
    """Return a breaker with these settings; open since `failed_at` if that is given."""
    state = CandidateState(CandidateBreaker(failures, cooldown_s, probes))
    if failed_at is not None:
        fail(state, failures, failed_at)
    return state


def fail(state: CandidateState, count: int, now: float) -> None:
    """Let that many calls fail."""
    for _ in range(count):
        state.record(failed=True, now=now)


def test_backend_without_failures_may_be_tried() -> None:
    """From the start, and by any number of calls at once."""
    state = state_of()

    for _ in range(20):
        assert state.may_try(0.0)
        state.begin(0.0)


def test_breaker_opens_at_consecutive_failures() -> None:
    """Not one failure earlier."""
    state = state_of(failures=3)
    fail(state, 2, now=100.0)
    assert state.may_try(100.0)

    state.record(failed=True, now=100.0)

    assert not state.may_try(100.0)


def test_default_settings_open_for_thirty_seconds_at_the_third_failure() -> None:
    """The numbers of the reference."""
    state = CandidateState(CandidateBreaker())
    fail(state, 2, now=100.0)
    assert state.may_try(100.0)
    fail(state, 1, now=100.0)

    assert not state.may_try(129.9)
    assert state.may_try(130.0)


def test_success_between_failures_starts_the_count_anew() -> None:
    """Only failures in a row open it."""
    state = state_of(failures=3)
    fail(state, 2, now=1.0)
    state.record(failed=False, now=2.0)
    fail(state, 2, now=3.0)
    assert state.may_try(3.0)

    fail(state, 1, now=3.0)

    assert not state.may_try(3.0)


def test_open_breaker_lets_nothing_through_before_its_cooldown() -> None:
    """From the instant of the cooldown's end on it does."""
    state = state_of(cooldown_s=30.0, failed_at=100.0)

    assert not state.may_try(129.9)
    assert state.may_try(130.0)


def test_cooldown_counts_from_the_last_failure() -> None:
    """The call that a request begins with is never held back: it may fail while it is open."""
    state = state_of(cooldown_s=30.0, failed_at=100.0)

    state.record(failed=True, now=120.0)

    assert not state.may_try(149.9)
    assert state.may_try(150.0)


@pytest.mark.parametrize("probes", [1, 3])
def test_half_open_breaker_lets_its_probes_through(probes: int) -> None:
    """As many as `half_open_probes` at a time."""
    state = state_of(probes=probes, failed_at=100.0)
    for _ in range(probes):
        assert state.may_try(130.0)
        state.begin(130.0)

    assert not state.may_try(130.0)


def test_asking_takes_no_probe() -> None:
    """A candidate may turn out to be impossible to prepare."""
    state = state_of(failed_at=100.0)

    assert [state.may_try(130.0) for _ in range(5)] == [True] * 5


def test_success_of_a_probe_closes() -> None:
    """Any number of calls may be made again."""
    state = state_of(failed_at=100.0)
    state.begin(130.0)

    state.record(failed=False, now=131.0)

    for _ in range(5):
        assert state.may_try(131.0)
        state.begin(131.0)


def test_success_of_a_probe_resets_the_count() -> None:
    """It takes as many failures as before to open the breaker again."""
    state = state_of(failures=3, failed_at=100.0)
    state.begin(130.0)
    state.record(failed=False, now=131.0)
    fail(state, 2, now=132.0)
    assert state.may_try(132.0)

    fail(state, 1, now=132.0)

    assert not state.may_try(132.0)


def test_failure_of_a_probe_opens_anew() -> None:
    """One is enough: the count is still there. The cooldown starts again."""
    state = state_of(cooldown_s=30.0, failed_at=100.0)
    state.begin(130.0)

    state.record(failed=True, now=135.0)

    assert not state.may_try(164.9)
    assert state.may_try(165.0)


def test_failure_of_a_probe_ends_the_other_probes() -> None:
    """After the next cooldown all may be made again, though one never had an outcome."""
    state = state_of(cooldown_s=30.0, probes=2, failed_at=100.0)
    state.begin(130.0)
    state.begin(150.0)
    state.record(failed=True, now=155.0)
    for _ in range(2):
        assert state.may_try(185.0)
        state.begin(185.0)

    assert not state.may_try(185.0)


def test_lost_probe_is_replaced_after_a_cooldown() -> None:
    """A call that ends without an outcome that counts must not hold the backend back for ever."""
    state = state_of(cooldown_s=30.0, failed_at=100.0)
    state.begin(140.0)
    assert not state.may_try(169.9)

    assert state.may_try(170.0)
    state.begin(170.0)

    assert not state.may_try(199.9)
    assert state.may_try(200.0)


def test_each_lost_probe_has_its_own_cooldown() -> None:
    """The second is still waited for when the first is given up."""
    state = state_of(cooldown_s=30.0, probes=2, failed_at=100.0)
    state.begin(130.0)
    state.begin(150.0)
    assert state.may_try(160.0)

    state.begin(160.0)

    assert not state.may_try(179.9)
    assert state.may_try(180.0)


def test_lost_probes_are_forgotten() -> None:
    """A backend that is asked for months without an outcome that counts takes no more memory."""
    state = state_of(cooldown_s=30.0, probes=2, failed_at=0.0)

    for minute in range(1, 100):
        state.begin(60.0 * minute)

    assert len(state._probes) == 1


def test_calls_through_a_closed_breaker_are_not_kept() -> None:
    """There may be thousands of them in one cooldown."""
    state = state_of()

    for _ in range(100):
        state.begin(100.0)

    assert not state._probes


def test_success_closes_an_open_breaker() -> None:
    """The call that a request begins with is never held back, and its success counts."""
    state = state_of(failed_at=100.0)

    state.record(failed=False, now=101.0)

    assert state.may_try(101.0)


def test_call_before_the_breaker_opened_is_no_probe() -> None:
    """Only calls that begin while it is half open are."""
    state = state_of(failures=1, cooldown_s=1.0)
    state.begin(100.0)
    state.record(failed=True, now=100.0)

    assert state.may_try(101.0)


def test_zero_consecutive_failures_never_open() -> None:
    """As elsewhere, 0 failures mean that nobody asks."""
    state = state_of(failures=0)
    assert state.may_try(0.0)

    fail(state, 50, now=1.0)

    assert state.may_try(1.0)


@given(
    failures=st.integers(1, 4),
    probes=st.integers(1, 3),
    steps=st.lists(
        st.tuples(st.floats(0.0, 20.0), st.sampled_from(["try", "fail", "succeed"])), max_size=40
    ),
)
@settings(deadline=None)
def test_breaker_never_stays_shut(
    failures: int, probes: int, steps: list[tuple[float, str]]
) -> None:
    """Whatever happened: two cooldowns without a call later the backend may be tried.

    And it is shut only while failures in a row are at least as many as it takes.
    """
    state = state_of(failures=failures, cooldown_s=10.0, probes=probes)
    now, in_a_row = 0.0, 0
    for delay, step in steps:
        now += delay
        if step == "try":
            if state.may_try(now):
                state.begin(now)
        else:
            in_a_row = in_a_row + 1 if step == "fail" else 0
            state.record(failed=step == "fail", now=now)
        assert state.may_try(now) or in_a_row >= failures

    assert state.may_try(now + 20.0)


@pytest.mark.parametrize("status", [200, 204, 299])
def test_success_is_no_failure(status: int) -> None:
    """Any 2xx."""
    assert has_failed(AttemptOutcome(status=status), LISTED) is False


def test_listed_success_is_no_failure() -> None:
    """A 2xx never goes on to another model, whatever the list says."""
    assert has_failed(AttemptOutcome(status=200), frozenset({200})) is False


@pytest.mark.parametrize("status", [500, 501, 502, 599])
def test_server_error_is_a_failure(status: int) -> None:
    """Whether or not it is listed."""
    assert has_failed(AttemptOutcome(status=status), LISTED) is True


@pytest.mark.parametrize("status", [400, 404, 499])
def test_unlisted_client_error_does_not_count(status: int) -> None:
    """It is neither failure nor success: it says nothing about the backend."""
    assert has_failed(AttemptOutcome(status=status), LISTED) is None


@pytest.mark.parametrize("status", [400, 429, 499])
def test_listed_client_error_is_a_failure(status: int) -> None:
    """Whoever lists it holds it to be the backend's."""
    assert has_failed(AttemptOutcome(status=status), frozenset({status})) is True


@pytest.mark.parametrize("status", [101, 199, 300, 304, 399])
def test_other_status_is_a_failure(status: int) -> None:
    """Only 2xx is a success, and only 4xx is exempt."""
    assert has_failed(AttemptOutcome(status=status), LISTED) is True


@pytest.mark.parametrize(
    "failure", [kind for kind in FailureKind if kind is not FailureKind.CANCELLED]
)
def test_call_without_a_response_is_a_failure(failure: FailureKind) -> None:
    """Whatever kept the response away: its local reply is a 503 or a 504."""
    assert has_failed(AttemptOutcome(failure=failure), frozenset()) is True


def test_cancelled_call_does_not_count() -> None:
    """The client went away; the backend might have answered."""
    assert has_failed(AttemptOutcome(failure=FailureKind.CANCELLED), LISTED) is None
