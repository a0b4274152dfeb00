"""The budget of one request: what may be spent, what is reserved, what was spent."""

import msgspec

from vsr.routing.budget import Price, Reservation
from vsr.routing.outcome import Usage


class Limits(msgspec.Struct, frozen=True):
    """Ceilings of one request; None means no ceiling."""

    max_hops: int | None = None
    max_tokens: int | None = None
    max_prompt_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_cost_nano_usd: int | None = None


UNLIMITED = Limits()
DEFAULT_OUTPUT_TOKENS = 4_096
"""The longest answer, where a limit needs to know it and nobody says."""


class Budget(msgspec.Struct, eq=False, gc=False):
    """Reserves before each attempt and settles after it; never lets the ceilings be passed.

    Everything happens in synchronous methods, so concurrent branches need no lock. A nested
    graph's budget reserves in the one around it, too, so it can only be narrower.
    """

    limits: Limits = UNLIMITED
    hops: int = 0
    reserved_tokens: int = 0
    """Bounds of the attempts that are under way."""
    spent_tokens: int = 0
    is_overrun: bool = False
    """Whether a backend reported more than was reserved; then nothing more is admitted."""
    outer: "Budget | None" = None
    reserved_nano_usd: int = 0
    spent_nano_usd: int = 0
    reserved_prompt_tokens: int = 0
    spent_prompt_tokens: int = 0
    is_refusing: bool = False
    """Whether the last reservation was refused by its own ceilings, or by those around it."""

    @property
    def needs_bounds(self) -> bool:
        """Return whether `admit` looks at token bounds; if not, callers need not compute them."""
        limits = self.limits
        if limits is UNLIMITED and self.outer is None:
            return False
        own = limits.max_tokens, limits.max_prompt_tokens, limits.max_completion_tokens
        if any(each is not None for each in (*own, limits.max_cost_nano_usd)):
            return True
        return self.outer is not None and self.outer.needs_bounds

    def admit(
        self,
        model: str,
        prompt_bound_tokens: int,
        output_bound_tokens: int,
        price: Price | None = None,
    ) -> Reservation | None:
        """Reserve for one attempt; None refuses, and then no call may be made.

        Args:
            model: alias.
            prompt_bound_tokens: of its prompt, at most.
            output_bound_tokens: of its answer, at most.
            price: of the model; None where it has none, and then a ceiling of cost refuses it.
        """
        if self.limits is UNLIMITED and self.outer is None:
            self.hops += 1
            return Reservation(model, None)
        if not self.needs_bounds:
            return self._admit(Reservation(model, None))
        tokens = prompt_bound_tokens + output_bound_tokens
        cost = (
            None
            if price is None
            else price.bound_nano_usd(prompt_bound_tokens, output_bound_tokens)
        )
        return self._admit(Reservation(model, tokens, prompt_bound_tokens, cost, price))

    def _admit(self, wanted: Reservation) -> Reservation | None:
        if self.refuses(wanted):
            return None
        budget: Budget | None = self
        while budget is not None:
            budget.hops += 1
            budget.reserved_tokens += wanted.tokens or 0
            budget.reserved_prompt_tokens += wanted.prompt_tokens
            budget.reserved_nano_usd += wanted.cost_nano_usd or 0
            budget = budget.outer
        return wanted

    def refuses(self, wanted: Reservation) -> bool:
        """Note and return whether its own ceilings, or those around it, leave no room."""
        is_refused_around = self.outer is not None and self.outer.refuses(wanted)
        self.is_refusing = is_refused_around or not self.has_room(wanted)
        return self.is_refusing

    def has_room(self, wanted: Reservation) -> bool:
        """Return whether the own ceilings leave room for one attempt more."""
        limits, tokens = self.limits, wanted.tokens or 0
        if self.is_overrun or _is_over(self.hops + 1, limits.max_hops):
            return False
        all_tokens = self.spent_tokens + self.reserved_tokens
        all_prompt = self.spent_prompt_tokens + self.reserved_prompt_tokens
        prompt = all_prompt + wanted.prompt_tokens
        if _is_over(all_tokens + tokens, limits.max_tokens):
            return False
        if _is_over(prompt, limits.max_prompt_tokens):
            return False
        if _is_over(all_tokens + tokens - prompt, limits.max_completion_tokens):
            return False
        if limits.max_cost_nano_usd is None:
            return True
        # What a model without a price would cost is unknown, hence not within any ceiling.
        cost = self.spent_nano_usd + self.reserved_nano_usd + (wanted.cost_nano_usd or 0)
        return wanted.cost_nano_usd is not None and cost <= limits.max_cost_nano_usd

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Replace the reservation by the real usage; None keeps the reservation as the price.

        Settling twice changes nothing.
        """
        if reservation.is_settled:
            return
        reservation.is_settled = True
        if usage is not None:
            reservation.used_tokens = usage.prompt_tokens + usage.completion_tokens
            if reservation.price is not None:
                reservation.used_nano_usd = reservation.price.of(usage)
        budget: Budget | None = self
        while budget is not None:
            budget.settle_own(reservation, usage)
            budget = budget.outer

    def settle_own(self, reservation: Reservation, usage: Usage | None) -> None:
        """Settle here alone; see `settle`."""
        bound, cost = reservation.tokens, reservation.cost_nano_usd or 0
        if bound is not None:
            self.reserved_tokens -= bound
            self.reserved_prompt_tokens -= reservation.prompt_tokens
            self.reserved_nano_usd -= cost
        if usage is None:
            self.spent_tokens += bound or 0
            self.spent_prompt_tokens += reservation.prompt_tokens
            self.spent_nano_usd += cost
            return
        used = usage.prompt_tokens + usage.completion_tokens
        self.spent_tokens += used
        self.spent_prompt_tokens += usage.prompt_tokens
        self.spent_nano_usd += reservation.used_nano_usd or 0
        if bound is not None and self._has_overrun(reservation, usage):
            self.is_overrun = True

    def _has_overrun(self, reservation: Reservation, usage: Usage) -> bool:
        """Return whether more was used than reserved of anything that has a ceiling."""
        limits, tokens = self.limits, reservation.tokens or 0
        prompt, cost = reservation.prompt_tokens, reservation.cost_nano_usd
        if usage.prompt_tokens + usage.completion_tokens > tokens:
            return True
        if limits.max_prompt_tokens is not None and usage.prompt_tokens > prompt:
            return True
        if limits.max_completion_tokens is not None and usage.completion_tokens > tokens - prompt:
            return True
        has_ceiling = limits.max_cost_nano_usd is not None and cost is not None
        return has_ceiling and (reservation.used_nano_usd or 0) > (cost or 0)


def _is_over(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit
