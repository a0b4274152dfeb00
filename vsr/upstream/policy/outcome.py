"""How one attempt ended, as the policies see it."""

from enum import StrEnum

import msgspec

from vsr.routing.outcome import TransportFact


class FailureKind(StrEnum):
    """What kept an attempt from a response head, or broke its body. Source: the reference."""

    CONNECT_FAILURE = "connect_failure"
    REFUSED_STREAM = "refused_stream"
    RESET = "reset"
    """Broken off, closed early, or a response that breaks HTTP."""
    TIMEOUT = "timeout"
    OVERFLOW = "overflow"
    NO_HEALTHY_UPSTREAM = "no_healthy_upstream"
    CANCELLED = "cancelled"
    """Nobody waits for it any more."""


class TimeoutStage(StrEnum):
    """Which limit passed."""

    PER_TRY = "per_try"
    FIRST_BYTE = "first_byte"
    TOTAL = "total"
    IDLE = "idle"


class AttemptOutcome(msgspec.Struct, frozen=True):
    """The end of one attempt: a response head, or a failure."""

    status: int | None = None
    """None exactly if there is a `failure`."""
    failure: FailureKind | None = None
    stage: TimeoutStage | None = None
    """Of a timeout."""
    fact: TransportFact = TransportFact.NOT_CONNECTED
    """The last thing known to have happened on the wire."""
    is_ratelimited: bool = False
    """Whether the response has an `x-envoy-ratelimited` header, whatever its value."""
    retry_after: bytes | None = None
    """Value of the response's `retry-after`."""

    @property
    def label(self) -> str:
        """Return what counters call it: `5xx` and its like, or the kind of failure."""
        return f"{self.status // 100}xx" if self.status is not None else str(self.failure)

    @property
    def is_known_zero(self) -> bool:
        """Return whether the backend surely did nothing for the call."""
        return (
            self.fact <= TransportFact.CONNECTED or self.failure is FailureKind.REFUSED_STREAM
        ) and self.status is None
