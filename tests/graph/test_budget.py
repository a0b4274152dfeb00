"""The budget of one request."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.budget import Budget, Limits
from vsr.routing.budget import Price, Reservation
from vsr.routing.outcome import Usage


def admitted(budget: Budget, prompt: int, output: int) -> Reservation:
    """Reserve, which must succeed."""
    reservation = budget.admit("alpha", prompt, output)
    assert reservation is not None
    return reservation


def test_unlimited_budget_admits_everything_and_needs_no_bounds() -> None:
    """A plain request pays nothing for the budget; what it used is counted all the same."""
    budget = Budget()
    assert not budget.needs_bounds

    reservations = [admitted(budget, 10**9, 10**9) for _ in range(10)]
    budget.settle(reservations[0], Usage(7, 5))
    budget.settle(reservations[1], None)

    assert budget.hops == 10
    assert reservations[0].tokens is None
    assert (budget.spent_tokens, budget.reserved_tokens) == (12, 0)
    assert not budget.is_overrun


def test_hops_are_limited() -> None:
    """Retries and fallbacks are hops too, and a finished one stays counted."""
    budget = Budget(Limits(max_hops=2))
    budget.settle(admitted(budget, 1, 1), Usage(1, 1))
    admitted(budget, 1, 1)

    assert budget.admit("alpha", 1, 1) is None
    assert budget.hops == 2


def test_tokens_are_reserved_before_the_call() -> None:
    """Prompt and output bound together, to the last token."""
    budget = Budget(Limits(max_tokens=100))
    assert budget.needs_bounds

    first = admitted(budget, 30, 30)
    assert (first.model, first.tokens, budget.reserved_tokens) == ("alpha", 60, 60)
    assert budget.admit("alpha", 20, 21) is None
    admitted(budget, 20, 20)

    assert budget.reserved_tokens == 100
    assert budget.hops == 2


def test_settling_gives_back_what_was_not_used() -> None:
    """So later calls can have it."""
    budget = Budget(Limits(max_tokens=100))
    reservation = admitted(budget, 30, 70)

    budget.settle(reservation, Usage(30, 10))

    assert (budget.spent_tokens, budget.reserved_tokens) == (40, 0)
    assert reservation.is_settled
    assert reservation.used_tokens == 40
    assert budget.admit("alpha", 30, 30) is not None


def test_unknown_usage_keeps_the_reservation_as_the_price() -> None:
    """Unknown is never zero, and it stays marked unknown."""
    budget = Budget(Limits(max_tokens=100))
    reservation = admitted(budget, 30, 60)

    budget.settle(reservation, None)

    assert (budget.spent_tokens, budget.reserved_tokens) == (90, 0)
    assert reservation.used_tokens is None
    assert budget.admit("alpha", 10, 1) is None


@pytest.mark.parametrize("again", [None, Usage(1, 1), Usage(500, 500)])
@pytest.mark.parametrize("first", [None, Usage(10, 10)])
def test_settling_twice_changes_nothing(first: Usage | None, again: Usage | None) -> None:
    """Client, deadline and backend may all end a call."""
    budget = Budget(Limits(max_tokens=100))
    reservation = admitted(budget, 30, 30)
    budget.settle(reservation, first)
    before = (budget.spent_tokens, budget.reserved_tokens, reservation.used_tokens)

    budget.settle(reservation, again)

    assert (budget.spent_tokens, budget.reserved_tokens, reservation.used_tokens) == before
    assert not budget.is_overrun


def test_overrun_exhausts_the_budget() -> None:
    """A backend that ignored its bound has spent what others had; nothing more is admitted."""
    budget = Budget(Limits(max_tokens=1000))
    running = admitted(budget, 10, 10)
    budget.settle(admitted(budget, 10, 10), Usage(10, 11))

    assert budget.is_overrun
    assert budget.admit("alpha", 1, 1) is None
    budget.settle(running, Usage(10, 10))
    assert budget.admit("alpha", 1, 1) is None
    assert budget.spent_tokens == 41


@pytest.mark.parametrize(
    ("limits", "used", "is_overrun"),
    [
        (Limits(max_tokens=1000), Usage(12, 8), False),
        (Limits(max_prompt_tokens=1000), Usage(12, 8), True),
        (Limits(max_completion_tokens=1000), Usage(12, 8), False),
        (Limits(max_completion_tokens=1000), Usage(8, 12), True),
        (Limits(max_prompt_tokens=1000), Usage(8, 12), False),
        (Limits(max_cost_nano_usd=10**9), Usage(8, 12), True),
        (Limits(max_cost_nano_usd=10**9), Usage(12, 8), False),
    ],
)
def test_more_than_reserved_of_anything_that_has_a_ceiling_is_an_overrun(
    limits: Limits, used: Usage, *, is_overrun: bool
) -> None:
    """Ten tokens each were reserved; those of the answer cost more."""
    budget = Budget(limits)
    reservation = budget.admit("alpha", 10, 10, Price(1.0, 2.0))
    assert reservation is not None

    budget.settle(reservation, used)

    assert budget.is_overrun is is_overrun


def test_cost_is_reserved_and_settled_in_billionths_of_a_dollar() -> None:
    """A model without a price is within no ceiling."""
    budget = Budget(Limits(max_cost_nano_usd=100_000))
    first = budget.admit("alpha", 10, 20, Price(1.0, 2.0))
    assert first is not None
    assert (first.cost_nano_usd, budget.reserved_nano_usd) == (50_000, 50_000)

    budget.settle(first, Usage(10, 5))

    assert (budget.reserved_nano_usd, budget.spent_nano_usd) == (0, 20_000)
    assert budget.admit("alpha", 10, 36, Price(1.0, 2.0)) is None
    assert budget.admit("alpha", 1, 1) is None
    assert budget.admit("alpha", 10, 35, Price(1.0, 2.0)) is not None


def test_budget_inside_another_one_is_never_wider() -> None:
    """It reserves in both, and settles in both."""
    outer = Budget(Limits(max_hops=3, max_tokens=100))
    inner = Budget(Limits(max_hops=9, max_tokens=1000), outer=outer)
    reservation = admitted(inner, 30, 30)

    assert inner.admit("alpha", 30, 30) is None
    assert (inner.is_refusing, outer.is_refusing) == (True, True)
    inner.settle(reservation, Usage(30, 10))

    assert (outer.spent_tokens, outer.reserved_tokens, outer.hops) == (40, 0, 1)
    assert (inner.spent_tokens, inner.reserved_tokens, inner.hops) == (40, 0, 1)


def test_refusal_by_the_inner_ceilings_is_none_of_the_outer_budget() -> None:
    """Which has room."""
    outer = Budget(Limits(max_hops=3))
    inner = Budget(Limits(max_hops=0), outer=outer)

    assert inner.admit("alpha", 1, 1) is None

    assert (inner.is_refusing, outer.is_refusing, outer.hops) == (True, False, 0)


def test_limits_around_ask_for_bounds_of_a_budget_without_any() -> None:
    """It is as narrow as theirs."""
    assert Budget(outer=Budget(Limits(max_tokens=1))).needs_bounds
    assert not Budget(outer=Budget(Limits(max_hops=1))).needs_bounds


_acts = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), st.integers(0, 40), st.integers(0, 40)),
        st.tuples(st.just("settle"), st.integers(0, 10), st.integers(0, 40)),
        st.tuples(st.just("settle exactly"), st.integers(0, 10), st.just(0)),
        st.tuples(st.just("settle unknown"), st.integers(0, 10), st.just(0)),
        st.tuples(st.just("settle again"), st.integers(0, 10), st.integers(0, 100)),
        st.tuples(st.just("overrun"), st.integers(0, 10), st.integers(1, 50)),
    ),
    max_size=30,
)


@given(
    max_hops=st.none() | st.integers(0, 8), max_tokens=st.none() | st.integers(0, 200), acts=_acts
)
@settings(deadline=None, max_examples=300)
def test_ceilings_hold_whatever_the_order_of_events(
    max_hops: int | None, max_tokens: int | None, acts: list[tuple[str, int, int]]
) -> None:
    """Never admits past a ceiling, never refuses what fits, and its sums are those of its parts."""
    budget = Budget(Limits(max_hops, max_tokens))
    under_way: list[Reservation] = []
    settled: list[Reservation] = []
    spent = hops = 0
    overrun = False

    for act, first, second in acts:
        if act == "admit":
            reserved = sum(reservation.tokens or 0 for reservation in under_way)
            fits = (
                not overrun
                and (max_hops is None or hops < max_hops)
                and (max_tokens is None or spent + reserved + first + second <= max_tokens)
            )
            reservation = budget.admit("alpha", first, second)
            assert (reservation is not None) is fits
            if reservation is not None:
                hops += 1
                under_way.append(reservation)
        elif act == "settle again" and settled:
            budget.settle(settled[first % len(settled)], Usage(second, second))
        elif under_way and act != "settle again":
            reservation = under_way.pop(first % len(under_way))
            settled.append(reservation)
            bound = reservation.tokens or 0
            used = {
                "settle": min(second, bound),
                "overrun": bound + second,
                "settle exactly": bound,
            }.get(act)
            budget.settle(reservation, None if used is None else Usage(used, 0))
            spent += bound if used is None else used
            overrun = overrun or (max_tokens is not None and act == "overrun")

        assert budget.hops == hops
        assert budget.spent_tokens == spent
        assert budget.reserved_tokens == sum(item.tokens or 0 for item in under_way)
        assert budget.is_overrun is overrun
        if max_tokens is not None and not overrun:
            assert budget.spent_tokens + budget.reserved_tokens <= max_tokens
