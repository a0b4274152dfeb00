"""Circuit breaker of a cluster under any sequence of attempts."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vsr.resources.reliability import BreakerLimits
from vsr.upstream.policy.breaker import Breaker, BreakerLimit, Ticket


class BreakerMachine(RuleBasedStateMachine):
    """Attempts come, wait, give up and end in any order; a list of each kind is the model."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = BreakerLimits()
        self.breaker = Breaker(self.limits)
        self.admitted = 0
        """Slots that were taken without waiting."""
        self.served: list[Ticket] = []
        """Tickets with a slot."""
        self.queue: list[Ticket] = []
        """Tickets without one, first come first."""
        self.gone: list[Ticket] = []
        """Tickets that left."""

    @initialize(
        connections=st.integers(1, 4), pending=st.integers(0, 4), requests=st.integers(1, 6)
    )
    def choose_limits(self, connections: int, pending: int, requests: int) -> None:
        """Begin with an empty breaker."""
        self.limits = BreakerLimits(
            max_connections=connections, max_pending=pending, max_requests=requests
        )
        self.breaker = Breaker(self.limits)

    @property
    def active(self) -> int:
        """Return the slots that are taken."""
        return self.admitted + len(self.served)

    def _check_handed_over(self, got: Ticket | None) -> None:
        """A slot that came back went to the first that waits, or is free if nobody does."""
        assert got is (self.queue[0] if self.queue else None)
        if got is not None:
            self.served.append(self.queue.pop(0))

    @rule()
    def arrive(self) -> None:
        """The four steps decide, in their order."""
        overflow = self.breaker.overflow_limit
        is_admitted = self.breaker.try_admit()
        ticket = None if is_admitted else self.breaker.queue()

        if self.active >= self.limits.max_requests:
            assert (is_admitted, ticket, overflow) == (False, None, BreakerLimit.MAX_REQUESTS)
        elif self.active < self.limits.max_connections:
            assert is_admitted
            assert overflow is None
            self.admitted += 1
        elif len(self.queue) >= self.limits.max_pending:
            assert (is_admitted, ticket, overflow) == (False, None, BreakerLimit.MAX_PENDING)
        else:
            assert ticket is not None
            assert overflow is None
            self.queue.append(ticket)

    @precondition(lambda self: self.admitted)
    @rule()
    def end_admitted(self) -> None:
        """An attempt that never waited ends."""
        self.admitted -= 1
        self._check_handed_over(self.breaker.release())

    @precondition(lambda self: self.served)
    @rule(data=st.data())
    def end_served(self, data: st.DataObject) -> None:
        """An attempt that had waited ends; it never leaves afterwards."""
        self.served.remove(data.draw(st.sampled_from(self.served)))
        self._check_handed_over(self.breaker.release())

    @precondition(lambda self: self.served)
    @rule(data=st.data())
    def leave_with_slot(self, data: st.DataObject) -> None:
        """An owner gives up in the instant in which it got its slot."""
        ticket = data.draw(st.sampled_from(self.served))
        self.served.remove(ticket)
        self.gone.append(ticket)
        self._check_handed_over(self.breaker.leave(ticket))

    @precondition(lambda self: self.queue)
    @rule(data=st.data())
    def leave_queue(self, data: st.DataObject) -> None:
        """An owner gives up while it waits: no slot moves."""
        ticket = data.draw(st.sampled_from(self.queue))
        self.queue.remove(ticket)
        self.gone.append(ticket)
        assert self.breaker.leave(ticket) is None

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def leave_again(self, data: st.DataObject) -> None:
        """A second time does nothing."""
        assert self.breaker.leave(data.draw(st.sampled_from(self.gone))) is None

    @precondition(lambda self: not self.active)
    @rule()
    def release_too_often(self) -> None:
        """A slot that nobody has can't come back."""
        with pytest.raises(RuntimeError):
            self.breaker.release()

    @invariant()
    def counts_are_true(self) -> None:
        """Every slot and every place is somebody's."""
        assert self.breaker.active == self.active
        assert self.breaker.waiting == len(self.queue)

    @invariant()
    def limits_hold(self) -> None:
        """Never more run, or wait, than may."""
        assert 0 <= self.breaker.active <= self.limits.max_connections
        assert self.breaker.active <= self.limits.max_requests
        assert self.breaker.waiting <= self.limits.max_pending

    @invariant()
    def nobody_waits_beside_a_free_slot(self) -> None:
        """A slot that came back was handed over, not lost."""
        assert not self.breaker.waiting or self.breaker.active == self.limits.max_connections

    @invariant()
    def tickets_know_their_slots(self) -> None:
        """An owner reads from its ticket whether it may start."""
        assert all(ticket.has_slot for ticket in self.served)
        assert not any(ticket.has_slot for ticket in [*self.queue, *self.gone])

    def teardown(self) -> None:
        """When all have left nothing is taken: everyone who waits is served on the way."""
        while self.active:
            if self.admitted:
                self.end_admitted()
            else:
                self.served.pop(0)
                self._check_handed_over(self.breaker.release())

        assert not self.queue
        assert (self.breaker.active, self.breaker.waiting) == (0, 0)


BreakerMachine.TestCase.settings = settings(deadline=None, max_examples=100, stateful_step_count=40)
TestBreakerMachine = BreakerMachine.TestCase
