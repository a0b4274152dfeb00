"""Load balancers: which host takes the next attempt."""

import heapq
import random
from collections.abc import Sequence
from itertools import count
from math import exp, lcm
from operator import itemgetter
from typing import Protocol, assert_never

import attrs

from vsr.resources.reliability import LbPolicy
from vsr.upstream.policy.host import Host

_OFFSETS = 429_496_729
"""How many places in a schedule there are to begin at. Source: Envoy, a tenth of 2^32."""
_DECAY_S = 10.0
"""Time in which an old latency loses all but 1/e of its weight. Ours, as in Finagle's balancer."""
_UNMEASURED = -1.0
"""Below any cost that a latency gives."""


class Balancer(Protocol):
    """Chooses the host of an attempt among those that calls may go to; none at first."""

    def use(self, hosts: Sequence[Host]) -> None:
        """Choose among `hosts` from now on; to be called only if membership or order changed."""

    def pick(self, now: float) -> Host | None:
        """Return the host of the next attempt, None if there is none (`now`: monotonic seconds)."""


def make_balancer(policy: LbPolicy, rng: random.Random) -> Balancer:
    """Return a balancer of that policy that has no hosts yet."""
    match policy:
        case LbPolicy.ROUND_ROBIN:
            return RoundRobin(rng)
        case LbPolicy.LEAST_REQUEST:
            return LeastRequest(rng)
        case LbPolicy.P2C_EWMA:
            return PeakEwma(rng)
        case _:
            assert_never(policy)


@attrs.define(eq=False)
class RoundRobin:
    """Takes hosts in turn, each exactly as often as its weight says.

    Equal weights are a plain rotation from a random start, so that many processes do not all
    begin at the same host; the count goes on when the hosts change. Unequal ones are a schedule,
    which begins at a random place that is the same whenever the hosts change.

    Source: Envoy, "Load balancing", weighted round robin.
    """

    _rng: random.Random = attrs.field(repr=False)
    _hosts: tuple[Host, ...] = attrs.field(default=(), init=False)
    _schedule: "_Schedule | None" = attrs.field(default=None, init=False)
    _next: int = attrs.field(init=False)
    _offset: int = attrs.field(init=False)

    @_next.default
    def _random_start(self) -> int:
        return self._rng.getrandbits(64)

    @_offset.default
    def _random_offset(self) -> int:
        return self._rng.getrandbits(32) % _OFFSETS

    def use(self, hosts: Sequence[Host]) -> None:
        """Choose among `hosts` from now on."""
        self._hosts = tuple(hosts)
        self._schedule = _Schedule(hosts, self._offset) if _differ(hosts) else None

    def pick(self, now: float) -> Host | None:
        """Return the host whose turn it is, None if there is none."""
        del now  # a turn is no matter of time
        if self._schedule is not None:
            return self._schedule.pick()
        hosts = self._hosts
        if not hosts:
            return None
        host = hosts[self._next % len(hosts)]
        self._next += 1
        return host


@attrs.define(eq=False)
class LeastRequest:
    """Takes the less busy of two hosts.

    With equal weights the two are drawn at random, each from all hosts, and the first wins a tie.
    With unequal ones it is the schedule of `RoundRobin` in which a host weighs
    weight / (active + 1), as it is when its turn is given out.

    Source: Envoy, "Load balancing", weighted least request.
    """

    _rng: random.Random = attrs.field(repr=False)
    _hosts: tuple[Host, ...] = attrs.field(default=(), init=False)
    _schedule: "_Schedule | None" = attrs.field(default=None, init=False)
    _offset: int = attrs.field(init=False)

    @_offset.default
    def _random_offset(self) -> int:
        return self._rng.getrandbits(32) % _OFFSETS

    def use(self, hosts: Sequence[Host]) -> None:
        """Choose among `hosts` from now on."""
        self._hosts = tuple(hosts)
        self._schedule = _Schedule(hosts, self._offset, by_active=True) if _differ(hosts) else None

    def pick(self, now: float) -> Host | None:
        """Return the less busy of two hosts, None if there is none."""
        del now  # only what is under way counts
        if self._schedule is not None:
            return self._schedule.pick()
        hosts = self._hosts
        size = len(hosts)
        if size <= 1:
            return hosts[0] if hosts else None
        first = hosts[int(self._rng.random() * size)]
        second = hosts[int(self._rng.random() * size)]
        return second if second.active < first.active else first


@attrs.define(eq=False)
class PeakEwma:
    """Takes the one of two hosts that should answer sooner; weights don't count.

    The two are drawn at random, each from all hosts. The lower (active + 1) * latency wins; a
    latency fades with time, so that a host which was slow once gets another chance. A host that
    has no latency yet wins against one that has; among equals the less busy wins, then the first.

    Ours, after Finagle's "Power of Two Choices + Peak EWMA".
    """

    _rng: random.Random = attrs.field(repr=False)
    _hosts: tuple[Host, ...] = attrs.field(default=(), init=False)

    def use(self, hosts: Sequence[Host]) -> None:
        """Choose among `hosts` from now on."""
        self._hosts = tuple(hosts)

    def pick(self, now: float) -> Host | None:
        """Return the one of two hosts with the lower cost at `now`, None if there is none."""
        hosts = self._hosts
        size = len(hosts)
        if size <= 1:
            return hosts[0] if hosts else None
        first = hosts[int(self._rng.random() * size)]
        second = hosts[int(self._rng.random() * size)]
        cost, other_cost = _cost(first, now), _cost(second, now)
        if cost == other_cost:
            return second if second.active < first.active else first
        return second if other_cost < cost else first


def note_latency(host: Host, seconds: float, now: float) -> None:
    """Take in that `host` took `seconds` to a response head, which came at `now`.

    A latency that is not below the average replaces it at once. A lower one only draws it nearer,
    by the more the longer ago its last change is: all but 1/e of the way after 10 s.
    """
    latency_s = host.latency_s
    if latency_s is None or seconds >= latency_s:
        host.latency_s = seconds
    else:
        kept = exp((host.latency_at - now) / _DECAY_S)
        host.latency_s = seconds + (latency_s - seconds) * kept
    host.latency_at = now


def _cost(host: Host, now: float) -> float:
    latency_s = host.latency_s
    if latency_s is None:
        return _UNMEASURED
    return (host.active + 1) * latency_s * exp((host.latency_at - now) / _DECAY_S)


def _differ(hosts: Sequence[Host]) -> bool:
    """Return whether the hosts have unequal weights."""
    return len({host.endpoint.weight for host in hosts}) > 1


class _Schedule:
    """Earliest deadline first: a host's next turn comes 1/weight after its last one.

    Whole numbers stand for 1/weight, since fractions would not add up to exact shares. Turns that
    are due at once are taken in the order in which they were given out.
    """

    def __init__(self, hosts: Sequence[Host], picks: int, *, by_active: bool = False) -> None:
        """Begin as if so many picks had been made.

        Source: Envoy, which gives each host the turns that surely lie before, then makes the few
        picks that are left. It also begins with weights that are 1e-13 too large, so that the
        lighter of two hosts that are due at once goes first, as in a schedule that did run: its
        turn was given out earlier. Here it is put in first.
        """
        self._by_active = by_active
        unit = lcm(*[host.endpoint.weight for host in hosts])
        waits: list[tuple[int, int, Host]] = []
        for host in hosts:
            idle_wait = unit // host.endpoint.weight
            waits.append((idle_wait * (host.active + 1 if by_active else 1), idle_wait, host))
        waits.sort(key=itemgetter(0), reverse=True)
        period = lcm(*[wait for wait, _, _ in waits])
        picks_in_period = sum(period // wait for wait, _, _ in waits)
        self._order = count()
        self._turns: list[tuple[int, int, int, Host]] = []
        left = picks
        for wait, idle_wait, host in waits:
            taken = period // wait * picks // picks_in_period
            left -= taken
            self._turns.append(((taken + 1) * wait, next(self._order), idle_wait, host))
        heapq.heapify(self._turns)
        for _ in range(left):
            self.pick()

    def pick(self) -> Host:
        """Return the host whose turn it is, and give out its next one."""
        deadline, _, idle_wait, host = self._turns[0]
        wait = idle_wait * (host.active + 1) if self._by_active else idle_wait
        heapq.heapreplace(self._turns, (deadline + wait, next(self._order), idle_wait, host))
        return host
