"""How many retries of one cluster may run at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.resources.reliability import BreakerLimits, RetryBudget
from vsr.upstream.policy.retry_slots import RetrySlots


def acquired(slots: RetrySlots, *, running: int, tries: int = 300) -> int:
    """Return how many of the tries get a slot while as many calls run."""
    return sum(slots.try_acquire(running=running) for _ in range(tries))


@pytest.mark.parametrize("running", [0, 1, 3, 1000])
def test_limit_holds_whatever_runs_without_a_budget(running: int) -> None:
    """Three per cluster by default, in a calm cluster as in a busy one."""
    assert acquired(RetrySlots(BreakerLimits().max_retries, None), running=running) == 3


def test_limit_of_zero_allows_no_retry() -> None:
    """The first one is refused already."""
    assert not RetrySlots(0, None).try_acquire(running=1000)


def test_refused_retry_takes_no_slot() -> None:
    """However often it is tried, one release makes room for exactly one."""
    slots = RetrySlots(2, None)
    acquired(slots, running=0)

    slots.release()

    assert acquired(slots, running=0) == 1


def test_slot_is_held_until_it_is_released() -> None:
    """A slot taken before the wait counts until its attempt has an outcome."""
    slots = RetrySlots(1, None)

    assert slots.try_acquire(running=5)
    assert slots.taken == 1
    assert not slots.try_acquire(running=5)
    slots.release()
    assert slots.taken == 0
    assert slots.try_acquire(running=5)


@pytest.mark.parametrize(
    ("running", "slots"), [(20, 4), (24, 4), (25, 5), (99, 19), (100, 20), (1000, 200)]
)
def test_budget_is_a_share_of_the_running_calls_rounded_down(running: int, slots: int) -> None:
    """A fifth of the calls that are active or waiting, by default."""
    assert acquired(RetrySlots(3, RetryBudget()), running=running) == slots


@pytest.mark.parametrize("running", [0, 1, 5, 14, 15, 19])
def test_budget_allows_its_minimum_when_few_calls_run(running: int) -> None:
    """Three by default, even if the share comes to less."""
    assert acquired(RetrySlots(3, RetryBudget()), running=running) == 3


def test_budget_replaces_the_limit() -> None:
    """It may allow more retries than the fixed limit, or fewer."""
    budget = RetryBudget(percent=10.0, min_concurrency=1)

    assert acquired(RetrySlots(3, budget), running=100) == 10
    assert acquired(RetrySlots(3, budget), running=10) == 1


def test_budget_of_nothing_allows_no_retry() -> None:
    """Zero percent with a minimum of zero turns retries off."""
    budget = RetryBudget(percent=0.0, min_concurrency=0)

    assert acquired(RetrySlots(3, budget), running=1000) == 0


def test_budget_may_be_all_running_calls() -> None:
    """A hundred percent is one retry per call."""
    budget = RetryBudget(percent=100.0, min_concurrency=0)

    assert acquired(RetrySlots(3, budget), running=7) == 7


def test_budget_percent_may_be_a_fraction() -> None:
    """Half a percent of a thousand calls is five; of 999 it is four."""
    budget = RetryBudget(percent=0.5, min_concurrency=0)

    assert acquired(RetrySlots(3, budget), running=1000) == 5
    assert acquired(RetrySlots(3, budget), running=999) == 4


def test_budget_is_weighed_at_each_retry() -> None:
    """Slots taken in busy times stay taken, but no further one is given out in calm ones."""
    slots = RetrySlots(3, RetryBudget())
    acquired(slots, running=100)

    slots.release()

    assert slots.taken == 19
    assert not slots.try_acquire(running=50)
    assert slots.taken == 19
    assert slots.try_acquire(running=100)


def test_release_without_a_slot_is_refused() -> None:
    """A count below zero would let more retries through than the limit, for ever."""
    slots = RetrySlots(1, None)

    with pytest.raises(RuntimeError, match="nobody took"):
        slots.release()

    assert slots.taken == 0
    assert acquired(slots, running=0) == 1


@given(
    limit=st.integers(0, 5),
    budget=st.none()
    | st.builds(RetryBudget, percent=st.floats(0, 100), min_concurrency=st.integers(0, 5)),
    steps=st.lists(st.none() | st.integers(0, 60), max_size=60),
)
@settings(deadline=None)
def test_slots_return_to_zero(
    limit: int, budget: RetryBudget | None, steps: list[int | None]
) -> None:
    """Over any taking (calls running) and releasing (None), never above the bound of the moment."""
    slots = RetrySlots(limit, budget)
    held = 0
    for running in steps:
        if running is None:
            if held:
                slots.release()
                held -= 1
        elif slots.try_acquire(running=running):
            held += 1
            bound = max(budget.min_concurrency, budget.percent * running / 100) if budget else limit
            assert held <= bound
        assert slots.taken == held

    for _ in range(held):
        slots.release()

    assert slots.taken == 0
