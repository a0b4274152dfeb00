"""Classes of failures that send a call on to another model."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.resources.reliability import FallbackPolicy, FallbackTrigger
from vsr.upstream.policy.fallback_class import FailureClass, FailureName, classify
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage

OUTCOMES = st.one_of(
    st.builds(AttemptOutcome, status=st.integers(100, 599)),
    st.builds(AttemptOutcome, failure=st.sampled_from(FailureKind)),
)


def policy(*triggers: FallbackTrigger, listed: tuple[int, ...] = ()) -> FallbackPolicy:
    """Return a policy with these triggers and statuses alone."""
    return FallbackPolicy(
        enabled=True, retryable_status_codes=frozenset(listed), triggers=frozenset(triggers)
    )


def answered(status: int) -> AttemptOutcome:
    """Return the outcome of an attempt that a backend answered."""
    return AttemptOutcome(status=status)


def failed(failure: FailureKind, stage: TimeoutStage | None = None) -> AttemptOutcome:
    """Return the outcome of an attempt without a response."""
    return AttemptOutcome(failure=failure, stage=stage)


def triggered(name: FailureName, trigger: FallbackTrigger) -> FailureClass:
    """Return a class that a trigger, not the list, makes retryable."""
    return FailureClass(name, is_retryable=True, trigger=trigger)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (504, FailureName.TIMEOUT),
        (429, FailureName.RATE_LIMIT),
        (500, FailureName.UPSTREAM_5XX),
        (503, FailureName.UPSTREAM_5XX),
        (404, FailureName.UPSTREAM_5XX),
        (302, FailureName.UPSTREAM_5XX),
    ],
)
def test_listed_status_is_retryable(status: int, name: FailureName) -> None:
    """504 is a timeout, 429 a rate limit, and every other number is called a 5xx."""
    judged = classify(policy(listed=(status,)), answered(status))

    assert judged == FailureClass(name, is_retryable=True, trigger=None)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (100, FailureName.NONE),
        (302, FailureName.NONE),
        (400, FailureName.NONE),
        (429, FailureName.NONE),
        (499, FailureName.NONE),
        (500, FailureName.UPSTREAM_5XX),
        (504, FailureName.UPSTREAM_5XX),
        (599, FailureName.UPSTREAM_5XX),
    ],
)
def test_unlisted_status_is_not_retryable(status: int, name: FailureName) -> None:
    """Only the server's own errors have a class; an unlisted 504 is one of them, no timeout."""
    judged = classify(policy(listed=(503,)), answered(status))

    assert judged == FailureClass(name, is_retryable=False, trigger=None)


@pytest.mark.parametrize("status", [200, 204, 299])
def test_success_is_never_retryable_by_its_status(status: int) -> None:
    """A chain that went on behind an answer would throw it away."""
    judged = classify(policy(*FallbackTrigger, listed=(status,)), answered(status))

    assert judged == FailureClass(FailureName.NONE, is_retryable=False)


@pytest.mark.parametrize("status", [199, 300])
def test_neighbours_of_success_may_be_listed(status: int) -> None:
    """Any other status may be listed, the class of 2xx has exact bounds."""
    assert classify(policy(listed=(status,)), answered(status)).is_retryable


@pytest.mark.parametrize(
    "failure", sorted(set(FailureKind) - {FailureKind.TIMEOUT, FailureKind.CANCELLED})
)
def test_local_reply_is_judged_as_503(failure: FailureKind) -> None:
    """A refused connection falls back only while 503 is listed."""
    listed = classify(policy(listed=(503,)), failed(failure))
    unlisted = classify(policy(listed=(502, 504)), failed(failure))

    assert listed == FailureClass(FailureName.UPSTREAM_5XX, is_retryable=True)
    assert unlisted == FailureClass(FailureName.UPSTREAM_5XX, is_retryable=False)


@pytest.mark.parametrize("stage", TimeoutStage)
def test_local_timeout_is_judged_as_504(stage: TimeoutStage) -> None:
    """Whichever limit passed, a timeout falls back only while 504 is listed."""
    listed = classify(policy(listed=(504,)), failed(FailureKind.TIMEOUT, stage))
    unlisted = classify(policy(listed=(502, 503)), failed(FailureKind.TIMEOUT, stage))

    assert listed == FailureClass(FailureName.TIMEOUT, is_retryable=True)
    assert unlisted == FailureClass(FailureName.UPSTREAM_5XX, is_retryable=False)


def test_cancelled_call_is_never_retryable() -> None:
    """Nobody waits for it, so it has no local reply that a status could be read from."""
    everything = policy(*FallbackTrigger, listed=(499, 503, 504))

    judged = classify(everything, failed(FailureKind.CANCELLED))

    assert judged == FailureClass(FailureName.NONE, is_retryable=False)


def test_default_statuses_are_the_gateway_errors() -> None:
    """A policy that says nothing else falls back from 502, 503 and 504."""
    retryable = [
        status
        for status in range(100, 600)
        if classify(FallbackPolicy(), answered(status)).is_retryable
    ]

    assert retryable == [502, 503, 504]


@pytest.mark.parametrize("stage", TimeoutStage)
def test_timeout_trigger_fires_for_any_timeout(stage: TimeoutStage) -> None:
    """Without 504 in the list, and whichever limit passed."""
    judged = classify(policy(FallbackTrigger.TIMEOUT), failed(FailureKind.TIMEOUT, stage))

    assert judged == triggered(FailureName.TIMEOUT, FallbackTrigger.TIMEOUT)


def test_connect_trigger_fires_for_a_connect_failure() -> None:
    """Without 503 in the list."""
    judged = classify(policy(FallbackTrigger.CONNECT), failed(FailureKind.CONNECT_FAILURE))

    assert judged == triggered(FailureName.CONNECT, FallbackTrigger.CONNECT)


def test_rate_limit_trigger_fires_for_429() -> None:
    """Without 429 in the list."""
    judged = classify(policy(FallbackTrigger.RATE_LIMITED), answered(429))

    assert judged == triggered(FailureName.RATE_LIMIT, FallbackTrigger.RATE_LIMITED)


@pytest.mark.parametrize("status", [500, 503, 504, 599])
def test_5xx_trigger_fires_for_any_server_error(status: int) -> None:
    """Without the status in the list."""
    judged = classify(policy(FallbackTrigger.FIVE_XX), answered(status))

    assert judged == triggered(FailureName.UPSTREAM_5XX, FallbackTrigger.FIVE_XX)


@pytest.mark.parametrize("failure", sorted(set(FailureKind) - {FailureKind.CANCELLED}))
def test_5xx_trigger_fires_for_any_local_reply(failure: FailureKind) -> None:
    """Timeouts and refused connections are 504 and 503 to the client as well."""
    judged = classify(policy(FallbackTrigger.FIVE_XX), failed(failure))

    assert judged == triggered(FailureName.UPSTREAM_5XX, FallbackTrigger.FIVE_XX)


@pytest.mark.parametrize("status", [200, 400])
def test_refusal_trigger_fires_for_a_refusal(status: int) -> None:
    """The model's refusal comes as an ordinary answer, or as an error of a content filter."""
    refused = classify(policy(FallbackTrigger.CONTENT_REFUSAL), answered(status), is_refusal=True)

    assert refused == triggered(FailureName.CONTENT_REFUSAL, FallbackTrigger.CONTENT_REFUSAL)


def test_refusal_is_a_success_without_its_trigger() -> None:
    """No other trigger makes an answer of the model a failure."""
    triggers = set(FallbackTrigger) - {FallbackTrigger.CONTENT_REFUSAL}

    judged = classify(policy(*triggers), answered(200), is_refusal=True)

    assert judged == FailureClass(FailureName.NONE, is_retryable=False)


FIRING = {
    FallbackTrigger.TIMEOUT: {"timeout"},
    FallbackTrigger.FIVE_XX: {
        *{"500", "503", "504", "timeout", "connect_failure", "refused_stream", "reset"},
        *{"overflow", "no_healthy_upstream"},
    },
    FallbackTrigger.RATE_LIMITED: {"429"},
    FallbackTrigger.CONNECT: {"connect_failure"},
    FallbackTrigger.CONTENT_REFUSAL: {"refusal"},
}


@pytest.mark.parametrize("trigger", FallbackTrigger)
def test_trigger_fires_for_its_class_alone(trigger: FallbackTrigger) -> None:
    """Each trigger alone, for every kind of outcome; a backend's own 504 is no timeout of ours."""
    statuses = (100, 200, 302, 400, 409, 428, 429, 430, 499, 500, 503, 504)
    outcomes = {str(status): answered(status) for status in statuses}
    outcomes |= {failure.value: failed(failure) for failure in FailureKind}
    outcomes["refusal"] = answered(200)

    firing = {
        name
        for name, outcome in outcomes.items()
        if classify(policy(trigger), outcome, is_refusal=name == "refusal").is_retryable
    }

    assert firing == FIRING[trigger]


def test_listed_status_needs_no_trigger() -> None:
    """What the list lets through is called as the reference calls it, with no trigger named."""
    everything = policy(*FallbackTrigger, listed=(400, 503))

    refused = classify(everything, answered(400), is_refusal=True)
    unconnected = classify(everything, failed(FailureKind.CONNECT_FAILURE))

    assert refused == unconnected == FailureClass(FailureName.UPSTREAM_5XX, is_retryable=True)


@pytest.mark.parametrize(
    ("outcome", "is_refusal", "trigger"),
    [
        (failed(FailureKind.CONNECT_FAILURE), False, FallbackTrigger.CONNECT),
        (failed(FailureKind.TIMEOUT), False, FallbackTrigger.TIMEOUT),
        (answered(429), True, FallbackTrigger.CONTENT_REFUSAL),
        (answered(500), True, FallbackTrigger.CONTENT_REFUSAL),
    ],
)
def test_narrowest_trigger_is_named(
    outcome: AttemptOutcome, trigger: FallbackTrigger, *, is_refusal: bool
) -> None:
    """Counters by trigger tell a refused connection from an error of the backend."""
    judged = classify(policy(*FallbackTrigger), outcome, is_refusal=is_refusal)

    assert judged.trigger is trigger


def test_disabled_policy_is_not_judged_here() -> None:
    """The class says what happened; whether the policy is on is a gate of its own."""
    on = policy(listed=(503,))

    off = msgspec.structs.replace(on, enabled=False)

    assert classify(off, answered(503)) == classify(on, answered(503))


@given(
    outcome=OUTCOMES,
    is_refusal=st.booleans(),
    triggers=st.frozensets(st.sampled_from(FallbackTrigger)),
    listed=st.frozensets(st.integers(100, 599), max_size=3),
)
@settings(deadline=None)
def test_only_the_policy_makes_retryable(
    outcome: AttemptOutcome,
    triggers: frozenset[FallbackTrigger],
    listed: frozenset[int],
    *,
    is_refusal: bool,
) -> None:
    """A trigger that is named belongs to the policy; without one the status is listed."""
    judged = classify(
        FallbackPolicy(retryable_status_codes=listed, triggers=triggers),
        outcome,
        is_refusal=is_refusal,
    )

    if judged.trigger is not None:
        assert judged.is_retryable
        assert judged.trigger in triggers
    elif judged.is_retryable:
        local = 504 if outcome.failure is FailureKind.TIMEOUT else 503
        assert (outcome.status or local) in listed
