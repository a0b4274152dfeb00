"""Least request: the less busy of two hosts, or a turn that comes later for a busy one."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.upstream.policy.balancer_picks import (
    NOW,
    UNEQUAL_WEIGHTS,
    busy,
    drawing,
    picks,
    starting_at,
    using,
    weighing,
)
from vsr.upstream.policy.balancer import LeastRequest, RoundRobin


@given(
    active=st.lists(st.integers(0, 5), min_size=2, max_size=6),
    places=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
@settings(deadline=None)
def test_less_busy_of_two_is_picked(active: list[int], places: tuple[int, int]) -> None:
    """The first if they are equally busy, or the same."""
    hosts = busy(*active)
    first, second = (hosts[place % len(hosts)] for place in places)
    drawn = drawing(len(hosts), hosts.index(first), hosts.index(second))

    picked = using(LeastRequest(drawn), hosts).pick(NOW)

    assert picked is min(first, second, key=lambda host: host.active)


@given(weights=UNEQUAL_WEIGHTS, number=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_idle_hosts_of_unequal_weights_are_taken_in_turn(weights: list[int], number: int) -> None:
    """Least request is then no other than round robin."""
    balancer = using(LeastRequest(starting_at(number)), weighing(*weights))
    in_turn = using(RoundRobin(starting_at(number)), weighing(*weights))
    rounds = 2 * sum(weights)

    assert picks(balancer, rounds) == picks(in_turn, rounds)


def test_busy_host_weighs_less_when_schedule_is_built() -> None:
    """Weight 2 with three calls under way is half a share: its first turn is due at 2."""
    hosts = weighing(2, 1)
    hosts[0].active = 3

    balancer = using(LeastRequest(starting_at(0)), hosts)
    hosts[0].active = 0

    assert picks(balancer, 6) == "101010"


def test_busy_host_weighs_less_when_its_turn_is_given_out() -> None:
    """Taken at 1/2 with three calls under way, its next turn is due at 5/2."""
    hosts = weighing(2, 1)
    balancer = using(LeastRequest(starting_at(0)), hosts)

    hosts[0].active = 3

    assert picks(balancer, 6) == "011011"


@given(
    hosts=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 5)), min_size=2, max_size=5).filter(
        lambda hosts: len({weight for weight, _ in hosts}) > 1
    ),
    number=st.integers(0, 200),
)
@example(hosts=[(1, 0), (2, 1)], number=1)
@settings(deadline=None, max_examples=300)
def test_schedule_of_busy_hosts_starts_as_if_picks_had_been_made(
    hosts: list[tuple[int, int]], number: int
) -> None:
    """With the calls under way that there are when it is built."""
    weighed = weighing(*[weight for weight, _ in hosts])
    for host, (_, active) in zip(weighed, hosts, strict=True):
        host.active = active
    balancer = using(LeastRequest(starting_at(number)), weighed)
    fresh = using(LeastRequest(starting_at(0)), weighed)

    picks(fresh, number)

    assert picks(balancer, 40) == picks(fresh, 40)
