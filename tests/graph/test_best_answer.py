"""`on_exhausted: respond_best`: what a graph answers with whose budget ends it."""

import msgspec
import pytest
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import QUESTION, caller_of, make_run, run_steps, source_of, told
from vsr.errors import BudgetExhausted, CallFailed, DeadlineExceeded, GraphFailed
from vsr.graph.block import Answer
from vsr.graph.budget import Budget, Limits
from vsr.resources.graph import GraphLimits, OnExhausted

BEST = GraphLimits(on_exhausted=OnExhausted.RESPOND_BEST)
DRAFT = {"id": "draft", "type": "call", "model": "a"}
BETTER = {"id": "better", "type": "call", "model": "b", "edits": [{"append": "Better, please."}]}
LAST = {"type": "respond", "from": "$last"}


def final(model: str = "c", **fields: object) -> dict[str, object]:
    """Return a call whose reply would be the answer."""
    return {"id": "last", "type": "call", "model": model, **fields}


def hops(count: int) -> Budget:
    """Return a budget of so many calls."""
    return Budget(Limits(max_hops=count))


async def test_refused_call_makes_the_reply_before_it_the_answer() -> None:
    """Whole, and as a stream where the client wants one."""
    for request, is_stream in ((QUESTION, False), (_streaming(QUESTION), True)):
        run = make_run({"a": Said("A")}, budget=hops(1), request=request)

        answer = await run_steps(run, DRAFT, final(), LAST, limits=BEST)

        assert isinstance(answer, Answer)
        assert answer.is_exhausted
        assert (answer.status, answer.is_stream, answer.model) == (200, is_stream, "a")
        assert answer.body.startswith(b"data: ") is is_stream
        assert answer.usage.total_tokens == 10
        assert caller_of(run).called == ["a"]


async def test_refused_tail_call_is_answered_the_same() -> None:
    """Nothing has gone to the client yet."""
    run = make_run({"a": Said("A")}, budget=hops(1))

    assert await told(run, DRAFT, final(stream="tail"), LAST, limits=BEST) == "A"


async def test_graph_that_its_budget_never_stopped_is_not_exhausted() -> None:
    """Though all of it is spent."""
    answer = await run_steps(make_run(budget=hops(2)), DRAFT, final(), LAST, limits=BEST)

    assert isinstance(answer, Answer)
    assert not answer.is_exhausted


@pytest.mark.parametrize("on_exhausted", [OnExhausted.SKIP, OnExhausted.FAIL])
async def test_others_fail(on_exhausted: OnExhausted) -> None:
    """With what the step that was refused failed with."""
    run = make_run(budget=hops(1))

    with pytest.raises(BudgetExhausted):
        await run_steps(run, DRAFT, final(), LAST, limits=GraphLimits(on_exhausted=on_exhausted))


async def test_nothing_to_answer_with_is_a_failure() -> None:
    """Neither where no call was made, nor where its reply says nothing."""
    with pytest.raises(BudgetExhausted):
        await run_steps(make_run(budget=hops(0)), DRAFT, LAST | {"from": "$draft"}, limits=BEST)
    run = make_run({"a": Said(" ")}, budget=hops(1))
    with pytest.raises(BudgetExhausted):
        await run_steps(run, DRAFT, final(), LAST, limits=BEST)


async def test_reply_to_another_question_is_no_answer_unless_its_step_says_so() -> None:
    """The client wants no judge's verdict; a better draft counts where its step says so."""
    script = {"a": Said("A"), "b": Said("B")}

    run = make_run(script, budget=hops(2))
    assert await told(run, DRAFT, BETTER, final(), LAST, limits=BEST) == "A"
    run = make_run(script, budget=hops(2))
    asked = {"id": "better", "type": "call", "model": "b", "request": "Better?"}
    assert await told(run, DRAFT, asked, final(), LAST, limits=BEST) == "A"

    run = make_run(script, budget=hops(2))
    assert await told(run, DRAFT, BETTER | {"answers": True}, final(), LAST, limits=BEST) == "B"
    run = make_run(script, budget=hops(2))
    with pytest.raises(BudgetExhausted):
        await run_steps(run, DRAFT | {"answers": False}, BETTER, final(), LAST, limits=BEST)


async def test_call_that_began_last_counts(autojump_clock: trio.testing.MockClock) -> None:
    """Not the one that ended last, so that the same seed gives the same answer."""
    del autojump_clock
    script = {"a": Said("A", after_s=3), "b": Said("B", after_s=1)}
    run = make_run(script, budget=hops(2))
    group = {
        "id": "group",
        "type": "parallel",
        "over": ["a", "b"],
        "do": [{"type": "call", "model": "$item", "allow": ["a", "b"]}],
    }

    assert await told(run, group, final(), LAST, limits=BEST) == "B"


async def test_siblings_of_a_refused_branch_run_on(autojump_clock: trio.testing.MockClock) -> None:
    """And a step that fails for want of them, in words of its own, is answered as well."""
    del autojump_clock
    run = make_run(lambda _, number: Said(f"no {number}", after_s=1), budget=hops(2))
    group = {
        "id": "group",
        "type": "parallel",
        "times": 3,
        "on_error": "skip",
        "do": [{"type": "call", "model": "a"}],
    }
    short = {"type": "fail", "message": "too few", "status": 502}

    assert await told(run, group, short, limits=BEST) == "no 2"


async def test_failure_that_the_budget_did_not_cause_stands(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A broken backend, and a deadline, even behind a refusal that a step went on from."""
    run = make_run({"a": Said("A"), "c": Said(status=500)}, budget=hops(9))
    with pytest.raises(CallFailed):
        await run_steps(run, DRAFT, final(), LAST, limits=BEST)

    run = make_run({"a": Said("A"), "slow": Said(after_s=60)}, budget=hops(2), timeout_s=5)
    group = {
        "id": "group",
        "type": "parallel",
        "on_error": "skip",
        "branches": [[{"type": "call", "model": "slow"}], [{"type": "call", "model": "b"}]],
    }
    with pytest.raises(DeadlineExceeded):
        await run_steps(run, DRAFT, group, final(), LAST, limits=BEST)
    assert run.was_refused


async def test_graph_inside_answers_for_itself() -> None:
    """With a reply of its own calls only; the graph around goes on with it."""
    inner = source_of(
        [DRAFT, final("b"), LAST], {}, GraphLimits(max_hops=1, on_exhausted=BEST.on_exhausted), "in"
    )
    step = {"id": "inner", "type": "subgraph", "graph": "in"}
    answer = {"type": "respond", "from": "$inner"}
    run = make_run({"a": Said("A")})

    assert await told(run, step, answer, others=[inner]) == "A"

    empty = source_of(
        [final("b"), LAST], {}, GraphLimits(max_hops=0, on_exhausted=BEST.on_exhausted), "in"
    )
    with pytest.raises(BudgetExhausted):
        await run_steps(make_run(), DRAFT, step, answer, others=[empty])


@pytest.mark.parametrize("delays", [(1, 2), (2, 1)])
async def test_graphs_side_by_side_have_a_best_reply_each(
    delays: tuple[float, float], autojump_clock: trio.testing.MockClock
) -> None:
    """Whichever ends first."""
    del autojump_clock
    limits = GraphLimits(max_hops=1, on_exhausted=BEST.on_exhausted)
    inner = source_of([DRAFT, final("b"), LAST], {}, limits, "in")
    group = {
        "id": "group",
        "type": "parallel",
        "times": 2,
        "do": [{"id": "x", "type": "subgraph", "graph": "in"}],
    }
    shown = {"id": "shown", "type": "transform", "transformer": "shown", "value": "$group"}
    run = make_run(lambda _, number: Said(f"a {number}", after_s=delays[number - 1]))

    told_by_both = await told(
        run, group, shown, {"type": "respond", "from": "$shown"}, others=[inner]
    )

    assert "a 1" in told_by_both
    assert "a 2" in told_by_both
    assert "budget" not in told_by_both


async def test_reply_without_a_text_is_no_answer_but_one_with_tool_calls_is() -> None:
    """A model that thought until its tokens were spent has said nothing to the client."""
    thought = b'{"model":"m","choices":[{"message":{"content":"","reasoning_content":"Hm."}}]}'
    run = make_run({"a": Said(body=thought)}, budget=hops(1))
    with pytest.raises(BudgetExhausted):
        await run_steps(run, DRAFT, final(), LAST, limits=BEST)

    run = make_run({"a": Said("", tool="look")}, budget=hops(1))
    answer = await run_steps(run, DRAFT, final(), LAST, limits=BEST)
    assert isinstance(answer, Answer)
    assert b'"look"' in answer.body


async def test_deadline_in_the_words_of_a_step_is_a_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """More budget would not have helped."""
    del autojump_clock
    refused = final("b", on_error="skip")
    late = {"type": "call", "model": "slow", "timeout": "1s", "error": "too slow: {{ cause }}"}
    inner = source_of([late, {"type": "respond", "from": "x"}], {}, None, "in")
    run = make_run({"a": Said("A"), "slow": Said(after_s=9)}, budget=hops(2))
    steps = (DRAFT, {"type": "subgraph", "graph": "in"}, refused, LAST | {"from": "$draft"})

    with pytest.raises(GraphFailed, match="too slow"):
        await run_steps(run, *steps, limits=BEST, others=[inner])


async def test_graph_around_answers_with_a_reply_of_the_graph_inside() -> None:
    """Whose own limits say nothing of it."""
    inner = source_of([DRAFT, final("b"), LAST], {}, None, "in")
    step = {"id": "inner", "type": "subgraph", "graph": "in"}
    run = make_run({"a": Said("A")}, budget=hops(1))

    answer = {"type": "respond", "from": "$inner"}
    assert await told(run, step, answer, limits=BEST, others=[inner]) == "A"


async def test_text_of_a_step_does_not_hide_that_it_was_refused() -> None:
    """The failure has another class then."""
    run = make_run({"a": Said("A")}, budget=hops(1))
    last = final(error="no final answer: {{ cause }}")

    assert await told(run, DRAFT, last, LAST, limits=BEST) == "A"
    with pytest.raises(GraphFailed, match="no final answer"):
        await run_steps(make_run(budget=hops(1)), DRAFT, last, LAST)


def _streaming(request: bytes) -> bytes:
    members = msgspec.json.decode(request)
    return msgspec.json.encode({**members, "stream": True})
