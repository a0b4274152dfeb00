"""Load balancers."""

import random
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from vsr.resources.cluster import Endpoint
from vsr.upstream.policy.balancer import RoundRobin


class FixedStart(random.Random):  # noqa: S311  # a reproducible start, not a secret
    """Gives out one number, whatever the bits."""

    number = 0

    def getrandbits(self, k: int, /) -> int:
        """Return the number."""
        del k
        return self.number


def starting_at(number: int) -> FixedStart:
    """Return a source of that number alone."""
    source = FixedStart()
    source.number = number
    return source


def seeded(seed: int) -> random.Random:
    """Return a source that gives the same numbers in every run."""
    return random.Random(seed)  # noqa: S311  # a reproducible start, not a secret


def endpoints(*weights: int) -> list[Endpoint]:
    """Return one endpoint per weight, called by its place."""
    return [
        Endpoint(str(place), "127.0.0.1", 8000 + place, weight=weight)
        for place, weight in enumerate(weights)
    ]


def picks(balancer: RoundRobin, count: int) -> list[str]:
    """Return the names of the next endpoints."""
    picked = [balancer.pick() for _ in range(count)]
    return [endpoint.name for endpoint in picked if endpoint is not None]


def test_no_endpoint_is_picked_from_none() -> None:
    """The cluster answers that by itself."""
    assert RoundRobin([], seeded(7)).pick() is None


def test_only_endpoint_is_always_picked() -> None:
    """Whatever its weight."""
    assert picks(RoundRobin(endpoints(5), seeded(7)), 3) == ["0", "0", "0"]


@given(count=st.integers(1, 8), weight=st.integers(1, 100), start=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_equal_weights_rotate(count: int, weight: int, start: int) -> None:
    """In order, from a random place, without end."""
    balancer = RoundRobin(endpoints(*[weight] * count), starting_at(start))

    order = [int(name) for name in picks(balancer, 3 * count)]

    assert order == [(order[0] + step) % count for step in range(3 * count)]


def test_balancers_start_at_different_places() -> None:
    """Many processes must not all begin with the first endpoint."""
    for weights in ((1, 1, 1, 1), (1, 2, 3, 4)):
        firsts = {picks(RoundRobin(endpoints(*weights), seeded(seed)), 1)[0] for seed in range(40)}

        assert firsts == {"0", "1", "2", "3"}


@given(
    weights=st.lists(st.integers(1, 12), min_size=2, max_size=5),
    start=st.integers(0, 2**32 - 1),
    rounds=st.integers(1, 3),
)
@example(weights=[4, 1, 5], start=8, rounds=1)
@settings(deadline=None, max_examples=300)
def test_shares_are_exact(weights: list[int], start: int, rounds: int) -> None:
    """As many picks as the weights add up to give each endpoint its weight, from any start."""
    balancer = RoundRobin(endpoints(*weights), starting_at(start))

    for _ in range(rounds):
        shares = Counter(picks(balancer, sum(weights)))

        assert [shares[str(place)] for place in range(len(weights))] == weights


def test_shares_are_exact_with_large_weights() -> None:
    """Percentages are common."""
    weights = (1, 9, 20, 70)
    balancer = RoundRobin(endpoints(*weights), seeded(7))

    for _ in range(50):
        shares = Counter(picks(balancer, 100))

        assert [shares[str(place)] for place in range(4)] == list(weights)


def test_heavy_endpoint_is_spread_out() -> None:
    """Weights interleave: no burst at one endpoint."""
    balancer = RoundRobin(endpoints(2, 1), starting_at(0))

    assert "".join(picks(balancer, 9)) in {"001" * 3, "010" * 3, "100" * 3}
