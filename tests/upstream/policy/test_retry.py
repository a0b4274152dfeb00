"""Whether, and after which wait, an attempt is repeated."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.resources.reliability import DEFAULT_RETRY_ON, RetryEvidence, RetryOn, RetryPolicy
from vsr.routing.outcome import TransportFact
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage
from vsr.upstream.policy.retry import RetryState, is_immediate, wants_retry

ALL = frozenset(RetryOn)
BROAD = frozenset({RetryOn.FIVE_XX, RetryOn.GATEWAY_ERROR, RetryOn.RESET})

CONNECT_FAILURE = AttemptOutcome(failure=FailureKind.CONNECT_FAILURE)
REFUSED_STREAM = AttemptOutcome(
    failure=FailureKind.REFUSED_STREAM, fact=TransportFact.REQUEST_WRITTEN
)
EARLY_FACTS = list(TransportFact)[:3]
LATE_FACTS = list(TransportFact)[3:]
"""From the written request on."""

OUTCOMES = st.builds(
    AttemptOutcome,
    status=st.sampled_from([200, 404, 409, 429, 500, 502, 503, 504, 599]),
    fact=st.just(TransportFact.HEAD_RECEIVED),
    is_ratelimited=st.booleans(),
    retry_after=st.none() | st.sampled_from([b"0", b"1", b"2", b"30", b"soon"]),
) | st.builds(
    AttemptOutcome,
    failure=st.sampled_from(FailureKind),
    stage=st.none() | st.sampled_from(TimeoutStage),
    fact=st.sampled_from(TransportFact),
)

POLICIES = st.builds(
    RetryPolicy,
    count=st.integers(0, 5),
    on=st.frozensets(st.sampled_from(RetryOn)),
    status_codes=st.frozensets(st.sampled_from([200, 404, 429, 503])),
    back_off_base_s=st.integers(1, 3000).map(lambda milliseconds: milliseconds / 1000),
    back_off_max_s=st.integers(1, 3000).map(lambda milliseconds: milliseconds / 1000),
    retry_after_max_s=st.none() | st.sampled_from([0.5, 1.0, 2.0, 60.0]),
    evidence=st.sampled_from(RetryEvidence),
)


def seeded(seed: int) -> random.Random:
    """Return a source that gives the same numbers in every run."""
    return random.Random(seed)  # noqa: S311  # reproducible waits, not a secret


def answered(
    status: int, *, retry_after: bytes | None = None, is_ratelimited: bool = False
) -> AttemptOutcome:
    """Return the outcome of an attempt that got a response."""
    fact = TransportFact.HEAD_RECEIVED
    return AttemptOutcome(status, None, None, fact, is_ratelimited, retry_after)


def reset(fact: TransportFact) -> AttemptOutcome:
    """Return the outcome of an attempt that broke off behind that fact."""
    return AttemptOutcome(failure=FailureKind.RESET, fact=fact)


def conditions(
    outcome: AttemptOutcome,
    *,
    listed: frozenset[int] = frozenset(),
    evidence: RetryEvidence = RetryEvidence.ANY,
) -> frozenset[RetryOn]:
    """Return the conditions each of which alone repeats such an attempt; `listed`: statuses."""
    return frozenset(
        condition
        for condition in RetryOn
        if wants_retry(
            RetryPolicy(on=frozenset({condition}), status_codes=listed, evidence=evidence), outcome
        )
    )


def waits(
    policy: RetryPolicy, *outcomes: AttemptOutcome, deadline_at: float = math.inf, seed: int = 7
) -> list[float | None]:
    """Return the waits that one call gets for its attempts' outcomes, one after the other."""
    state = RetryState(policy, seeded(seed))
    return [state.next_wait(outcome, now=100.0, deadline_at=deadline_at) for outcome in outcomes]


def longest_waits_ms(policy: RetryPolicy, *outcomes: AttemptOutcome) -> list[int]:
    """Return the longest of each wait over many calls, in milliseconds; none may be refused."""
    longest = [0.0] * len(outcomes)
    for seed in range(3000):
        for place, wait in enumerate(waits(policy, *outcomes, seed=seed)):
            assert wait is not None
            longest[place] = max(longest[place], wait)
    return [round(wait * 1000) for wait in longest]


def test_connect_failure_row() -> None:
    """Any broad condition, its own, and `reset-before-request`; its local reply's status isn't."""
    own = {RetryOn.CONNECT_FAILURE, RetryOn.RESET_BEFORE_REQUEST}

    assert conditions(CONNECT_FAILURE, listed=frozenset({503})) == BROAD | own


def test_refused_stream_row() -> None:
    """Any broad condition and its own, although the request was written; no listed status."""
    own = {RetryOn.REFUSED_STREAM}

    assert conditions(REFUSED_STREAM, listed=frozenset({503})) == BROAD | own


@pytest.mark.parametrize("fact", TransportFact)
def test_reset_row(fact: TransportFact) -> None:
    """`reset-before-request` counts only while the request was not fully written."""
    own = {RetryOn.RESET_BEFORE_REQUEST} if fact in EARLY_FACTS else set()

    assert conditions(reset(fact)) == BROAD | own


@pytest.mark.parametrize("stage", [TimeoutStage.PER_TRY, TimeoutStage.FIRST_BYTE])
@pytest.mark.parametrize("fact", TransportFact)
def test_timeout_of_attempt_row(stage: TimeoutStage, fact: TransportFact) -> None:
    """The broad conditions, however far the attempt got."""
    outcome = AttemptOutcome(failure=FailureKind.TIMEOUT, stage=stage, fact=fact)

    assert conditions(outcome) == BROAD


@pytest.mark.parametrize("stage", [TimeoutStage.TOTAL, TimeoutStage.IDLE])
def test_timeout_of_call_row(stage: TimeoutStage) -> None:
    """Never: there is no time left, or the caller has its response."""
    assert conditions(AttemptOutcome(failure=FailureKind.TIMEOUT, stage=stage)) == frozenset()


@pytest.mark.parametrize("failure", ["overflow", "no_healthy_upstream", "cancelled"])
def test_row_of_what_is_never_repeated(failure: str) -> None:
    """Our own limits, an empty cluster, and a call that nobody waits for."""
    assert conditions(AttemptOutcome(failure=FailureKind(failure))) == frozenset()


@pytest.mark.parametrize("status", [500, 501, 505, 529, 599])
def test_server_error_row(status: int) -> None:
    """`5xx` alone means all of 500 to 599; the other broad conditions don't."""
    assert conditions(answered(status)) == {RetryOn.FIVE_XX}


@pytest.mark.parametrize("status", [502, 503, 504])
def test_gateway_error_row(status: int) -> None:
    """Three of the server errors are a gateway's as well."""
    assert conditions(answered(status)) == {RetryOn.FIVE_XX, RetryOn.GATEWAY_ERROR}


def test_conflict_row() -> None:
    """409 is the one status of `retriable-4xx`."""
    assert conditions(answered(409)) == {RetryOn.RETRIABLE_4XX}


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 404, 408, 410, 429, 499, 600])
def test_other_statuses_are_never_repeated(status: int) -> None:
    """A response that no condition names is the call's."""
    assert conditions(answered(status)) == frozenset()


@pytest.mark.parametrize("status", [200, 404, 429, 500])
def test_listed_status_row(status: int) -> None:
    """`retriable-status-codes` means the listed statuses, whichever they are, beside their rows."""
    own = conditions(answered(status), listed=frozenset({418}))
    listed = conditions(answered(status), listed=frozenset({418, status}))

    assert RetryOn.RETRIABLE_STATUS_CODES not in own
    assert listed == own | {RetryOn.RETRIABLE_STATUS_CODES}


@pytest.mark.parametrize("status", [200, 409, 429, 500, 503])
def test_ratelimited_row(status: int) -> None:
    """With `x-envoy-ratelimited` only `envoy-ratelimited` counts, whatever the status."""
    outcome = answered(status, is_ratelimited=True)

    assert conditions(outcome, listed=frozenset({status})) == {RetryOn.RATELIMITED}


@given(policy=POLICIES, outcome=OUTCOMES)
@settings(deadline=None)
def test_conditions_add_up(policy: RetryPolicy, outcome: AttemptOutcome) -> None:
    """Several conditions repeat exactly what any one of them repeats."""
    single = conditions(outcome, listed=policy.status_codes, evidence=policy.evidence)

    assert wants_retry(policy, outcome) == bool(policy.on & single)


def known_zero(outcome: AttemptOutcome) -> frozenset[RetryOn]:
    """Return the conditions left where the backend must surely have done nothing."""
    listed = frozenset() if outcome.status is None else frozenset({outcome.status})
    return conditions(outcome, listed=listed, evidence=RetryEvidence.KNOWN_ZERO)


@pytest.mark.parametrize("fact", EARLY_FACTS[:2])
@pytest.mark.parametrize("failure", FailureKind)
def test_known_zero_repeats_what_sent_nothing(failure: FailureKind, fact: TransportFact) -> None:
    """Its conditions still decide: the row stays as it is."""
    outcome = AttemptOutcome(failure=failure, stage=TimeoutStage.PER_TRY, fact=fact)

    assert known_zero(outcome) == conditions(outcome)


def test_known_zero_repeats_a_refused_stream() -> None:
    """The backend said that it did nothing, although the request was written."""
    assert known_zero(REFUSED_STREAM) == BROAD | {RetryOn.REFUSED_STREAM}


@pytest.mark.parametrize("fact", [EARLY_FACTS[2], *LATE_FACTS])
@pytest.mark.parametrize("failure", [FailureKind.RESET, FailureKind.TIMEOUT])
def test_known_zero_repeats_no_sent_byte(failure: FailureKind, fact: TransportFact) -> None:
    """The backend may have begun to work."""
    outcome = AttemptOutcome(failure=failure, stage=TimeoutStage.PER_TRY, fact=fact)

    assert known_zero(outcome) == frozenset()


@pytest.mark.parametrize("status", [200, 409, 500, 503])
@pytest.mark.parametrize("is_ratelimited", [True, False])
def test_known_zero_does_not_repeat_a_response(status: int, *, is_ratelimited: bool) -> None:
    """Who answers has done something."""
    assert known_zero(answered(status, is_ratelimited=is_ratelimited)) == frozenset()


@pytest.mark.parametrize("on", [{RetryOn.REFUSED_STREAM}, DEFAULT_RETRY_ON, ALL - BROAD])
def test_refused_stream_is_immediate_by_its_own_condition(on: frozenset[RetryOn]) -> None:
    """Also beside conditions that don't mean it."""
    assert is_immediate(RetryPolicy(on=frozenset(on)), REFUSED_STREAM)


@pytest.mark.parametrize("condition", sorted(BROAD))
def test_refused_stream_waits_under_a_broad_condition(condition: RetryOn) -> None:
    """The broad condition comes first, with or without the stream's own."""
    for on in ({condition}, {condition, RetryOn.REFUSED_STREAM}):
        assert not is_immediate(RetryPolicy(on=frozenset(on)), REFUSED_STREAM)


@pytest.mark.parametrize("outcome", [CONNECT_FAILURE, reset(EARLY_FACTS[0]), answered(503)])
def test_other_outcomes_are_not_immediate(outcome: AttemptOutcome) -> None:
    """Only a refused stream is, and not where nothing asks to repeat it."""
    assert not is_immediate(RetryPolicy(on=ALL - BROAD), outcome)
    assert not is_immediate(RetryPolicy(on=ALL - BROAD - DEFAULT_RETRY_ON), REFUSED_STREAM)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_retries_stop_at_the_count(count: int) -> None:
    """So many retries follow the first attempt, and not one more."""
    policy = RetryPolicy(count=count)

    given_out = waits(policy, *[CONNECT_FAILURE] * (count + 3))

    assert [wait is not None for wait in given_out] == [True] * count + [False] * 3


def test_retries_are_counted() -> None:
    """Waits given out count; refusals, for whichever reason, don't."""
    state = RetryState(RetryPolicy(count=2), seeded(7))
    counts = []
    for outcome, left_s in [(answered(503), 9), (CONNECT_FAILURE, 0), *[(CONNECT_FAILURE, 9)] * 3]:
        state.next_wait(outcome, now=100.0, deadline_at=100.0 + left_s)
        counts.append(state.retries)

    assert counts == [0, 0, 1, 2, 2]


def test_unwanted_retry_gets_no_wait() -> None:
    """Although retries are left; `retry-after` says when, never whether."""
    policy = RetryPolicy(count=3, retry_after_max_s=2.0)

    assert waits(policy, answered(503), answered(503, retry_after=b"1")) == [None, None]


def test_waits_follow_the_back_off() -> None:
    """One interval after the other within a call; a new call begins at the base."""
    policy = RetryPolicy(count=5, on=ALL)

    assert longest_waits_ms(policy, *[CONNECT_FAILURE] * 5) == [24, 49, 99, 199, 249]


def test_waits_follow_the_policy() -> None:
    """Its base and its maximum, not the defaults."""
    policy = RetryPolicy(count=3, on=ALL, back_off_base_s=0.010, back_off_max_s=0.015)

    assert longest_waits_ms(policy, *[answered(500)] * 3) == [9, 14, 14]


def test_refused_stream_is_repeated_at_once() -> None:
    """The wait is none at all, each time, and the back-off stays where it is."""
    policy = RetryPolicy(count=3)

    assert longest_waits_ms(policy, REFUSED_STREAM, REFUSED_STREAM, CONNECT_FAILURE) == [0, 0, 24]


def test_retry_after_replaces_the_back_off() -> None:
    """Its seconds, 0 included, and less than half of them; the back-off doesn't move on by it."""
    policy = RetryPolicy(count=4, on=ALL, retry_after_max_s=2.0)
    outcomes = [answered(503, retry_after=value) for value in (None, b"2", b"0", None)]

    assert longest_waits_ms(policy, *outcomes) == [24, 2999, 0, 49]


@pytest.mark.parametrize("max_s", [None, 2.0])
def test_retry_after_beyond_its_bound_backs_off(max_s: float | None) -> None:
    """Too large a value, or any without a bound, means the ordinary waits in their order."""
    policy = RetryPolicy(count=2, on=ALL, retry_after_max_s=max_s)

    assert longest_waits_ms(policy, answered(503, retry_after=b"3"), answered(503)) == [24, 49]


def test_retry_after_needs_a_response() -> None:
    """A value that came with a head, before the attempt failed after all, doesn't count."""
    policy = RetryPolicy(count=1, on=ALL, retry_after_max_s=2.0)
    outcome = AttemptOutcome(None, FailureKind.TIMEOUT, TimeoutStage.FIRST_BYTE, retry_after=b"1")

    assert longest_waits_ms(policy, outcome) == [24]


@pytest.mark.parametrize(("deadline_at", "wait"), [(100.0, None), (100.001, 0.0), (99.0, None)])
def test_immediate_retry_needs_time_left(deadline_at: float, wait: float | None) -> None:
    """A wait of zero may not end at the deadline either, and not behind it."""
    assert waits(RetryPolicy(count=1), REFUSED_STREAM, deadline_at=deadline_at) == [wait]


def test_retry_is_not_begun_when_its_wait_reaches_the_deadline() -> None:
    """Neither at the deadline nor later; a moment earlier it is."""
    policy = RetryPolicy(count=1, on=ALL, retry_after_max_s=2.0)
    asking = answered(503, retry_after=b"2")
    [wait] = waits(policy, asking)
    assert wait is not None

    assert waits(policy, asking, deadline_at=100.0 + wait - 0.001) == [None]
    assert waits(policy, asking, deadline_at=100.0 + wait) == [None]
    assert waits(policy, asking, deadline_at=100.0 + wait + 0.001) == [wait]


@given(
    policy=POLICIES,
    attempts=st.lists(st.tuples(OUTCOMES, st.floats(0, 2)), max_size=12),
    left_s=st.floats(0, 10) | st.just(math.inf),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None)
def test_retries_keep_within_all_bounds(
    policy: RetryPolicy, attempts: list[tuple[AttemptOutcome, float]], left_s: float, seed: int
) -> None:
    """Of count, longest wait and deadline; and within them nothing that is wanted is left out.

    Attempts are their outcome and the seconds they take.
    """
    state = RetryState(policy, seeded(seed))
    now, deadline_at = 1000.0, 1000.0 + left_s
    longest_s = max(policy.back_off_max_s, 1.5 * (policy.retry_after_max_s or 0.0))
    made = 0

    for outcome, takes_s in attempts:
        now += takes_s
        wait = state.next_wait(outcome, now=now, deadline_at=deadline_at)
        if wait is None:
            is_over = made == policy.count or now + longest_s >= deadline_at
            assert is_over or not wants_retry(policy, outcome)
            continue
        made += 1
        assert wants_retry(policy, outcome)
        assert 0 <= wait <= longest_s
        now += wait
        assert now < deadline_at

    assert state.retries == made <= policy.count
