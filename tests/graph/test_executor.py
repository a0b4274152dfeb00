"""Running a compiled graph for one request: deadline, budget, causes, and what stays behind."""

import pytest
import trio
import trio.testing

from tests.fakes.caller import FakeCaller, Said
from tests.fakes.extensions import REGISTRIES
from tests.fakes.graph import (
    BOUND,
    Authored,
    FakeHops,
    FakeTasks,
    caller_of,
    ends_of,
    make_run,
    plain_facts,
    run_steps,
    source_of,
    told,
)
from vsr.deadline import Deadline
from vsr.errors import BudgetExhausted, DeadlineExceeded, UpstreamReset
from vsr.graph.block import Answer
from vsr.graph.budget import Budget, Limits
from vsr.graph.executor import execute
from vsr.graph.graph import GraphCompiler
from vsr.headers import Headers
from vsr.resources.graph import GraphLimits, OnExhausted, ParamSpec, ParamType
from vsr.routing.budget import Price
from vsr.routing.outcome import Cause, Terminal
from vsr.routing.plan import Call
from vsr.routing.ports import CallAnswer, Journal

END = {"type": "respond", "from": "done"}
RESPOND_LAST = {"type": "respond", "from": "$last"}
SET_N = {"type": "set", "values": {"n": "$next"}}
FAILS = GraphLimits(on_exhausted=OnExhausted.FAIL)


def call(model: str = "a", **fields: object) -> dict[str, object]:
    """Return a call."""
    return {"type": "call", "model": model, **fields}


def calls(count: int, **fields: object) -> dict[str, object]:
    """Return so many calls side by side."""
    return {"id": "group", "type": "parallel", "times": count, "do": [call()], **fields}


async def test_deadline_ends_every_call_and_starts_none(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever the steps do with failures."""
    run = make_run({"a": Said(after_s=60)}, timeout_s=5)

    with pytest.raises(DeadlineExceeded):
        await run_steps(run, calls(3, on_error="skip"), call("never", on_error="skip"), END)

    assert trio.current_time() == 5
    assert ends_of(run) == ["a timed_out deadline"] * 3
    assert caller_of(run).under_way == 0


async def test_no_call_starts_at_the_deadline(autojump_clock: trio.testing.MockClock) -> None:
    """Not even when the step before has ended in that very moment."""

    class Late(FakeCaller):
        async def call(
            self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
        ) -> CallAnswer:
            del limit_bytes, journal
            self.calls.append(call)
            with trio.CancelScope(shield=True):
                await trio.sleep_until(deadline.at)
            return CallAnswer(200, Headers(), b"{}")

    run = make_run(Late(), timeout_s=5)

    with pytest.raises(DeadlineExceeded):
        await run_steps(run, call(), call("never"), END)

    assert [entry.model for entry in run.ledger.entries] == ["a"]


async def test_client_that_leaves_is_the_cause_of_every_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Also within a group that has a timeout of its own."""
    run = make_run({"a": Said(after_s=60)}, timeout_s=90)
    tasks = run.tasks
    assert isinstance(tasks, FakeTasks)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_steps, run, calls(2, timeout="50s"), END)
            await trio.sleep(2)
            tasks.cause = Cause.CLIENT_GONE
            scope.cancel()

    assert ends_of(run) == ["a cancelled client_gone"] * 2
    assert (run.budget.reserved_tokens, caller_of(run).under_way) == (0, 0)
    assert [entry.ended_at for entry in run.ledger.entries] == [2, 2]


async def test_branch_that_fails_while_the_graph_ends_is_not_its_cause(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The first cause counts: here a refusal, whose failure ends the group, too."""
    run = make_run({"a": Said(after_s=60)}, budget=Budget(Limits(max_hops=2)))

    with pytest.raises(BudgetExhausted):
        await run_steps(run, calls(3), END, limits=FAILS)

    assert ends_of(run) == ["a cancelled budget"] * 2


async def test_refused_call_fails_its_step_and_siblings_run_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Unless the limits say otherwise."""
    run = make_run({"a": Said(after_s=1)}, budget=Budget(Limits(max_hops=2)))

    assert await told(run, calls(3, on_error="skip"), END) == "done"

    assert ends_of(run) == ["a succeeded"] * 2


@pytest.mark.parametrize(
    "after", [{"type": "transform", "transformer": "text", "parts": []}, call("b", on_error="skip")]
)
async def test_refusal_ends_the_graph_where_its_limits_say_so(
    autojump_clock: trio.testing.MockClock, after: dict[str, object]
) -> None:
    """At once, whatever the step that was refused would do."""
    run = make_run({"a": Said(after_s=60)}, budget=Budget(Limits(max_hops=2)))
    group = calls(3, on_error="skip")

    with pytest.raises(BudgetExhausted):
        await run_steps(run, group, after, END, limits=FAILS)

    assert trio.current_time() == 0
    assert ends_of(run) == ["a cancelled budget"] * 2


@pytest.mark.parametrize(("limits", "ends"), [(FAILS, True), (GraphLimits(), False)])
async def test_refused_retry_ends_the_graph_where_its_limits_say_so(
    autojump_clock: trio.testing.MockClock, limits: GraphLimits, *, ends: bool
) -> None:
    """A retry is an attempt like the first; else only its call fails."""
    said = {"a": Said(retries=(True, True)), "b": Said(after_s=60)}
    run = make_run(said, budget=Budget(Limits(max_hops=2)))
    group = {
        "type": "parallel",
        "on_error": "skip",
        "branches": [[call("b")], [call("a")]],
    }

    if ends:
        with pytest.raises(BudgetExhausted):
            await run_steps(run, group, END, limits=limits)
    else:
        await run_steps(run, group, END, limits=limits)

    assert trio.current_time() == (0 if ends else 60)


async def test_graph_that_ended_does_not_answer_all_the_same() -> None:
    """A step that passes over the refusal would."""
    run = make_run(budget=Budget(Limits(max_hops=0)))

    with pytest.raises(BudgetExhausted):
        await run_steps(run, call(on_error="skip"), END, limits=FAILS)


async def test_later_steps_never_start_behind_a_failure() -> None:
    """And nothing is open."""
    run = make_run({"a": Said(error=UpstreamReset())})

    with pytest.raises(UpstreamReset):
        await run_steps(run, call(), call("b"), END)

    assert ends_of(run) == ["a failed"]


async def test_parameters_may_come_with_the_run() -> None:
    """Of a graph that was compiled without any."""
    specs = {"model": ParamSpec(ParamType.MODEL)}
    graph = GraphCompiler(REGISTRIES, Authored().graphs.get, plain_facts).open(
        source_of([call("$params.model"), END], specs), lambda *problem: pytest.fail(str(problem))
    )
    run = make_run()

    assert isinstance(await execute(graph, run, {"model": "b"}), Answer)

    assert caller_of(run).called == ["b"]


async def test_watch_is_told_of_every_start_and_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With step and times."""
    run = make_run({"a": Said(after_s=1)})
    seen: list[tuple[int, str, float, Terminal | None]] = []
    run.ledger.watch = lambda entry: seen.append(
        (
            entry.ordinal,
            entry.step,
            entry.started_at,
            None if entry.outcome is None else entry.outcome.terminal,
        )
    )

    await run_steps(run, call(), {"id": "last", **call("b", stream="tail")}, RESPOND_LAST)

    assert seen == [
        (1, "call#0", 0, None),
        (1, "call#0", 0, Terminal.SUCCEEDED),
        (2, "last", 1, None),
    ]


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        (Limits(max_hops=7), 7),
        (Limits(max_tokens=7 * BOUND), 7),
        (Limits(max_tokens=7 * BOUND + BOUND - 1), 7),
        (Limits(max_prompt_tokens=70), 7),
        (Limits(max_completion_tokens=140), 7),
        (Limits(max_cost_nano_usd=7 * 50_000), 7),
        (Limits(max_cost_nano_usd=0), 0),
    ],
)
@pytest.mark.parametrize("usage", [(10, 20), None])
async def test_budget_race_makes_exactly_as_many_calls_as_there_is_room_for(
    autojump_clock: trio.testing.MockClock,
    limits: Limits,
    made: int,
    usage: tuple[int, int] | None,
) -> None:
    """Fifty branches ask at once; the first ones in declared order get it."""
    budget = Budget(limits)
    run = make_run(
        {"a": Said(after_s=1, usage=usage)}, budget=budget, hops=FakeHops(Price(1.0, 2.0))
    )

    await run_steps(run, calls(50, on_error="skip"), END)

    assert caller_of(run).attempts == budget.hops == made
    assert [entry.step for entry in run.ledger.entries] == [
        f"group[{at}]/call#0" for at in range(made)
    ]
    assert (budget.reserved_tokens, budget.reserved_nano_usd) == (0, 0)


@pytest.mark.parametrize("is_known_zero", [True, False])
@pytest.mark.parametrize(
    "limits",
    [Limits(max_hops=7), Limits(max_tokens=7 * BOUND), Limits(max_cost_nano_usd=7 * 50_000)],
)
async def test_budget_race_counts_retries(
    autojump_clock: trio.testing.MockClock, limits: Limits, *, is_known_zero: bool
) -> None:
    """Each is reserved for; what an attempt may have used stays spent."""
    said = Said(after_s=1, usage=(10, 20), retries=[is_known_zero] * 2)
    budget = Budget(limits)
    run = make_run({"a": said}, budget=budget, hops=FakeHops(Price(1.0, 2.0)))

    await run_steps(run, calls(50, on_error="skip"), END)

    attempts = caller_of(run).attempts
    if limits.max_hops is not None or not is_known_zero:
        assert attempts == budget.hops == 7
    else:
        # Attempts that used nothing leave their room to others: seven calls get through.
        assert len(run.ledger.entries) == 7
        assert attempts == budget.hops == 21
    assert (budget.reserved_tokens, budget.reserved_nano_usd) == (0, 0)
    tokens = budget.spent_tokens
    assert limits.max_tokens is None or tokens <= limits.max_tokens
    for entry in run.ledger.entries:
        assert all(each.is_settled for each in (*entry.settled, entry.reservation))
