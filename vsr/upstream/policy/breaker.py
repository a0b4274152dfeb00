"""Circuit breaker of one cluster: how many attempts run at once, and how many wait for a slot."""

from collections import OrderedDict
from enum import StrEnum

import attrs

from vsr.resources.reliability import BreakerLimits


class BreakerLimit(StrEnum):
    """Which limit refused an attempt or a retry; the value is the label of the overflow metric."""

    MAX_REQUESTS = "max_requests"
    MAX_PENDING = "max_pending_requests"
    MAX_RETRIES = "max_retries"
    """Of the retry slots, which are counted elsewhere."""


@attrs.define(eq=False)
class Ticket:
    """One attempt's place in the queue; compared and hashed by identity."""

    has_slot: bool = attrs.field(default=False, init=False)
    """Set when a slot is handed over, and unset by `Breaker.leave`."""


@attrs.define(eq=False)
class Breaker:
    """Counts the attempts of one cluster, retries included, and queues those above its limits.

    An attempt asks `try_admit`; refused, it asks `queue` in the same synchronous step. It holds
    its slot until its body has ended or been closed, and then calls `release`. Every operation
    takes the same time however long the queue is.

    While anyone waits no slot is free: one that comes back goes straight to the head of the
    queue, so `active` doesn't change and nobody can be overtaken. `release` and `leave` return
    the ticket that got the slot; the caller must wake its owner.

    Source: the reference's upstream layer, circuit breaker.
    """

    limits: BreakerLimits
    active: int = attrs.field(default=0, init=False)
    """Slots that are taken, those just handed over included."""
    _ceiling: int = attrs.field(init=False)
    _waiting: OrderedDict[Ticket, None] = attrs.field(factory=OrderedDict, init=False)
    # Not a deque: a ticket may leave from the middle. Not a dict: finding the first key again
    # and again walks over all the places that were emptied before it.

    @_ceiling.default
    def _lower_limit(self) -> int:
        # An attempt is admitted at once exactly if it is below both limits.
        return min(self.limits.max_requests, self.limits.max_connections)

    @property
    def waiting(self) -> int:
        """Return how many tickets wait."""
        return len(self._waiting)

    @property
    def overflow_limit(self) -> BreakerLimit | None:
        """Return the limit that refuses a further attempt now, None if it may run or wait."""
        if self.active >= self.limits.max_requests:
            return BreakerLimit.MAX_REQUESTS
        if self.active < self.limits.max_connections:
            return None
        if len(self._waiting) >= self.limits.max_pending:
            return BreakerLimit.MAX_PENDING
        return None

    def try_admit(self) -> bool:
        """Take a slot if the attempt may start at once; otherwise ask `queue`."""
        if self.active < self._ceiling:
            self.active += 1
            return True
        return False

    def queue(self) -> Ticket | None:
        """Return a place at the end of the queue, None on overflow: see `overflow_limit`.

        Raises:
            RuntimeError: a slot is free. A ticket that waited beside it might never be served.
        """
        if self.active < self._ceiling:
            raise RuntimeError("a slot is free, ask try_admit for it")
        if self.overflow_limit is not None:
            return None
        ticket = Ticket()
        self._waiting[ticket] = None
        return ticket

    def release(self) -> Ticket | None:
        """Give one slot back, however it was come by, and return the ticket that got it.

        Raises:
            RuntimeError: no slot is taken, so this one was given back before.
        """
        if not self.active:
            raise RuntimeError("no slot is taken, this one was given back before")
        if not self._waiting:
            self.active -= 1
            return None
        ticket, _ = self._waiting.popitem(last=False)
        ticket.has_slot = True
        return ticket

    def leave(self, ticket: Ticket) -> Ticket | None:
        """Give up `ticket`, and return the ticket that got its slot if it had one already.

        A second time does nothing. Not for an owner that has called `release` for the slot: the
        slot is somebody else's by then.
        """
        if ticket.has_slot:
            ticket.has_slot = False
            return self.release()
        self._waiting.pop(ticket, None)
        return None
