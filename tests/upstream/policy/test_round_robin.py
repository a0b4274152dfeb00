"""Round robin: hosts in turn, each as often as it weighs."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.upstream.policy.balancer_picks import (
    UNEQUAL_WEIGHTS,
    picks,
    seeded,
    shares,
    starting_at,
    using,
    weighing,
)
from vsr.upstream.policy.balancer import RoundRobin

OFFSETS = 429_496_729


@given(count=st.integers(1, 8), weight=st.integers(1, 100), start=st.integers(0, 2**64 - 1))
@example(count=3, weight=1, start=2**63)
@settings(deadline=None)
def test_equal_weights_rotate(count: int, weight: int, start: int) -> None:
    """In order, from a random place out of 2^64, without end."""
    balancer = using(RoundRobin(starting_at(start)), weighing(*[weight] * count))

    order = [int(name) for name in picks(balancer, 3 * count)]

    assert order == [(start + step) % count for step in range(3 * count)]


def test_rotation_goes_on_when_hosts_change() -> None:
    """Else hosts that come and go would bring the first ones more than their share."""
    balancer = using(RoundRobin(starting_at(0)), weighing(1, 1, 1))
    assert picks(balancer, 4) == "0120"

    balancer.use(weighing(1, 1, 1, 1, 1))

    assert picks(balancer, 3) == "401"


@given(
    weights=st.lists(st.integers(1, 12), min_size=2, max_size=5),
    start=st.integers(0, 2**32 - 1),
    rounds=st.integers(1, 3),
)
@example(weights=[4, 1, 5], start=8, rounds=1)
@example(weights=[2, 1], start=2, rounds=1)
@settings(deadline=None, max_examples=300)
def test_shares_are_exact(weights: list[int], start: int, rounds: int) -> None:
    """As many picks as the weights add up to give each host its weight, from any start."""
    balancer = using(RoundRobin(starting_at(start)), weighing(*weights))

    for _ in range(rounds):
        assert shares(picks(balancer, sum(weights)), len(weights)) == weights


def test_shares_are_exact_with_large_weights() -> None:
    """Percentages are common."""
    weights = [1, 9, 20, 70]
    balancer = using(RoundRobin(seeded(7)), weighing(*weights))

    for _ in range(50):
        assert shares(picks(balancer, 100), 4) == weights


@pytest.mark.parametrize(
    ("weights", "order"), [((2, 1), "010"), ((1, 2, 3), "212012"), ((3, 1, 3), "0202102")]
)
def test_earliest_turn_goes_first(weights: tuple[int, ...], order: str) -> None:
    """A turn comes 1/weight after the last; what was given out earlier breaks a tie."""
    balancer = using(RoundRobin(starting_at(0)), weighing(*weights))

    assert picks(balancer, 3 * len(order)) == 3 * order


@given(weights=UNEQUAL_WEIGHTS, number=st.integers(0, 2**32 - 1))
@example(weights=[1, 2], number=OFFSETS)
@settings(deadline=None, max_examples=300)
def test_schedule_starts_as_if_picks_had_been_made(weights: list[int], number: int) -> None:
    """As many as the random number says; whole rounds of them make no difference."""
    balancer = using(RoundRobin(starting_at(number)), weighing(*weights))
    fresh = using(RoundRobin(starting_at(0)), weighing(*weights))
    rounds = 2 * sum(weights)

    picks(fresh, number % OFFSETS % sum(weights))

    assert picks(balancer, rounds) == picks(fresh, rounds)


def test_round_robin_does_not_mind_busy_hosts() -> None:
    """Neither when the schedule is built nor later."""
    hosts = weighing(2, 1)
    hosts[0].active = 3

    assert picks(using(RoundRobin(starting_at(0)), hosts), 6) == "010010"
