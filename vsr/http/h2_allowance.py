"""How much of what costs a server more than its client one HTTP/2 connection may send."""

import attrs


@attrs.define
class Allowance:
    """A bucket that refills with time and with useful work; holds no clock."""

    most: float
    per_s: float
    _left: float = attrs.field(init=False)
    _at: float = attrs.field(default=0.0, init=False)

    @_left.default
    def _full(self) -> float:
        return self.most

    def may_spend(self, now: float) -> bool:
        """Take one if one is left, and return whether it was (`now`: monotonic seconds)."""
        if now > self._at:
            self._left = min(self.most, self._left + (now - self._at) * self.per_s)
            self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def earn(self, count: int) -> None:
        """Give back for useful work."""
        self._left = min(self.most, self._left + count)
