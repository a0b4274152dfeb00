"""The hosts of a cluster that calls may go to, and the choice among them."""

from collections.abc import Callable, Collection, Sequence

import attrs

from vsr.upstream.policy.balancer import Balancer
from vsr.upstream.policy.host import Host

HEALTHY_PANIC_PERCENT = 50
"""Below this share of rotating hosts all are used. Source: Envoy's default; the reference."""
MAX_REPICKS = 3
"""Picks of a retry behind its first. Source: the reference, host selection retries."""


def eligible(hosts: Sequence[Host]) -> tuple[Host, ...]:
    """Return the hosts that calls may go to, in their order; none only if all are quarantined.

    They are those that rotate. If these are less than half (half itself is enough), it is likelier
    that the checks are wrong than that so many hosts are, and too few would get all the load: then
    they are all the hosts. So a lone host is always used.

    What an operator has quarantined was judged by a person and not by a check: it is left out as if
    it did not exist, and counts on neither side.

    Source: Envoy, "Panic threshold"; the quarantine is ours.
    """
    allowed = tuple(host for host in hosts if not host.is_quarantined)
    rotating = tuple(host for host in allowed if host.is_rotating)
    is_enough = 100 * len(rotating) >= HEALTHY_PANIC_PERCENT * len(allowed)
    return rotating if is_enough else allowed


@attrs.define(eq=False)
class Rotation:
    """Keeps a balancer on the hosts that calls may go to."""

    hosts: tuple[Host, ...]
    """All of them, rotating or not."""
    _balancer: Balancer
    """Has no hosts yet."""
    pick: Callable[[float], Host | None] = attrs.field(init=False, repr=False)
    """Return the host of a first attempt at `now`, monotonic seconds; None if there is none.

    It is the balancer's own, since a call of ours around it would cost every request something.
    """
    is_panicking: bool = attrs.field(default=False, init=False)
    """Whether hosts are used that should not be, for want of others."""
    _in_use: tuple[Host, ...] = attrs.field(default=(), init=False)

    def __attrs_post_init__(self) -> None:
        self.pick = self._balancer.pick
        self.changed()

    def changed(self) -> None:
        """Look at the hosts again; to be called after any of them left or entered rotation."""
        in_use = eligible(self.hosts)
        self.is_panicking = not all(host.is_rotating for host in in_use)
        if in_use != self._in_use:
            self._in_use = in_use
            self._balancer.use(in_use)

    def pick_other(self, tried: Collection[Host], now: float) -> Host | None:
        """Return the host of a retry at `now`: one that is not in `tried`, if chance allows.

        What the balancer picks is refused at most `MAX_REPICKS` times, so that it may be one of
        them after all. None if there is none.

        Source: Envoy, "Host selection retry", predicate `previous_hosts`.
        """
        host = self.pick(now)
        for _ in range(MAX_REPICKS):
            if host not in tried:
                break
            host = self.pick(now)
        return host
