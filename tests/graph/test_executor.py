"""Running a compiled graph for one request."""

import pytest
import trio
import trio.testing

from tests.fakes.caller import FakeCaller
from tests.fakes.graph import FakePrompt, make_context
from vsr.errors import BudgetExhausted, UpstreamReset
from vsr.graph.budget import Budget, Limits
from vsr.graph.compile import PLAIN_STEPS, CompiledGraph, Step, compile_graph
from vsr.graph.context import TailCall
from vsr.graph.executor import execute
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.graph.nodes.node import Node
from vsr.headers import Headers
from vsr.registry import Registry
from vsr.routing.effect import ImmediateResponse
from vsr.routing.outcome import Outcome, Terminal, Usage

NODES: Registry[Node] = Registry("node type", BUILTIN_NODES)
PLAIN = compile_graph("builtin/plain", PLAIN_STEPS, NODES, params=("model",))


def two_calls(answer_from: str) -> CompiledGraph:
    """Return a graph with a draft and a final call."""
    steps = (
        Step("draft", "call", {"model": "beta"}),
        Step("final", "call", {"model": "$params.model"}),
        Step("reply", "respond", {"from_": answer_from}),
    )
    return compile_graph("two", steps, NODES, params=("model",))


async def test_plain_graph_hands_out_its_call() -> None:
    """One ledger entry, open, with one reservation; nothing was called here."""
    budget = Budget(Limits(max_hops=3, max_tokens=100))
    ctx = make_context(budget=budget)

    tail = await execute(PLAIN, ctx)

    assert isinstance(tail, TailCall)
    assert tail.model == "alpha"
    assert ctx.ledger.entries == ctx.ledger.open_entries == [tail.entry]
    assert (tail.entry.model, tail.entry.reservation.tokens) == ("alpha", 30)
    assert (budget.hops, budget.reserved_tokens, budget.spent_tokens) == (1, 30, 0)


async def test_handed_out_call_is_settled_once() -> None:
    """By whoever ends it first."""
    budget = Budget(Limits(max_tokens=100))
    ctx = make_context(budget=budget)
    tail = await execute(PLAIN, ctx)
    assert isinstance(tail, TailCall)

    ctx.close_call(tail.entry, Outcome(Terminal.SUCCEEDED, status=200, usage=Usage(10, 5)))
    ctx.close_call(tail.entry, Outcome(Terminal.CANCELLED))

    assert (budget.spent_tokens, budget.reserved_tokens) == (15, 0)
    assert ctx.ledger.open_entries == []
    assert tail.entry.outcome is not None
    assert tail.entry.outcome.terminal is Terminal.SUCCEEDED


async def test_bounds_are_not_asked_for_without_a_token_limit() -> None:
    """Estimating a prompt costs time that a plain request need not spend."""
    prompt = FakePrompt()
    ctx = make_context(prompt=prompt)

    tail = await execute(PLAIN, ctx)

    assert isinstance(tail, TailCall)
    assert tail.entry.reservation.tokens is None
    assert prompt.measured == 0


@pytest.mark.parametrize("limits", [Limits(max_hops=0), Limits(max_tokens=29)])
async def test_refused_reservation_makes_no_call(limits: Limits) -> None:
    """Nothing is in the ledger, since nothing was started."""
    budget = Budget(limits)
    ctx = make_context(budget=budget)

    with pytest.raises(BudgetExhausted):
        await execute(PLAIN, ctx)

    assert ctx.ledger.entries == []
    assert (budget.hops, budget.reserved_tokens) == (0, 0)


async def test_steps_run_in_order_before_the_tail() -> None:
    """Their calls go through the caller, the tail's does not."""
    caller = FakeCaller()
    ctx = make_context(caller=caller)

    tail = await execute(two_calls("$final"), ctx)

    assert isinstance(tail, TailCall)
    assert [call.body for call in caller.calls] == [b"beta"]
    assert [entry.model for entry in ctx.ledger.entries] == ["beta", "alpha"]
    assert ctx.ledger.open_entries == [tail.entry]


async def test_graph_answers_from_an_earlier_reply() -> None:
    """Status, type and body are the backend's."""
    headers = Headers([(b"content-type", b"text/plain"), (b"server", b"backend")])
    caller = FakeCaller(answer=(429, headers, b"slow down"))
    ctx = make_context(caller=caller)

    answer = await execute(two_calls("$draft"), ctx)

    assert isinstance(answer, ImmediateResponse)
    assert (answer.status, answer.body) == (429, b"slow down")
    assert [(edit.name, edit.value) for edit in answer.edits] == [(b"content-type", b"text/plain")]
    assert [call.body for call in caller.calls] == [b"beta", b"alpha"]
    assert ctx.ledger.open_entries == []


async def test_reply_without_a_type_is_json() -> None:
    """Chat completions are."""
    ctx = make_context(caller=FakeCaller())

    answer = await execute(two_calls("$draft"), ctx)

    assert isinstance(answer, ImmediateResponse)
    assert [edit.value for edit in answer.edits] == [b"application/json"]


async def test_failed_step_ends_the_graph() -> None:
    """Later steps never start."""
    caller = FakeCaller(answer=UpstreamReset())
    ctx = make_context(caller=caller)

    with pytest.raises(UpstreamReset):
        await execute(two_calls("$final"), ctx)

    assert len(caller.calls) == 1
    assert [entry.model for entry in ctx.ledger.entries] == ["beta"]
    assert ctx.ledger.open_entries == []


async def test_cancelled_graph_leaves_no_call_open(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Cut off in its first step."""
    ctx = make_context(caller=FakeCaller(delay_s=60))
    with trio.move_on_after(1) as scope:
        await execute(two_calls("$final"), ctx)

    assert scope.cancelled_caught
    assert trio.current_time() == 1
    assert ctx.ledger.open_entries == []
    assert ctx.budget.reserved_tokens == 0
