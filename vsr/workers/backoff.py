"""How long something that ended waits before it is started again."""

import attrs

FIRST_S = 0.5
MAX_S = 30.0
STEADY_S = 30.0


@attrs.define
class Backoff:
    """At once after a steady life; else twice as long as the time before.

    The waits after lives shorter than `steady_s` are 0, `first_s`, 2 `first_s`, 4 `first_s`, and so
    on up to `max_s`.
    """

    first_s: float = FIRST_S
    max_s: float = MAX_S
    steady_s: float = STEADY_S
    """A life of at least this was steady: its end has nothing to do with those before."""
    _next_s: float = attrs.field(default=0.0, init=False)

    def delay_s(self, lived_s: float) -> float:
        """Return how long to wait after a life of `lived_s`."""
        if lived_s >= self.steady_s:
            self._next_s = 0.0
        delay_s = self._next_s
        self._next_s = min(self.max_s, max(self.first_s, 2 * delay_s))
        return delay_s
