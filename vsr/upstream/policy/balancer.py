"""Load balancers: which endpoint takes the next attempt."""

import heapq
import random
from collections.abc import Sequence
from itertools import count
from math import lcm

from vsr.resources.cluster import Endpoint


class RoundRobin:
    """Takes endpoints in turn, each exactly as often as its weight says.

    Equal weights are a plain rotation from a random start, so that many processes do not all
    begin at the same endpoint. Unequal ones are an earliest-deadline schedule: an endpoint's next
    turn comes 1/weight after its last, ties by the order in which turns were given out.

    Source: Envoy, "Load balancing", weighted round robin.
    """

    def __init__(self, endpoints: Sequence[Endpoint], rng: random.Random) -> None:
        self._endpoints = tuple(endpoints)
        self._next = rng.getrandbits(32)
        self._order = count()
        self._schedule: list[tuple[int, int, Endpoint]] = []
        weights = [endpoint.weight for endpoint in endpoints]
        # Whole numbers in place of 1/weight: fractions would not add up to exact shares.
        self._round = lcm(*weights)
        if len(set(weights)) > 1:
            for endpoint in endpoints:
                self._put(endpoint, 0)
            for _ in range(self._next % sum(weights)):
                self.pick()

    def pick(self) -> Endpoint | None:
        """Return the next endpoint, None when there is none."""
        if self._schedule:
            deadline, _, endpoint = heapq.heappop(self._schedule)
            self._put(endpoint, deadline)
            return endpoint
        if not self._endpoints:
            return None
        self._next += 1
        return self._endpoints[self._next % len(self._endpoints)]

    def _put(self, endpoint: Endpoint, last: int) -> None:
        entry = (last + self._round // endpoint.weight, next(self._order), endpoint)
        heapq.heappush(self._schedule, entry)
