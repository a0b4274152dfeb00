"""Waits between the attempts of one call."""

import random

import attrs

_NANOSECONDS = 1_000_000_000
_NANOSECONDS_PER_MILLISECOND = 1_000_000


@attrs.define(eq=False)
class Backoff:
    """Gives the waits of one call: random, so that calls that failed together don't come together.

    Each wait is a whole number of milliseconds below the interval, all equally likely, and at most
    `max_s`. The interval starts at `base_s` and doubles up to `max_s`; with the defaults it is 25,
    50, 100, 200 and from then on 250 ms.

    Source: the reference, "Retry decision", the formula as it was built.
    """

    base_s: float
    """First interval; positive."""
    max_s: float
    """Longest interval and wait; positive."""
    rng: random.Random
    # Whole nanoseconds: 0.07 s is 70.00000000000001 ms, which holds one millisecond too many.
    _interval_ns: int = attrs.field(init=False)

    @_interval_ns.default
    def _first_interval_ns(self) -> int:
        return round(self.base_s * _NANOSECONDS)

    def next_s(self) -> float:
        """Return the seconds to wait and move on to the next interval."""
        interval_ns = self._interval_ns
        max_ns = round(self.max_s * _NANOSECONDS)
        self._interval_ns = min(2 * interval_ns, max_ns)
        milliseconds = self.rng.randrange(-(-interval_ns // _NANOSECONDS_PER_MILLISECOND))
        # Merged layers may leave a base above the maximum.
        return min(milliseconds / 1000, self.max_s)


def retry_after_s(value: bytes | None, max_s: float | None, rng: random.Random) -> float | None:
    """Return the seconds that a response asks to wait, None if the back-off decides.

    Only a whole number of seconds counts, not a date. A random addition of less than half of it
    spreads the calls that were all told the same.

    Args:
        value: of the response's `retry-after`; None when it has none.
        max_s: the largest number obeyed, the addition aside; None or 0: none is.
        rng: of the addition, in whole milliseconds.

    Source: the reference, "Retry decision"; the digits are those of RFC 9110, section 10.2.3.
    """
    if value is None or not max_s:
        return None
    digits = value.strip(b" \t")
    if not digits.isdigit():
        return None
    # A float, because an int of very many digits is refused with an error.
    seconds = float(digits)
    if seconds > max_s:
        return None
    jitter_ms = rng.randrange(int(seconds) * 500) if seconds else 0
    return (int(seconds) * 1000 + jitter_ms) / 1000
