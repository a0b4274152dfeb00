"""What load balancers have in common: all of them, or those that draw or take turns."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.policy.balancer_picks import (
    NOW,
    busy,
    drawing,
    picks,
    seeded,
    shares,
    starting_at,
    using,
    weighing,
)
from vsr.resources.reliability import LbPolicy
from vsr.upstream.policy.balancer import LeastRequest, PeakEwma, RoundRobin, make_balancer


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (LbPolicy.ROUND_ROBIN, RoundRobin),
        (LbPolicy.LEAST_REQUEST, LeastRequest),
        (LbPolicy.P2C_EWMA, PeakEwma),
    ],
)
def test_policy_has_its_balancer(policy: LbPolicy, kind: type) -> None:
    """The words of the configuration."""
    assert type(make_balancer(policy, seeded(7))) is kind


@pytest.mark.parametrize("policy", LbPolicy)
def test_no_host_is_picked_from_none(policy: LbPolicy) -> None:
    """At first, and when there are no more."""
    balancer = make_balancer(policy, seeded(7))
    assert balancer.pick(NOW) is None
    balancer.use(weighing(1, 2))

    balancer.use([])

    assert balancer.pick(NOW) is None


@pytest.mark.parametrize("policy", LbPolicy)
def test_only_host_is_always_picked(policy: LbPolicy) -> None:
    """Whatever its weight and however it is doing; nothing is drawn for it."""
    host = weighing(5)[0]
    host.active, host.latency_s = 9, 60.0
    balancer = using(make_balancer(policy, drawing(1)), [host])

    assert picks(balancer, 3) == "000"


@given(
    policy=st.sampled_from(LbPolicy),
    seed=st.integers(0, 99),
    weights=st.lists(st.integers(1, 3), min_size=4, max_size=8),
    uses=st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=4),
)
@settings(deadline=None)
def test_picks_are_among_the_hosts_in_use(
    policy: LbPolicy, seed: int, weights: list[int], uses: list[set[int]]
) -> None:
    """A host that left gets nothing more, one that came is no stranger."""
    hosts = weighing(*weights)
    balancer = make_balancer(policy, seeded(seed))

    for places in uses:
        balancer.use([hosts[place] for place in places])

        assert set(picks(balancer, 20)) <= {str(place) for place in places}


@pytest.mark.parametrize("policy", LbPolicy)
def test_hosts_in_use_do_not_change_by_themselves(policy: LbPolicy) -> None:
    """Only `use` changes them, not what becomes of the list that it was given."""
    hosts = weighing(1, 1, 1)
    balancer = using(make_balancer(policy, seeded(7)), hosts)

    del hosts[1:]

    assert set(picks(balancer, 60)) == {"0", "1", "2"}


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 2, 3, 4)])
@pytest.mark.parametrize("policy", LbPolicy)
def test_balancers_start_at_different_places(policy: LbPolicy, weights: tuple[int, ...]) -> None:
    """Many processes must not all begin with the first host."""
    balancers = [
        using(make_balancer(policy, seeded(seed)), weighing(*weights)) for seed in range(60)
    ]

    assert {picks(balancer, 1) for balancer in balancers} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("kind", [RoundRobin, LeastRequest])
def test_schedule_starts_at_one_of_32_bits(kind: type[RoundRobin | LeastRequest]) -> None:
    """Higher bits of a random source don't count."""
    balancer = using(kind(starting_at(2**32)), weighing(1, 3))
    fresh = using(kind(starting_at(0)), weighing(1, 3))

    assert picks(balancer, 8) == picks(fresh, 8)


@pytest.mark.parametrize("kind", [RoundRobin, LeastRequest])
def test_schedule_starts_alike_whenever_hosts_change(kind: type[RoundRobin | LeastRequest]) -> None:
    """The random number is the balancer's, not the host set's."""
    balancer = using(kind(seeded(7)), weighing(1, 5, 3))
    order = picks(balancer, 13)

    balancer.use(weighing(2, 1))
    picks(balancer, 2)
    balancer.use(weighing(1, 5, 3))

    assert picks(balancer, 13) == order


@pytest.mark.parametrize("kind", [RoundRobin, LeastRequest])
def test_schedule_ends_when_weights_become_equal(kind: type[RoundRobin | LeastRequest]) -> None:
    """What decides is the weights of the hosts in use, not those of all."""
    balancer = using(kind(seeded(7)), weighing(1, 5))

    balancer.use(weighing(1, 1, 1))

    assert set(picks(balancer, 60)) == {"0", "1", "2"}


@pytest.mark.parametrize("policy", [LbPolicy.LEAST_REQUEST, LbPolicy.P2C_EWMA])
def test_two_are_drawn_evenly_with_replacement(policy: LbPolicy) -> None:
    """So the busier of two hosts gets a quarter of the calls: when it is drawn twice."""
    balancer = using(make_balancer(policy, seeded(7)), busy(0, 5))

    busier = picks(balancer, 4000).count("1")

    assert 900 < busier < 1100


@pytest.mark.parametrize("policy", [LbPolicy.LEAST_REQUEST, LbPolicy.P2C_EWMA])
def test_idle_hosts_share_evenly(policy: LbPolicy) -> None:
    """Every host is as likely to be drawn, the last one too."""
    balancer = using(make_balancer(policy, seeded(7)), busy(0, 0, 0, 0))

    assert all(900 < share < 1100 for share in shares(picks(balancer, 4000), 4))
