"""Circuit breaker of one backend as a candidate of fallbacks."""

import attrs

from vsr.resources.reliability import CandidateBreaker
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind


@attrs.define(eq=False)
class CandidateState:
    """Decides whether fallbacks may call one backend; the owner keeps one per backend name.

    Closed, it lets every call through. `consecutive_failures` open it: no call is let through
    until `cooldown_s` have passed since the last failure. From then on it is half open: at most
    `half_open_probes` calls at a time find out how the backend does. A success closes it, a
    failure opens it anew.

    It holds candidates back, never the call that a request began with; but the outcomes of both
    are recorded, in every state. With `consecutive_failures` of 0 it never opens.

    Source: the reference's cross-model fallback, breaker per backend.
    """

    settings: CandidateBreaker
    _failures: int = attrs.field(default=0, init=False)
    _failed_at: float = attrs.field(default=0.0, init=False)
    _probes: list[float] = attrs.field(factory=list, init=False)
    # When each probe under way began, oldest first.

    def may_try(self, now: float) -> bool:
        """Return whether a candidate's call may start at `now` (monotonic seconds).

        It changes nothing: a candidate may still turn out to be impossible to prepare. Call
        `begin` when it is sent.
        """
        if not self._has_tripped:
            return True
        if now - self._failed_at < self.settings.cooldown_s:
            return False
        return len(self._pending(now)) < self.settings.half_open_probes

    def begin(self, now: float) -> None:
        """Note that a candidate's call starts; unless the breaker is closed it is a probe.

        A probe without an outcome for `cooldown_s` is given up for lost, and another may start.
        """
        if self._has_tripped:
            self._probes = [*self._pending(now), now]

    def record(self, *, failed: bool, now: float) -> None:
        """Count the outcome of a call to the backend; see `has_failed` for those that count."""
        # Probes need no clearing: one that began before a failure is lost when its cooldown ends.
        if failed:
            self._failures += 1
            self._failed_at = now
        else:
            self._failures = 0

    @property
    def _has_tripped(self) -> bool:
        return 0 < self.settings.consecutive_failures <= self._failures

    def _pending(self, now: float) -> list[float]:
        return [began for began in self._probes if now - began < self.settings.cooldown_s]


def has_failed(outcome: AttemptOutcome, listed: frozenset[int]) -> bool | None:
    """Return whether the backend failed; None if the outcome doesn't count either way.

    Args:
        outcome: how the call ended, behind its last retry.
        listed: the fallback policy's `retryable_status_codes`.

    A 4xx that isn't listed is the client's own fault, and a call that was cancelled might have
    succeeded: neither says anything about the backend. Whatever else isn't a 2xx is a failure.

    Source: the reference's cross-model fallback, breaker per backend.
    """
    status = outcome.status
    if status is None:
        return None if outcome.failure is FailureKind.CANCELLED else True
    if 200 <= status < 300:  # noqa: PLR2004
        return False
    if 400 <= status < 500 and status not in listed:  # noqa: PLR2004
        return None
    return True
