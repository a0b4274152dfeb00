"""The budget of one request: hops, tokens, cost, reserved before and settled after each call."""

from typing import Protocol

import msgspec

from vsr.routing.outcome import Usage


class Reservation(msgspec.Struct, eq=False, gc=False):
    """What one attempt may spend at most."""

    model: str
    tokens: int | None
    """Prompt bound plus output bound; None where no limit asks for them."""
    used_tokens: int | None = None
    """Real usage; None while open, and for good when the backend did not say."""
    is_settled: bool = False


class Spend(Protocol):
    """Asked before every attempt, told after it."""

    def admit(
        self, model: str, prompt_bound_tokens: int, output_bound_tokens: int
    ) -> Reservation | None:
        """Reserve for one attempt; None refuses, and then no call may be made."""
        ...

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace the reservation by the real usage; None keeps the reservation as the price."""
        ...
