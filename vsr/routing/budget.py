"""The budget of one request: hops, tokens, cost, reserved before and settled after each call."""

from math import ceil
from typing import Protocol

import msgspec

from vsr.routing.outcome import Usage

_NANO = 1_000
"""A price per million tokens is so many thousandths of a dollar per token, in billionths."""


class Price(msgspec.Struct, frozen=True):
    """What a model costs: dollars per million tokens."""

    prompt_per_1m: float
    completion_per_1m: float
    currency: str = "USD"
    """What the prices are in; budgets take it for dollars."""

    def bound_nano_usd(self, prompt_tokens: int, output_tokens: int) -> int:
        """Return what a call costs at most, in billionths of a dollar."""
        cost = prompt_tokens * self.prompt_per_1m + output_tokens * self.completion_per_1m
        return ceil(cost * _NANO)

    def of(self, usage: Usage) -> int:
        """Return what a call has cost, in billionths of a dollar."""
        prompt = usage.prompt_tokens * self.prompt_per_1m
        return round((prompt + usage.completion_tokens * self.completion_per_1m) * _NANO)


class Reservation(msgspec.Struct, eq=False, gc=False):
    """What one attempt may spend at most."""

    model: str
    tokens: int | None
    """Prompt bound plus output bound; None where no limit asks for them."""
    prompt_tokens: int = 0
    """The prompt's part of them."""
    cost_nano_usd: int | None = None
    """In billionths of a dollar; None where no limit asks for it or the model has no price."""
    price: Price | None = None
    used_tokens: int | None = None
    """Real usage; None while open, and for good when the backend did not say."""
    used_nano_usd: int | None = None
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
