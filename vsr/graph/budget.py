"""The budget of one request: what may be spent, what is reserved, what was spent."""

import msgspec

from vsr.routing.budget import Reservation
from vsr.routing.outcome import Usage


class Limits(msgspec.Struct, frozen=True):
    """Ceilings of one request; None means no ceiling."""

    max_hops: int | None = None
    max_tokens: int | None = None


UNLIMITED = Limits()


class Budget(msgspec.Struct, eq=False, gc=False):
    """Reserves before each attempt and settles after it; never lets the ceilings be passed.

    Everything happens in synchronous methods, so concurrent branches need no lock.
    """

    limits: Limits = UNLIMITED
    hops: int = 0
    reserved_tokens: int = 0
    """Bounds of the attempts that are under way."""
    spent_tokens: int = 0
    is_overrun: bool = False
    """Whether a backend reported more than was reserved; then nothing more is admitted."""

    @property
    def needs_bounds(self) -> bool:
        """Return whether `admit` looks at token bounds; if not, callers need not compute them."""
        return self.limits.max_tokens is not None

    def admit(
        self, model: str, prompt_bound_tokens: int, output_bound_tokens: int
    ) -> Reservation | None:
        """Reserve for one attempt; None refuses, and then no call may be made."""
        limits = self.limits
        if limits is UNLIMITED:
            self.hops += 1
            return Reservation(model, None)
        if self.is_overrun or (limits.max_hops is not None and self.hops >= limits.max_hops):
            return None
        if limits.max_tokens is None:
            self.hops += 1
            return Reservation(model, None)
        bound = prompt_bound_tokens + output_bound_tokens
        if self.spent_tokens + self.reserved_tokens + bound > limits.max_tokens:
            return None
        self.hops += 1
        self.reserved_tokens += bound
        return Reservation(model, bound)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace the reservation by the real usage; None keeps the reservation as the price.

        Settling twice changes nothing.
        """
        if reservation.is_settled:
            return
        reservation.is_settled = True
        bound = reservation.tokens
        if bound is not None:
            self.reserved_tokens -= bound
        if usage is None:
            self.spent_tokens += bound or 0
            return
        used = reservation.used_tokens = usage.prompt_tokens + usage.completion_tokens
        self.spent_tokens += used
        if bound is not None and used > bound:
            self.is_overrun = True
