"""Circuit breaker of a cluster."""

import time
from collections.abc import Callable

import pytest

from vsr.resources.reliability import BreakerLimits
from vsr.upstream.policy.breaker import Breaker, BreakerLimit, Ticket


def breaker_of(*, connections: int = 1, pending: int = 10, requests: int = 100) -> Breaker:
    """Return a breaker with these limits."""
    limits = BreakerLimits(max_connections=connections, max_pending=pending, max_requests=requests)
    return Breaker(limits)


def full_breaker(*, connections: int = 1, pending: int = 10, requests: int = 100) -> Breaker:
    """Return a breaker whose slots are all taken."""
    breaker = breaker_of(connections=connections, pending=pending, requests=requests)
    while breaker.try_admit():
        pass
    return breaker


def wait(breaker: Breaker) -> Ticket:
    """Return a ticket that waits."""
    ticket = breaker.queue()
    assert ticket is not None
    return ticket


def test_attempts_below_the_limit_are_admitted_at_once() -> None:
    """Step 2: as many as `max_connections`, and no more."""
    breaker = breaker_of(connections=3)

    assert [breaker.try_admit() for _ in range(4)] == [True, True, True, False]
    assert breaker.active == 3


def test_attempt_above_max_connections_waits() -> None:
    """Step 4: it takes no slot, and has none yet."""
    breaker = full_breaker(connections=2)

    ticket = wait(breaker)

    assert not ticket.has_slot
    assert (breaker.active, breaker.waiting) == (2, 1)


def test_full_queue_overflows_as_max_pending_requests() -> None:
    """Step 3: `max_pending` may wait; the next is refused and leaves no trace."""
    breaker = full_breaker(pending=2)
    wait(breaker)
    assert breaker.overflow_limit is None
    wait(breaker)

    assert breaker.queue() is None
    assert breaker.overflow_limit is BreakerLimit.MAX_PENDING
    assert (breaker.active, breaker.waiting) == (1, 2)


def test_no_queue_overflows_at_once() -> None:
    """Step 3 with a `max_pending` of 0."""
    breaker = full_breaker(pending=0)

    assert breaker.queue() is None
    assert breaker.overflow_limit is BreakerLimit.MAX_PENDING


def test_max_requests_overflows_before_a_connection_is_looked_for() -> None:
    """Step 1 precedes step 2: a connection would be free, yet the attempt is refused."""
    breaker = breaker_of(connections=5, requests=2)

    assert [breaker.try_admit() for _ in range(3)] == [True, True, False]
    assert breaker.queue() is None
    assert breaker.overflow_limit is BreakerLimit.MAX_REQUESTS


def test_max_requests_overflows_before_the_queue_is_looked_at() -> None:
    """Step 1 precedes step 3: of two limits that are reached it is the one that counts."""
    breaker = full_breaker(connections=2, pending=0, requests=2)

    assert breaker.overflow_limit is BreakerLimit.MAX_REQUESTS


def test_defaults_refuse_without_a_queue() -> None:
    """1024 connections and 1024 requests: step 1 always fires before anyone could wait."""
    breaker = Breaker(BreakerLimits())

    assert [breaker.try_admit() for _ in range(1025)] == [True] * 1024 + [False]
    assert breaker.queue() is None
    assert breaker.overflow_limit is BreakerLimit.MAX_REQUESTS


def test_raised_max_requests_makes_the_queue_reachable() -> None:
    """4096 requests: 1024 run, 1024 wait, the next is one too many for the queue."""
    breaker = Breaker(BreakerLimits(max_requests=4096))
    while breaker.try_admit():
        pass

    tickets = [breaker.queue() for _ in range(1025)]

    assert breaker.active == 1024
    assert [ticket is None for ticket in tickets] == [False] * 1024 + [True]
    assert breaker.overflow_limit is BreakerLimit.MAX_PENDING


def test_nothing_overflows_while_a_slot_is_free() -> None:
    """Even where nobody may wait."""
    assert breaker_of(pending=0).overflow_limit is None


def test_limits_are_called_as_in_the_metric() -> None:
    """The values are labels of a series that dashboards know."""
    assert [str(limit) for limit in BreakerLimit] == [
        "max_requests",
        "max_pending_requests",
        "max_retries",
    ]


def test_queueing_beside_a_free_slot_is_refused() -> None:
    """Such a ticket might wait for ever: nobody need be there to hand it a slot."""
    breaker = breaker_of()

    with pytest.raises(RuntimeError, match="try_admit"):
        breaker.queue()

    assert breaker.waiting == 0


def test_release_frees_a_slot_when_nobody_waits() -> None:
    """The next attempt is admitted at once again."""
    breaker = full_breaker()

    assert breaker.release() is None
    assert breaker.active == 0
    assert breaker.try_admit()


def test_release_hands_the_slot_to_the_first_in_the_queue() -> None:
    """First come, first served; the slot is never free in between."""
    breaker = full_breaker()
    first, second = wait(breaker), wait(breaker)

    assert breaker.release() is first
    assert (first.has_slot, second.has_slot) == (True, False)
    assert (breaker.active, breaker.waiting) == (1, 1)
    assert not breaker.try_admit()
    assert breaker.release() is second
    assert (breaker.active, breaker.waiting) == (1, 0)


def test_slot_that_was_waited_for_is_released_like_any_other() -> None:
    """The owner that was served calls `release` when its body has ended."""
    breaker = full_breaker()
    wait(breaker)
    breaker.release()

    assert breaker.release() is None
    assert breaker.active == 0


def test_waiting_ticket_leaves_from_anywhere() -> None:
    """Its owner gave up: nobody gets a slot for it, and the others keep their order."""
    breaker = full_breaker()
    first, second, third = wait(breaker), wait(breaker), wait(breaker)

    assert breaker.leave(second) is None
    assert (breaker.active, breaker.waiting) == (1, 2)
    assert [breaker.release(), breaker.release()] == [first, third]


def test_place_of_a_leaver_is_free_for_another() -> None:
    """`max_pending` bounds those who wait, not those who ever waited."""
    breaker = full_breaker(pending=1)
    breaker.leave(wait(breaker))

    assert breaker.queue() is not None


def test_slot_handed_over_in_the_same_instant_is_passed_on() -> None:
    """The owner gave up before it woke: the next in the queue gets the slot."""
    breaker = full_breaker()
    first, second = wait(breaker), wait(breaker)
    breaker.release()

    assert breaker.leave(first) is second
    assert (first.has_slot, second.has_slot) == (False, True)
    assert (breaker.active, breaker.waiting) == (1, 0)


def test_slot_handed_over_in_the_same_instant_is_freed_when_nobody_waits() -> None:
    """Nothing is left behind."""
    breaker = full_breaker()
    ticket = wait(breaker)
    breaker.release()

    assert breaker.leave(ticket) is None
    assert breaker.active == 0


def test_leaving_the_queue_twice_does_nothing() -> None:
    """Two cancellations may both clean up."""
    breaker = full_breaker()
    ticket, other = wait(breaker), wait(breaker)
    breaker.leave(ticket)

    assert breaker.leave(ticket) is None
    assert (breaker.active, breaker.waiting) == (1, 1)
    assert breaker.release() is other


def test_leaving_with_a_slot_twice_does_nothing() -> None:
    """The slot belongs to somebody else by then."""
    breaker = full_breaker()
    first, second = wait(breaker), wait(breaker)
    breaker.release()
    breaker.leave(first)

    assert breaker.leave(first) is None
    assert second.has_slot
    assert breaker.active == 1


@pytest.mark.parametrize("connections", [0, 1])
def test_release_of_a_slot_that_nobody_has_is_an_error(connections: int) -> None:
    """A count below zero would admit too many for ever after."""
    breaker = breaker_of(connections=connections)

    with pytest.raises(RuntimeError, match="given back before"):
        breaker.release()

    assert breaker.active == 0


def test_release_of_a_slot_that_nobody_has_serves_nobody() -> None:
    """No slot can be handed over where there is none, whoever waits."""
    breaker = breaker_of(connections=0)
    ticket = wait(breaker)

    with pytest.raises(RuntimeError, match="given back before"):
        breaker.release()

    assert not ticket.has_slot
    assert breaker.waiting == 1


def leave_in_the_middle(breaker: Breaker, tickets: list[Ticket]) -> None:
    """Let every ticket leave, the middle of the queue first."""
    middle = len(tickets) // 2
    for ticket in [*tickets[middle:], *reversed(tickets[:middle])]:
        breaker.leave(ticket)


def leave_at_the_end(breaker: Breaker, tickets: list[Ticket]) -> None:
    """Let every ticket leave, the last one first."""
    for ticket in reversed(tickets):
        breaker.leave(ticket)


def serve_in_order(breaker: Breaker, tickets: list[Ticket]) -> None:
    """Hand every ticket a slot."""
    for _ in tickets:
        breaker.release()


def seconds_per_ticket(empty: Callable[[Breaker, list[Ticket]], None], size: int) -> float:
    """Return the processor time in which `empty` deals with one ticket of a queue of `size`."""
    breaker = full_breaker(pending=size)
    tickets = [wait(breaker) for _ in range(size)]
    start = time.process_time()
    empty(breaker, tickets)
    spent = time.process_time() - start
    assert breaker.waiting == 0
    return spent / size


@pytest.mark.parametrize("empty", [leave_in_the_middle, leave_at_the_end, serve_in_order])
def test_cost_does_not_grow_with_the_queue(
    empty: Callable[[Breaker, list[Ticket]], None],
) -> None:
    """A queue of twenty thousand costs as much per ticket as one of a few hundred.

    If a ticket were searched for it would be dozens of times as much.
    """
    short = min(seconds_per_ticket(empty, 400) for _ in range(5))
    long = min(seconds_per_ticket(empty, 20_000) for _ in range(3))

    assert long < 6 * short
