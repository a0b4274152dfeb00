"""The one absolute point in time by which a request must have ended."""

from math import inf

import msgspec


class Deadline(msgspec.Struct, frozen=True, gc=False):
    """An absolute deadline; retries, fallbacks and graph nodes share it and never extend it.

    `at` is monotonic seconds on the clock of the event loop; infinity means no deadline.
    """

    at: float = inf

    @classmethod
    def after(cls, now: float, timeout_s: float | None) -> "Deadline":
        """Return the deadline `timeout_s` seconds from `now`; None means no deadline."""
        return cls(inf if timeout_s is None else now + timeout_s)

    def narrowed(self, other: "Deadline") -> "Deadline":
        """Return the earlier of the two."""
        return self if self.at <= other.at else other

    def remaining_s(self, now: float) -> float:
        """Return the seconds left at `now`, never negative."""
        return max(self.at - now, 0.0)

    def has_passed(self, now: float) -> bool:
        """Return whether the deadline lies at or before `now`."""
        return now >= self.at


NO_DEADLINE = Deadline()
