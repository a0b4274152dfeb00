"""Counts of what happened to a cluster's attempts; plain numbers, told when somebody asks."""

from bisect import bisect_left
from collections import Counter

import attrs

DURATION_BOUNDS_S = tuple(0.005 * 2.5**step for step in range(13))
"""Upper bounds of the histogram of attempts. Source: the reference's metrics."""


@attrs.define(eq=False)
class HostStats:
    """Of one endpoint."""

    answers: list[int] = attrs.field(factory=lambda: [0] * 10, init=False)
    """Response heads by the first digit of their status."""
    failures: Counter[str] = attrs.field(factory=Counter, init=False)
    """Attempts without a response head, by kind of failure."""
    durations: list[int] = attrs.field(
        factory=lambda: [0] * (len(DURATION_BOUNDS_S) + 1), init=False
    )
    """Attempts by the first of `DURATION_BOUNDS_S` that they did not exceed; the rest is last."""
    seconds: float = attrs.field(default=0.0, init=False)
    """Of all attempts together."""
    egress_refusals: int = attrs.field(default=0, init=False)
    """Connections, those of health checks too, that no address was allowed for."""
    complete: int = attrs.field(default=0, init=False)
    """Bodies that were read to their end."""
    closed: int = attrs.field(default=0, init=False)
    """Bodies that were given up before."""
    broken: Counter[str] = attrs.field(factory=Counter, init=False)
    """Bodies that broke off, by kind of failure."""

    def answered(self, status: int, seconds: float) -> None:
        """Count an attempt that got a response head."""
        self.answers[status // 100] += 1
        self.durations[bisect_left(DURATION_BOUNDS_S, seconds)] += 1
        self.seconds += seconds

    def failed(self, kind: str, seconds: float) -> None:
        """Count an attempt that got none."""
        self.failures[kind] += 1
        self.durations[bisect_left(DURATION_BOUNDS_S, seconds)] += 1
        self.seconds += seconds

    def outcomes(self) -> Counter[str]:
        """Return the attempts by outcome: `2xx` and its like, or the kind of failure."""
        answers = {f"{digit}xx": count for digit, count in enumerate(self.answers) if count}
        return Counter({**answers, **self.failures})


@attrs.define(eq=False)
class ClusterStats:
    """Of one cluster, apart from its endpoints."""

    unplaced: Counter[str] = attrs.field(factory=Counter, init=False)
    """Attempts that got no endpoint, by kind of failure."""
    retries: Counter[str] = attrs.field(factory=Counter, init=False)
    """By the outcome of the attempt that was repeated."""
    overflows: Counter[str] = attrs.field(factory=Counter, init=False)
    """By the limit that refused."""
    ejections: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    """By endpoint and reason."""
    checks: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    """Active health checks by endpoint and result."""
    fallbacks: Counter[tuple[str, str]] = attrs.field(factory=Counter, init=False)
    """Failed calls of this model, by the class of failure and the model that was asked next."""
    fallback_stops: Counter[str] = attrs.field(factory=Counter, init=False)
    """Failed calls of this model that went on to no other one, by the reason."""
