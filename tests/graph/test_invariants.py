"""What holds for every graph, whatever backends do and whenever the request ends."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import attrs
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.caller import FakeCaller
from tests.fakes.graph import Authored, FakeHops, FakeTasks, make_run
from tests.graph.random_graphs import GraphMaker, random_limits, random_said, seeded
from vsr.deadline import Deadline
from vsr.errors import VsrError
from vsr.graph.budget import UNLIMITED, Budget, Limits
from vsr.graph.compiled import CompiledGraph
from vsr.graph.executor import execute
from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import GraphRun
from vsr.graph.value import BranchOutcome
from vsr.resources.graph import OnExhausted
from vsr.routing.budget import Price, Reservation, Spend
from vsr.routing.outcome import Cause, Terminal, Usage
from vsr.routing.plan import Call
from vsr.routing.ports import CallAnswer, Journal

Trace = list[tuple[int, str, str, float, float | None, str, str]]


@attrs.frozen
class Case:
    """One run of one graph."""

    seed: int
    timeout_s: float | None
    gone_at_s: float | None
    """When the client leaves."""


class CheckedBudget(Budget, eq=False):
    """Checks that its ceilings hold at every instant."""

    has_refused: bool = False
    ends_on_refusal: bool = False
    is_retrying: bool = False
    """Whether an attempt more of a call is asked for: its refusal ends nothing but the call."""

    def refuses(self, wanted: Reservation) -> bool:
        """Note what is refused; behind a refusal that ends the graph nothing else is asked."""
        answer = super().refuses(wanted)
        assert answer or not (self.has_refused and self.ends_on_refusal)
        self.has_refused = self.has_refused or (answer and not self.is_retrying)
        return answer

    def admit(
        self,
        model: str,
        prompt_bound_tokens: int,
        output_bound_tokens: int,
        price: Price | None = None,
    ) -> Reservation | None:
        """Check behind it."""
        reservation = super().admit(model, prompt_bound_tokens, output_bound_tokens, price)
        self.check()
        return reservation

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Check behind it."""
        super().settle(reservation, usage)
        self.check()

    def check(self) -> None:
        """Assert that nothing is above its ceiling."""
        limits = self.limits
        prompt = self.reserved_prompt_tokens + self.spent_prompt_tokens
        tokens = self.reserved_tokens + self.spent_tokens
        cost = self.reserved_nano_usd + self.spent_nano_usd
        for value, most in (
            (self.hops, limits.max_hops),
            (tokens, limits.max_tokens),
            (prompt, limits.max_prompt_tokens),
            (tokens - prompt, limits.max_completion_tokens),
            (cost, limits.max_cost_nano_usd),
        ):
            assert most is None or value <= most


@attrs.frozen
class Retrying:
    """Tells the budget of a call that an attempt more is asked for."""

    spend: Spend
    budget: CheckedBudget

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Ask."""
        self.budget.is_retrying = True
        answer = self.spend.admit_retry(is_known_zero=is_known_zero)
        self.budget.is_retrying = False
        return answer


@attrs.define(eq=False)
class CheckedCaller(FakeCaller):
    """Checks that no call starts behind the end of its request."""

    budget: CheckedBudget = attrs.field(factory=CheckedBudget)

    tasks: FakeTasks = attrs.field(factory=FakeTasks)
    latest: float = float("inf")

    async def call(
        self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
    ) -> CallAnswer:
        """Check, then answer."""
        assert self.tasks.cause is None
        assert trio.current_time() < min(self.latest, deadline.at)
        assert call.spend is not None
        call.spend = Retrying(call.spend, self.budget)
        return await super().call(call, deadline, limit_bytes=limit_bytes, journal=journal)


@attrs.define
class CheckedOrder:
    """Checks that outcomes stand in declared order."""

    def began(self, path: str, kind: str) -> None:
        """Do nothing."""
        del path, kind

    def ended(self, path: str, value: object) -> None:
        """Check the value of a parallel step."""
        del path
        if isinstance(value, tuple) and value and isinstance(value[0], BranchOutcome):
            assert [each.index for each in value] == list(range(len(value)))
            ranks = sorted(each.rank for each in value if each.rank is not None)
            assert ranks == list(range(len(ranks)))


@attrs.define
class SlowRuntime:
    """Takes a while, and never twice the same."""

    asked: int = 0

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer with what was asked."""
        self.asked += 1
        await trio.sleep(0.3 + self.asked / 7919)
        return bundle


def graph_of(seed: int) -> CompiledGraph:
    """Return the graph that a seed makes; it is without fault."""
    authored = Authored(GraphMaker(seeded(seed)).sources())
    graph = authored.compile("main")
    assert authored.problems == []
    assert graph is not None
    return graph


async def play(graph: CompiledGraph, case: Case) -> Trace:
    """Run `graph` once and return what its ledger has."""
    limits = random_limits(seeded(case.seed))
    budget = CheckedBudget(UNLIMITED if limits == Limits() else limits)
    budget.ends_on_refusal = graph.on_exhausted is OnExhausted.FAIL
    caller = CheckedCaller(partial(random_said, case.seed), budget=budget)
    run = make_run(caller, budget=budget, timeout_s=case.timeout_s, hops=FakeHops(Price(1.0, 2.0)))
    caller.latest, run.tasks = run.deadline.at, caller.tasks
    run.runtime, run.watch = SlowRuntime(), CheckedOrder()
    alive = trio.lowlevel.current_statistics().tasks_living
    await _run_until_gone(graph, run, caller.tasks, case.gone_at_s)

    assert trio.lowlevel.current_statistics().tasks_living == alive
    assert caller.under_way == 0
    assert len(caller.calls) == len(run.ledger.entries)
    assert budget.hops >= len(caller.calls)
    assert (budget.reserved_tokens, budget.reserved_nano_usd) == (0, 0)
    return [_told(pair) for pair in zip(run.ledger.entries, caller.times, strict=True)]


async def _run_until_gone(
    graph: CompiledGraph, run: GraphRun, tasks: FakeTasks, gone_at_s: float | None
) -> None:
    async def leave(scope: trio.CancelScope, gone_at_s: float) -> None:
        await trio.sleep_until(gone_at_s)
        tasks.cause = Cause.CLIENT_GONE
        scope.cancel()

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            if gone_at_s is not None:
                nursery.start_soon(leave, scope, trio.current_time() + gone_at_s)
            with suppress(VsrError):
                await execute(graph, run)
            nursery.cancel_scope.cancel()


def _told(pair: tuple[LedgerEntry, float]) -> tuple[int, str, str, float, float | None, str, str]:
    entry, began_at = pair
    outcome = entry.outcome
    assert outcome is not None
    assert entry.started_at == began_at
    assert (outcome.cause is not None) is (
        outcome.terminal in {Terminal.CANCELLED, Terminal.TIMED_OUT}
    )
    return (
        entry.ordinal,
        entry.step,
        entry.model,
        entry.started_at,
        entry.ended_at,
        outcome.terminal.value,
        "" if outcome.cause is None else outcome.cause.value,
    )


_DEADLINES_S = [0.5, 2.5, 7.25]
cases = st.builds(
    Case,
    st.integers(0, 2**32),
    st.none() | st.sampled_from(_DEADLINES_S),
    # Neither the first instant nor the deadline's: who comes first in it, the client that leaves or
    # a call or the deadline, is open.
    st.none() | st.floats(0.001, 8).filter(lambda leaves_s: leaves_s not in _DEADLINES_S),
)


def check(case: Case) -> None:
    """Run a case twice: everything holds, and both runs are the same."""
    graph = graph_of(case.seed)

    def once() -> Trace:
        clock = trio.testing.MockClock(autojump_threshold=0)
        return trio.run(play, graph, case, clock=clock)

    assert once() == once()


@given(case=cases)
@settings(deadline=None, max_examples=150)
def test_invariants_hold_for_random_graphs(case: Case) -> None:
    """One end for each call, ceilings at every instant, nothing behind the end, always the same."""
    check(case)


@pytest.mark.slow
@given(case=cases)
@settings(deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
def test_invariants_hold_for_many_random_graphs(case: Case) -> None:
    """The same, for longer."""
    check(case)
