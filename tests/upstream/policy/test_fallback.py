"""Walking from model to model behind a failed call."""

from itertools import combinations, product
from math import inf
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from vsr.resources.reliability import FallbackPolicy, LastResort, RetryEvidence
from vsr.upstream.policy.fallback import Candidate, FailedCall, FallbackChain, Stop, StopReason
from vsr.upstream.policy.fallback_class import FailureClass, FailureName

STARTED_AT = 100.0
NOW = STARTED_AT + 1.0

POLICY = FallbackPolicy(
    enabled=True, max_attempts=3, total_timeout_s=30.0, per_attempt_timeout_s=10.0
)
CALL = FailedCall(
    failure=FailureClass(FailureName.UPSTREAM_5XX, is_retryable=True),
    is_known_zero=False,
    evidence=RetryEvidence.ANY,
    is_committed=False,
    has_tool_result=False,
    is_replayable=True,
    is_context_over=False,
    deadline_at=inf,
)
"""A failure that every gate lets through."""

UNRETRYABLE = FailureClass(FailureName.NONE, is_retryable=False)

MODELS = ("primary", "second", "third", "fourth")


class FakeBreakers:
    """Breakers of which these are open, whatever the time; they note what they are asked."""

    def __init__(self, *opened: str) -> None:
        self.opened = set(opened)
        self.queries: list[tuple[str, float]] = []

    def may_try(self, model: str, now: float) -> bool:
        """Return whether the model's breaker is closed."""
        self.queries.append((model, now))
        return model not in self.opened


def chain(
    *candidates: str, policy: FallbackPolicy = POLICY, breakers: FakeBreakers | None = None
) -> FallbackChain:
    """Return the chain of a request whose first call went to `primary`."""
    may_try = (breakers or FakeBreakers()).may_try
    return FallbackChain(policy, "primary", candidates or MODELS, STARTED_AT, may_try)


def asked(subject: FallbackChain, call: FailedCall = CALL, now: float = NOW) -> str:
    """Return the next candidate's model, or the reason for none."""
    answer = subject.next_candidate(call, now=now)
    return answer.model if isinstance(answer, Candidate) else answer.reason


@attrs.frozen
class Shut:
    """What shuts one gate."""

    reason: StopReason
    call: dict[str, Any] = attrs.field(factory=dict)
    policy: dict[str, Any] = attrs.field(factory=dict)
    candidates: tuple[str, ...] = ()
    open_breakers: tuple[str, ...] = ()


GATES = (
    Shut(StopReason.CONTEXT_CANCELED, call={"is_context_over": True}),
    Shut(StopReason.FALLBACK_DISABLED, policy={"enabled": False}),
    Shut(StopReason.NON_RETRYABLE, call={"failure": UNRETRYABLE}),
    Shut(StopReason.NOT_KNOWN_ZERO, call={"evidence": RetryEvidence.KNOWN_ZERO}),
    Shut(StopReason.COMMITTED_FAILURE, call={"is_committed": True}),
    Shut(StopReason.SIDE_EFFECT_FAILURE, call={"has_tool_result": True}),
    Shut(StopReason.BODY_NOT_REPLAYABLE, call={"is_replayable": False}),
    Shut(StopReason.MAX_ATTEMPTS_EXCEEDED, policy={"max_attempts": 1}),
    Shut(StopReason.TOTAL_DEADLINE_EXCEEDED, policy={"total_timeout_s": 1.0}),
    Shut(StopReason.CANDIDATES_EXHAUSTED, candidates=("primary",)),
    Shut(StopReason.CIRCUIT_OPEN, open_breakers=MODELS),
)
"""In the order in which they are asked."""


def through(*gates: Shut, last_resort: LastResort | None = None) -> Candidate | Stop:
    """Return the answer when these gates are shut and all others open."""
    call, policy = CALL, replace(POLICY, last_resort=last_resort)
    candidates: tuple[str, ...] = MODELS
    breakers = FakeBreakers()
    for gate in gates:
        call = replace(call, **gate.call)
        policy = replace(policy, **gate.policy)
        candidates = gate.candidates or candidates
        breakers.opened.update(gate.open_breakers)
    return chain(*candidates, policy=policy, breakers=breakers).next_candidate(call, now=NOW)


def test_failure_goes_on_when_every_gate_is_open() -> None:
    """The first model that is not the primary is called."""
    assert through() == Candidate("second", 10.0)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.reason)
def test_shut_gate_stops_with_its_status(gate: Shut) -> None:
    """Each gate alone ends the chain under its own name."""
    assert through(gate) == Stop(gate.reason)


@pytest.mark.parametrize(
    ("earlier", "later"),
    list(combinations(GATES, 2)),
    ids=lambda gate: gate.reason,
)
def test_earlier_gate_gives_the_status(earlier: Shut, later: Shut) -> None:
    """The gates are asked in the reference's order, so of two shut ones the first is named."""
    assert through(later, earlier) == Stop(earlier.reason)


def test_every_status_has_its_gate_in_order() -> None:
    """The statuses are declared as they are asked."""
    assert [gate.reason for gate in GATES] == list(StopReason)


@pytest.mark.parametrize(("evidence", "is_known_zero"), list(product(RetryEvidence, (False, True))))
def test_evidence_forbids_only_what_is_not_proven(
    evidence: RetryEvidence, *, is_known_zero: bool
) -> None:
    """Under `known_zero` a call whose backend may have worked is not made again elsewhere."""
    call = replace(CALL, evidence=evidence, is_known_zero=is_known_zero)

    answer = asked(chain(), call)

    forbidden = evidence is RetryEvidence.KNOWN_ZERO and not is_known_zero
    assert answer == (StopReason.NOT_KNOWN_ZERO if forbidden else "second")


def test_evidence_is_the_failed_call_s() -> None:
    """Each call of the chain is judged by the policy of the cluster it went to."""
    proven = replace(CALL, evidence=RetryEvidence.KNOWN_ZERO, is_known_zero=True)
    subject = chain()

    answers = [asked(subject, call) for call in (proven, CALL)]

    assert answers == ["second", "third"]


@pytest.mark.parametrize(
    ("now", "answer"),
    [(STARTED_AT + 29.999, "second"), (STARTED_AT + 30.0, StopReason.TOTAL_DEADLINE_EXCEEDED)],
)
def test_total_timeout_counts_from_the_start(now: float, answer: str) -> None:
    """No candidate begins once it has elapsed, to the instant."""
    assert asked(chain(), now=now) == answer


@pytest.mark.parametrize(
    ("deadline_at", "answer"),
    [(NOW + 0.001, "second"), (NOW, StopReason.TOTAL_DEADLINE_EXCEEDED)],
)
def test_request_s_deadline_ends_the_chain(deadline_at: float, answer: str) -> None:
    """Even when the policy would leave more time."""
    assert asked(chain(), replace(CALL, deadline_at=deadline_at)) == answer


@pytest.mark.parametrize(
    ("max_attempts", "answers"),
    [
        (0, [StopReason.MAX_ATTEMPTS_EXCEEDED] * 3),
        (1, [StopReason.MAX_ATTEMPTS_EXCEEDED] * 3),
        (2, ["second", StopReason.MAX_ATTEMPTS_EXCEEDED, StopReason.MAX_ATTEMPTS_EXCEEDED]),
        (3, ["second", "third", StopReason.MAX_ATTEMPTS_EXCEEDED]),
    ],
)
def test_attempts_include_the_first_call(max_attempts: int, answers: list[str]) -> None:
    """`max_attempts` is the number of all calls, the primary's among them."""
    subject = chain(policy=replace(POLICY, max_attempts=max_attempts))

    assert [asked(subject) for _ in range(3)] == answers


def test_candidates_are_called_in_their_order() -> None:
    """The primary is left out wherever it stands, and a model named twice is called once."""
    subject = chain("third", "primary", "second", "third", policy=replace(POLICY, max_attempts=9))

    answers = [asked(subject) for _ in range(3)]

    assert answers == ["third", "second", StopReason.CANDIDATES_EXHAUSTED]


def test_primary_need_not_be_a_candidate() -> None:
    """Then each candidate is another model."""
    subject = chain("second")

    assert [asked(subject) for _ in range(2)] == ["second", StopReason.CANDIDATES_EXHAUSTED]


def test_no_candidates_are_exhausted_at_once() -> None:
    """A chain of the primary alone has nowhere to go."""
    subject = FallbackChain(POLICY, "primary", (), STARTED_AT, FakeBreakers().may_try)

    assert asked(subject) == StopReason.CANDIDATES_EXHAUSTED


def test_open_breaker_is_passed_over() -> None:
    """The next backend in order takes its place."""
    assert asked(chain(breakers=FakeBreakers("second"))) == "third"


def test_breaker_of_the_primary_is_not_asked() -> None:
    """It gates candidates only; nor are those behind the chosen one asked."""
    breakers = FakeBreakers("second")

    answer = asked(chain(breakers=breakers))

    assert answer == "third"
    assert breakers.queries == [("second", NOW), ("third", NOW)]


def test_circuit_is_open_only_while_candidates_are_left() -> None:
    """Those called already don't make the difference, whatever their breakers say."""
    subject = chain("second", "third", breakers=FakeBreakers("third"))

    assert [asked(subject) for _ in range(2)] == ["second", StopReason.CIRCUIT_OPEN]


def test_visited_candidates_are_exhausted_though_their_breakers_are_open() -> None:
    """A candidate that failed has often opened its breaker with that."""
    breakers = FakeBreakers()
    subject = chain("second", breakers=breakers)
    assert asked(subject) == "second"

    breakers.opened.add("second")

    assert asked(subject) == StopReason.CANDIDATES_EXHAUSTED


def test_breaker_that_closes_lets_its_backend_back_in() -> None:
    """To be passed over is not to be visited."""
    breakers = FakeBreakers("second")
    subject = chain(breakers=breakers)
    assert asked(subject) == "third"

    breakers.opened.clear()

    assert asked(subject) == "second"


def test_skipped_candidate_is_no_attempt() -> None:
    """One that cannot be prepared costs no attempt and is not offered again."""
    subject = chain(policy=replace(POLICY, max_attempts=2))
    assert asked(subject) == "second"

    subject.skip("second")

    assert subject.attempts == 1
    assert [asked(subject) for _ in range(2)] == ["third", StopReason.MAX_ATTEMPTS_EXCEEDED]


def test_skipped_candidates_are_exhausted() -> None:
    """The last one that cannot be prepared ends the chain."""
    subject = chain("second")
    assert asked(subject) == "second"

    subject.skip("second")

    assert asked(subject) == StopReason.CANDIDATES_EXHAUSTED


def test_time_runs_out_while_candidates_are_skipped() -> None:
    """Preparing takes time as well."""
    subject = chain()
    assert asked(subject) == "second"

    subject.skip("second")

    assert asked(subject, now=STARTED_AT + 30.0) == StopReason.TOTAL_DEADLINE_EXCEEDED


@pytest.mark.parametrize("model", ["primary", "second", "fourth"])
def test_only_the_last_candidate_can_be_skipped(model: str) -> None:
    """Any other was called, or not given out at all."""
    subject = chain()
    assert [asked(subject) for _ in range(2)] == ["second", "third"]

    with pytest.raises(ValueError, match=model):
        subject.skip(model)

    assert subject.path() == ("primary", "second", "third")


def test_first_call_cannot_be_skipped() -> None:
    """It has failed, so it was made."""
    subject = chain()

    with pytest.raises(ValueError, match="primary"):
        subject.skip("primary")


def test_path_names_the_called_models_in_order() -> None:
    """The primary first, a skipped candidate not at all; a stop adds nothing."""
    subject = chain(policy=replace(POLICY, max_attempts=3))
    assert (subject.path(), subject.attempts) == (("primary",), 1)
    assert asked(subject) == "second"
    subject.skip("second")
    assert [asked(subject) for _ in range(3)] == [
        *("third", "fourth"),
        StopReason.MAX_ATTEMPTS_EXCEEDED,
    ]

    assert subject.path() == ("primary", "third", "fourth")
    assert subject.attempts == 3


@pytest.mark.parametrize(
    ("rest_s", "per_try_s"),
    [(30.0, 10.0), (10.0, 10.0), (4.0, 4.0), (0.25, 0.25), (0.0005, 0.001)],
)
def test_try_is_bounded_by_what_is_left(rest_s: float, per_try_s: float) -> None:
    """The least of the attempt's bound and the rest of the total, but at least a millisecond."""
    answer = chain().next_candidate(CALL, now=STARTED_AT + 30.0 - rest_s)

    assert isinstance(answer, Candidate)
    assert answer.per_try_s == pytest.approx(per_try_s, abs=1e-9)


def test_floor_does_not_lengthen_the_attempt_s_own_bound() -> None:
    """The millisecond is for the rest of the total timeout, not for what somebody asked for."""
    policy = replace(POLICY, per_attempt_timeout_s=0.0005)

    answer = chain(policy=policy).next_candidate(CALL, now=NOW)

    assert answer == Candidate("second", 0.0005)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.reason)
def test_last_resort_stands_behind_the_last_candidate(gate: Shut) -> None:
    """It answers where models have run out, not where no other model was wanted or allowed."""
    resort = LastResort(content="Please try again later.")

    answer = through(gate, last_resort=resort)

    ran_out = {
        StopReason.MAX_ATTEMPTS_EXCEEDED,
        StopReason.TOTAL_DEADLINE_EXCEEDED,
        StopReason.CANDIDATES_EXHAUSTED,
        StopReason.CIRCUIT_OPEN,
    }
    assert answer == Stop(gate.reason, resort if gate.reason in ran_out else None)


@given(
    max_attempts=st.integers(0, 6),
    candidates=st.lists(st.sampled_from("pabcdef"), max_size=8),
    steps=st.lists(
        st.tuples(st.floats(0, 8), st.booleans(), st.sets(st.sampled_from("pabcdef"))),
        max_size=12,
    ),
    total_s=st.floats(0.0001, 30),
)
@settings(deadline=None, max_examples=300)
def test_chain_keeps_its_bounds(
    max_attempts: int,
    candidates: list[str],
    steps: list[tuple[float, bool, set[str]]],
    total_s: float,
) -> None:
    """At most `max_attempts` calls, no model twice or behind an open breaker, none too late."""
    breakers = FakeBreakers()
    policy = replace(POLICY, max_attempts=max_attempts, total_timeout_s=total_s)
    subject = FallbackChain(policy, "p", candidates, STARTED_AT, breakers.may_try)
    given_out, now = ["p"], STARTED_AT

    for passed_s, is_skipped, is_open in steps:
        now += passed_s
        breakers.opened = is_open
        answer = subject.next_candidate(CALL, now=now)
        if isinstance(answer, Stop):
            continue
        given_out.append(answer.model)
        assert answer.model not in is_open
        assert now - STARTED_AT < total_s
        assert 0 < answer.per_try_s <= min(10, max(total_s - (now - STARTED_AT), 0.001))
        if is_skipped:
            subject.skip(answer.model)

    assert subject.attempts == len(subject.path()) <= max(1, max_attempts)
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= {"p", *candidates}
