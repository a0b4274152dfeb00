"""Hosts, random numbers and picks as the tests of load balancers need them."""

import random
from collections import Counter
from collections.abc import Iterable

from hypothesis import strategies as st

from vsr.resources.cluster import Endpoint
from vsr.upstream.policy.balancer import Balancer
from vsr.upstream.policy.host import Host

NOW = 1000.0
UNEQUAL_WEIGHTS = st.lists(st.integers(1, 12), min_size=2, max_size=5).filter(
    lambda weights: len(set(weights)) > 1
)


class FixedNumber(random.Random):  # noqa: S311  # a reproducible start, not a secret
    """Gives out the lower bits of one number, as many as it is asked for."""

    number = 0

    def getrandbits(self, k: int, /) -> int:
        """Return them."""
        return self.number & ((1 << k) - 1)


class Drawing(random.Random):  # noqa: S311  # a reproducible draw, not a secret
    """Draws the given places out of so many, one after the other."""

    size = 1
    places: list[int] = []  # noqa: RUF012  # `drawing` gives each its own

    def random(self) -> float:
        """Return the middle of the next place's share."""
        return (self.places.pop(0) + 0.5) / self.size


def starting_at(number: int) -> FixedNumber:
    """Return a source of that number alone."""
    source = FixedNumber()
    source.number = number
    return source


def drawing(size: int, *places: int) -> Drawing:
    """Return a source that draws these places."""
    source = Drawing()
    source.size, source.places = size, list(places)
    return source


def seeded(seed: int) -> random.Random:
    """Return a source that gives the same numbers in every run."""
    return random.Random(seed)  # noqa: S311  # a reproducible start, not a secret


def weighing(*weights: int) -> list[Host]:
    """Return one idle host per weight, called by its place."""
    return [
        Host(Endpoint(str(place), "127.0.0.1", 8000 + place, weight=weight))
        for place, weight in enumerate(weights)
    ]


def busy(*active: int) -> list[Host]:
    """Return one host per number of attempts under way, of equal weights."""
    hosts = weighing(*[1] * len(active))
    for host, attempts in zip(hosts, active, strict=True):
        host.active = attempts
    return hosts


def using(balancer: Balancer, hosts: list[Host]) -> Balancer:
    """Return the balancer, with those hosts."""
    balancer.use(hosts)
    return balancer


def picks(balancer: Balancer, count: int) -> str:
    """Return the names of the next hosts, one letter each."""
    picked = [balancer.pick(NOW) for _ in range(count)]
    return "".join(host.endpoint.name for host in picked if host is not None)


def shares(names: Iterable[str], size: int) -> list[int]:
    """Return how often each host occurs, by its place."""
    counted = Counter(names)
    return [counted[str(place)] for place in range(size)]
