"""Which model a failed call goes on to, or why it goes on to none."""

from collections.abc import Callable, Sequence
from enum import StrEnum

import attrs
import msgspec

from vsr.resources.reliability import FallbackPolicy, LastResort, RetryEvidence
from vsr.upstream.policy.fallback_class import FailureClass

SHORTEST_TRY_S = 0.001
"""What a candidate gets when less is left of the total timeout. Source: the reference."""


class StopReason(StrEnum):
    """The final status of a chain that asks no further model, in the order of the gates.

    Source: the reference, except for `NOT_KNOWN_ZERO`.
    """

    CONTEXT_CANCELED = "context_canceled"
    FALLBACK_DISABLED = "fallback_disabled"
    NON_RETRYABLE = "non_retryable"
    NOT_KNOWN_ZERO = "not_known_zero"
    """The failed call's backend may have worked, and its policy forbids to call again then."""
    COMMITTED_FAILURE = "committed_failure"
    SIDE_EFFECT_FAILURE = "side_effect_failure"
    BODY_NOT_REPLAYABLE = "body_not_replayable"
    MAX_ATTEMPTS_EXCEEDED = "max_attempts_exceeded"
    TOTAL_DEADLINE_EXCEEDED = "total_deadline_exceeded"
    CANDIDATES_EXHAUSTED = "candidates_exhausted"
    """Every candidate was called or skipped."""
    CIRCUIT_OPEN = "circuit_open"
    """Candidates are left, and the breaker of each is open."""


_RUN_OUT = frozenset(
    {
        StopReason.MAX_ATTEMPTS_EXCEEDED,
        StopReason.TOTAL_DEADLINE_EXCEEDED,
        StopReason.CANDIDATES_EXHAUSTED,
        StopReason.CIRCUIT_OPEN,
    }
)
"""The ends at which another model was wanted and allowed, but there is none."""


class FailedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A failed call and how its request stands; nothing has a default, lest a gate be forgotten."""

    failure: FailureClass
    is_known_zero: bool
    """Whether the backend surely did nothing, by the call's last attempt."""
    evidence: RetryEvidence
    """Of the retry policy that the failed call had, the first one's or a candidate's."""
    is_committed: bool
    """Whether the client has got a part of the response."""
    has_tool_result: bool
    """Whether the request's messages contain a tool-role message or a tool result."""
    is_replayable: bool
    """Whether the whole body of the client's request is at hand."""
    is_context_over: bool
    """Whether nobody waits for the answer any more."""
    deadline_at: float
    """The request's own deadline, monotonic seconds; infinity means none."""


class Candidate(msgspec.Struct, frozen=True):
    """The model to call next."""

    model: str
    per_try_s: float
    """Upper bound of each of its attempts; a shorter one that is set for the call stays."""


class Stop(msgspec.Struct, frozen=True):
    """No further model is called: the last resort is the answer, else the first call's failure."""

    reason: StopReason
    last_resort: LastResort | None = None
    """The policy's, where another model was wanted and allowed but there was none left."""


@attrs.define(eq=False)
class FallbackChain:
    """The way of one request from model to model; made when its first call has failed.

    After each failed call ask for the `next_candidate`; one that cannot be prepared is given back
    with `skip`, and the same failed call asked about again.

    Source: the reference, "Cross-model fallback".
    """

    policy: FallbackPolicy
    primary: str
    """Model of the first call, which counts as the first attempt."""
    candidates: Sequence[str]
    """Models in the order of preference; the primary may be among them and is not called again."""
    started_at: float
    """When the request's processing began, monotonic seconds."""
    may_try: Callable[[str, float], bool]
    """Whether a model's breaker lets a call through at a time (monotonic seconds). Never asked
    about the primary, nor about a model behind the one that is given."""
    _called: list[str] = attrs.field(init=False)
    _visited: set[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._called = [self.primary]
        self._visited = {self.primary}

    @property
    def attempts(self) -> int:
        """Return the number of calls so far, the first one included."""
        return len(self._called)

    def path(self) -> tuple[str, ...]:
        """Return the models called so far, in order."""
        return tuple(self._called)

    def next_candidate(self, call: FailedCall, *, now: float) -> Candidate | Stop:
        """Return the model to call after `call`, which counts as called from then on, or the end.

        The gates are asked in the reference's order; the first shut one gives the reason.
        """
        reason = self._shut_gate(call, now)
        if reason is None:
            left = [model for model in self.candidates if model not in self._visited]
            for model in left:
                if self.may_try(model, now):
                    self._called.append(model)
                    self._visited.add(model)
                    return Candidate(model, self._per_try_s(now))
            reason = StopReason.CIRCUIT_OPEN if left else StopReason.CANDIDATES_EXHAUSTED
        return Stop(reason, self.policy.last_resort if reason in _RUN_OUT else None)

    def skip(self, model: str) -> None:
        """Take back the candidate given last: it was not called, and won't be given again.

        Raises:
            ValueError: `model` is not that candidate.
        """
        if self.attempts == 1 or self._called[-1] != model:
            raise ValueError(f"{model!r} is not the last candidate")
        self._called.pop()

    def _shut_gate(self, call: FailedCall, now: float) -> StopReason | None:
        policy = self.policy
        is_unproven = call.evidence is RetryEvidence.KNOWN_ZERO and not call.is_known_zero
        is_late = now - self.started_at >= policy.total_timeout_s or now >= call.deadline_at
        gates = (
            (call.is_context_over, StopReason.CONTEXT_CANCELED),
            (not policy.enabled, StopReason.FALLBACK_DISABLED),
            (not call.failure.is_retryable, StopReason.NON_RETRYABLE),
            (is_unproven, StopReason.NOT_KNOWN_ZERO),
            (call.is_committed, StopReason.COMMITTED_FAILURE),
            (call.has_tool_result, StopReason.SIDE_EFFECT_FAILURE),
            (not call.is_replayable, StopReason.BODY_NOT_REPLAYABLE),
            (self.attempts >= policy.max_attempts, StopReason.MAX_ATTEMPTS_EXCEEDED),
            (is_late, StopReason.TOTAL_DEADLINE_EXCEEDED),
        )
        return next((reason for is_shut, reason in gates if is_shut), None)

    def _per_try_s(self, now: float) -> float:
        rest_s = self.policy.total_timeout_s - (now - self.started_at)
        return min(self.policy.per_attempt_timeout_s, max(rest_s, SHORTEST_TRY_S))
