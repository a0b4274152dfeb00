"""Whether, and after which wait, an attempt is repeated."""

import random
from typing import assert_never

import attrs

from vsr.resources.reliability import RetryEvidence, RetryOn, RetryPolicy
from vsr.routing.outcome import TransportFact
from vsr.upstream.policy.backoff import Backoff, retry_after_s
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage

_SERVER_ERRORS = range(500, 600)
_GATEWAY_ERRORS = frozenset({502, 503, 504})
_CONFLICT = 409

_NEVER: frozenset[RetryOn] = frozenset()
_BROAD = frozenset({RetryOn.FIVE_XX, RetryOn.GATEWAY_ERROR, RetryOn.RESET})
"""Conditions that mean every failure of an exchange, not its response alone."""
_CONNECT_FAILURE = _BROAD | {RetryOn.CONNECT_FAILURE, RetryOn.RESET_BEFORE_REQUEST}
_REFUSED_STREAM = _BROAD | {RetryOn.REFUSED_STREAM}
_RESET_BEFORE_REQUEST = _BROAD | {RetryOn.RESET_BEFORE_REQUEST}


def wants_retry(policy: RetryPolicy, outcome: AttemptOutcome) -> bool:
    """Return whether the policy's conditions ask to repeat an attempt that ended so.

    Its count, waits and deadline don't matter here. Source: the reference, "Retry decision",
    except that `RetryEvidence.KNOWN_ZERO` is our addition.
    """
    if outcome.status is None:
        wanted = not policy.on.isdisjoint(_conditions_for_failure(outcome))
    else:
        wanted = _wants_retry_of_response(policy, outcome, outcome.status)
    return wanted and (policy.evidence is RetryEvidence.ANY or outcome.is_known_zero)


def is_immediate(policy: RetryPolicy, outcome: AttemptOutcome) -> bool:
    """Return whether the attempt is repeated without any wait.

    That is so for a refused stream whose repetition only `RetryOn.REFUSED_STREAM` asks for.
    Source: the reference, "Retry decision".
    """
    return (
        outcome.failure is FailureKind.REFUSED_STREAM
        and RetryOn.REFUSED_STREAM in policy.on
        and policy.on.isdisjoint(_BROAD)
    )


@attrs.define(eq=False)
class RetryState:
    """Retries of one call.

    Source: the reference, "Retry decision". That a retry whose wait the deadline would cut off is
    not begun is ours: its last response or failure tells the client more than a timeout does.
    """

    policy: RetryPolicy
    rng: random.Random
    """Of the waits."""
    retries: int = attrs.field(default=0, init=False)
    """Waits given out so far."""
    _back_off: Backoff | None = attrs.field(default=None, init=False)

    def next_wait(self, outcome: AttemptOutcome, *, now: float, deadline_at: float) -> float | None:
        """Return the seconds to wait before the next attempt and count it, None if there is none.

        There is none when all retries were made, the policy doesn't want one after `outcome`, or
        the wait would end at or after the deadline.

        Args:
            outcome: of the attempt that just ended.
            now: monotonic seconds.
            deadline_at: monotonic seconds, `math.inf` without a deadline.
        """
        if self.retries >= self.policy.count or not wants_retry(self.policy, outcome):
            return None
        wait_s = self._wait_s(outcome)
        if now + wait_s >= deadline_at:
            return None
        self.retries += 1
        return wait_s

    def _wait_s(self, outcome: AttemptOutcome) -> float:
        policy = self.policy
        if is_immediate(policy, outcome):
            return 0.0
        if outcome.status is not None:
            asked_s = retry_after_s(outcome.retry_after, policy.retry_after_max_s, self.rng)
            if asked_s is not None:
                return asked_s
        if self._back_off is None:
            self._back_off = Backoff(policy.back_off_base_s, policy.back_off_max_s, self.rng)
        return self._back_off.next_s()


def _wants_retry_of_response(policy: RetryPolicy, outcome: AttemptOutcome, status: int) -> bool:
    conditions = policy.on
    if outcome.is_ratelimited:
        # Whatever the status: the other conditions mean faults, not a limit that was reached.
        return RetryOn.RATELIMITED in conditions
    return (
        (
            status in _SERVER_ERRORS
            and (
                RetryOn.FIVE_XX in conditions
                or (status in _GATEWAY_ERRORS and RetryOn.GATEWAY_ERROR in conditions)
            )
        )
        or (status == _CONFLICT and RetryOn.RETRIABLE_4XX in conditions)
        or (status in policy.status_codes and RetryOn.RETRIABLE_STATUS_CODES in conditions)
    )


def _conditions_for_failure(outcome: AttemptOutcome) -> frozenset[RetryOn]:
    """Return the conditions of which any one is enough to repeat a failed attempt."""
    match outcome.failure:
        case FailureKind.CONNECT_FAILURE:
            return _CONNECT_FAILURE
        case FailureKind.REFUSED_STREAM:
            return _REFUSED_STREAM
        case FailureKind.RESET:
            is_early = outcome.fact < TransportFact.REQUEST_WRITTEN
            return _RESET_BEFORE_REQUEST if is_early else _BROAD
        case FailureKind.TIMEOUT:
            is_of_attempt = outcome.stage in {TimeoutStage.PER_TRY, TimeoutStage.FIRST_BYTE}
            return _BROAD if is_of_attempt else _NEVER
        case FailureKind.OVERFLOW | FailureKind.NO_HEALTHY_UPSTREAM | FailureKind.CANCELLED | None:
            return _NEVER
        case _:
            assert_never(outcome.failure)
