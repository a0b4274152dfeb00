"""Which failures of a call send it on to another model."""

from enum import StrEnum
from http import HTTPStatus

import msgspec

from vsr.resources.reliability import FallbackPolicy, FallbackTrigger
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind


class FailureName(StrEnum):
    """What a failure is called in logs and counters.

    Source: the reference; the last two are our addition.
    """

    NONE = "none"
    """No failure, or none that has to do with the backend's health."""
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    UPSTREAM_5XX = "upstream_5xx"
    CONNECT = "connect"
    CONTENT_REFUSAL = "content_refusal"


_SUCCESS = range(200, 300)
_LOWEST_5XX = 500

_LISTED: dict[int, FailureName] = {
    HTTPStatus.GATEWAY_TIMEOUT: FailureName.TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS: FailureName.RATE_LIMIT,
}
"""Names of listed statuses; the others are `UPSTREAM_5XX`, whatever their number."""

_TRIGGERED = {
    FallbackTrigger.CONTENT_REFUSAL: FailureName.CONTENT_REFUSAL,
    FallbackTrigger.CONNECT: FailureName.CONNECT,
    FallbackTrigger.TIMEOUT: FailureName.TIMEOUT,
    FallbackTrigger.RATE_LIMITED: FailureName.RATE_LIMIT,
    FallbackTrigger.FIVE_XX: FailureName.UPSTREAM_5XX,
}


class FailureClass(msgspec.Struct, frozen=True):
    """How a policy sees the end of a call."""

    name: FailureName
    is_retryable: bool
    """Whether another model may be asked."""
    trigger: FallbackTrigger | None = None
    """What made it retryable; None where the list of statuses did, or nothing."""


def classify(
    policy: FallbackPolicy, outcome: AttemptOutcome, *, is_refusal: bool = False
) -> FailureClass:
    """Return the class of a call's last outcome.

    A failure counts as the status of the local reply it becomes. A listed status is judged first;
    triggers speak for the rest, the narrowest of those that fire. A 2xx is a success even if it is
    listed, and a cancelled call has no reply to judge: neither is retryable by its status.

    Args:
        policy: whether it is enabled is not asked here.
        outcome: of the last attempt.
        is_refusal: whether the backend's answer is the model's refusal to answer.

    Source: the reference, classification by status; the triggers are our addition.
    """
    if outcome.failure is FailureKind.CANCELLED:
        return FailureClass(FailureName.NONE, is_retryable=False)
    status = _status_of(outcome)
    if status in policy.retryable_status_codes and status not in _SUCCESS:
        name = _LISTED.get(status, FailureName.UPSTREAM_5XX)
        return FailureClass(name, is_retryable=True)
    trigger = _trigger(policy.triggers, outcome, status, is_refusal=is_refusal)
    if trigger is not None:
        return FailureClass(_TRIGGERED[trigger], is_retryable=True, trigger=trigger)
    name = FailureName.UPSTREAM_5XX if status >= _LOWEST_5XX else FailureName.NONE
    return FailureClass(name, is_retryable=False)


def _status_of(outcome: AttemptOutcome) -> int:
    if outcome.status is not None:
        return outcome.status
    if outcome.failure is FailureKind.TIMEOUT:
        return HTTPStatus.GATEWAY_TIMEOUT
    return HTTPStatus.SERVICE_UNAVAILABLE


def _trigger(
    triggers: frozenset[FallbackTrigger], outcome: AttemptOutcome, status: int, *, is_refusal: bool
) -> FallbackTrigger | None:
    """Return the first trigger of the policy that fires."""
    firing = (
        (FallbackTrigger.CONTENT_REFUSAL, is_refusal),
        (FallbackTrigger.CONNECT, outcome.failure is FailureKind.CONNECT_FAILURE),
        (FallbackTrigger.TIMEOUT, outcome.failure is FailureKind.TIMEOUT),
        (FallbackTrigger.RATE_LIMITED, status == HTTPStatus.TOO_MANY_REQUESTS),
        (FallbackTrigger.FIVE_XX, status >= _LOWEST_5XX),
    )
    return next((trigger for trigger, fires in firing if fires and trigger in triggers), None)
