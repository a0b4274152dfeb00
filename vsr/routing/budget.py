"""The budget of one request: hops, tokens, cost, reserved before and settled after each call."""

from typing import Protocol

import msgspec


class Reservation(msgspec.Struct, eq=False, gc=False):
    """What one attempt may spend at most."""

    model: str
    tokens: int | None
    """Prompt bound plus output bound; None where no limit asks for them."""
    used_tokens: int | None = None
    """Real usage; None while open, and for good when the backend did not say."""
    is_settled: bool = False


class Spend(Protocol):
    """What a call may still spend: its first attempt is reserved for, further ones must ask."""

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Reserve for one attempt more; False refuses, and then it may not be made.

        Args:
            is_known_zero: whether the attempt before surely used nothing. If not, what was
                reserved for it is its price.
        """
        ...
