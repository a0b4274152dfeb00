"""A call that a graph makes itself: one end in the ledger, one settlement, whatever happens."""

import msgspec
import pytest
import trio
import trio.testing

from tests.fakes.caller import FakeCaller
from tests.fakes.graph import make_context
from vsr.deadline import Deadline
from vsr.errors import (
    BudgetExhausted,
    NoHealthyEndpoint,
    UpstreamConnectFailure,
    UpstreamOverflow,
    UpstreamProtocolError,
    UpstreamReset,
    VsrError,
)
from vsr.graph.budget import Budget, Limits
from vsr.graph.context import NodeContext
from vsr.headers import Headers
from vsr.routing.budget import Reservation
from vsr.routing.outcome import Outcome, Terminal, Usage


class CountingBudget(Budget, eq=False):
    """Counts how often each reservation is settled."""

    settlements: list[Reservation] = msgspec.field(default_factory=list)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Count and settle."""
        self.settlements.append(reservation)
        super().settle(reservation, usage)


def counting_budget() -> CountingBudget:
    """Return a budget with both ceilings."""
    return CountingBudget(Limits(max_hops=5, max_tokens=100))


def assert_closed_once(ctx: NodeContext, terminal: Terminal) -> Outcome:
    """Check that the one call ended in `terminal`, its reservation settled exactly once."""
    (entry,) = ctx.ledger.entries
    assert entry.outcome is not None
    assert entry.outcome.terminal is terminal
    assert isinstance(ctx.budget, CountingBudget)
    assert ctx.budget.settlements == [entry.reservation]
    # Nobody knows what the backend spent, so the reservation stands as the price.
    assert (ctx.budget.reserved_tokens, ctx.budget.spent_tokens) == (0, 30)
    return entry.outcome


async def test_answered_call_succeeds() -> None:
    """Whatever its status: a backend's 4xx or 5xx is an answer."""
    for status in (200, 404, 503):
        headers = Headers([(b"content-type", b"application/json")])
        caller = FakeCaller(answer=(status, headers, b"{}"))
        ctx = make_context(caller=caller, budget=counting_budget())

        reply = await ctx.call("alpha")

        assert (reply.status, reply.headers, reply.body) == (status, headers, b"{}")
        assert [call.body for call in caller.calls] == [b"alpha"]
        assert assert_closed_once(ctx, Terminal.SUCCEEDED).status == status


async def test_entry_is_open_while_the_call_is_under_way(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Reserved first, then called."""
    budget = counting_budget()
    ctx = make_context(caller=FakeCaller(delay_s=5), budget=budget)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ctx.call, "alpha")
        await trio.sleep(1)

        assert len(ctx.ledger.open_entries) == 1
        assert (budget.reserved_tokens, budget.spent_tokens, budget.hops) == (30, 0, 1)

    assert_closed_once(ctx, Terminal.SUCCEEDED)


@pytest.mark.parametrize(
    "error",
    [
        UpstreamReset(),
        UpstreamConnectFailure(),
        UpstreamProtocolError(),
        UpstreamOverflow(),
        NoHealthyEndpoint(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_failed_call_fails(error: VsrError) -> None:
    """The error goes on to the step that asked."""
    ctx = make_context(caller=FakeCaller(answer=error), budget=counting_budget())

    with pytest.raises(type(error)) as caught:
        await ctx.call("alpha")

    assert caught.value is error
    assert_closed_once(ctx, Terminal.FAILED)


async def test_call_beyond_the_deadline_is_timed_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The caller is given the request's deadline and no other."""
    start = trio.current_time()
    ctx = make_context(
        caller=FakeCaller(delay_s=60),
        budget=counting_budget(),
        deadline=Deadline.after(start, 7),
    )

    with pytest.raises(VsrError):
        await ctx.call("alpha")

    assert trio.current_time() - start == 7
    assert_closed_once(ctx, Terminal.TIMED_OUT)


async def test_cancelled_call_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """Never a success, and always with a cause."""
    ctx = make_context(caller=FakeCaller(delay_s=60), budget=counting_budget())

    with trio.move_on_after(1) as scope:
        await ctx.call("alpha")

    assert scope.cancelled_caught
    assert assert_closed_once(ctx, Terminal.CANCELLED).cause is not None


async def test_call_that_meets_a_bug_is_closed_too() -> None:
    """Every call ends in one named outcome, also where our own code fails."""
    ctx = make_context(caller=FakeCaller(answer=KeyError("a bug")), budget=counting_budget())

    with pytest.raises(KeyError):
        await ctx.call("alpha")

    assert_closed_once(ctx, Terminal.FAILED)


async def test_call_that_fails_with_a_group_is_closed_too(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A caller with a nursery of its own ends in an exception group."""

    class GroupingCaller(FakeCaller):
        async def call(self, call: object, deadline: Deadline) -> tuple[int, Headers, bytes]:
            del call, deadline
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 60)
                raise UpstreamReset
            raise AssertionError

    ctx = make_context(caller=GroupingCaller(), budget=counting_budget())

    with pytest.RaisesGroup(UpstreamReset):
        await ctx.call("alpha")

    assert_closed_once(ctx, Terminal.FAILED)


async def test_refused_reservation_makes_no_call() -> None:
    """Neither the caller nor the ledger hears of it."""
    caller = FakeCaller()
    ctx = make_context(caller=caller, budget=Budget(Limits(max_hops=1)))
    await ctx.call("alpha")

    with pytest.raises(BudgetExhausted):
        await ctx.call("beta")

    assert len(caller.calls) == len(ctx.ledger.entries) == 1


async def test_context_without_a_caller_starts_no_call() -> None:
    """A graph of tail calls only has none."""
    ctx = make_context()

    with pytest.raises(RuntimeError):
        await ctx.call("alpha")

    assert ctx.ledger.entries == []
