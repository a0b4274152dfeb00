"""Node types `set`, `break` and `fail`, and what any step does with a failure."""

import pytest

from tests.fakes.caller import Said
from tests.fakes.graph import make_run, problems_of, run_steps, told
from vsr.errors import BudgetExhausted, GraphFailed, UpstreamReset
from vsr.graph.budget import Budget, Limits

END = {"type": "respond", "from": "x"}
CALL = {"id": "one", "type": "call", "model": "a"}
SHOW = (
    {"id": "shown", "type": "transform", "transformer": "shown", "value": "$one"},
    {"type": "respond", "from": "$shown"},
)
BROKEN = {"a": Said(error=UpstreamReset())}


async def test_fail_ends_the_graph_with_the_authors_text_and_status() -> None:
    """Values are put in."""
    step = {"type": "fail", "message": "no answer to {{ request.question }}", "status": 422}

    with pytest.raises(GraphFailed) as caught:
        await run_steps(make_run(), step)

    assert (str(caught.value), caught.value.status) == ("no answer to What is it?", 422)


@pytest.mark.parametrize("status", [399, 600, "500"])
def test_status_of_a_failure_is_one(status: object) -> None:
    """From 400 to 599."""
    assert problems_of([{"type": "fail", "message": "no", "status": status}])


@pytest.mark.parametrize("steps", [[{"type": "break"}, END], [{"type": "break"}]])
def test_break_needs_a_loop(steps: list[dict[str, object]]) -> None:
    """Around it, with no parallel step between."""
    found = problems_of(steps)

    assert "graphs.main.steps.0: there is no loop around this step that it could leave" in found


def test_break_cannot_leave_a_parallel_step() -> None:
    """Its branches are not the loop's."""
    inner = {"type": "parallel", "times": 2, "index": "at", "do": [{"type": "break"}]}

    [found] = problems_of([{"type": "loop", "times": 2, "do": [inner]}, END])

    assert found.startswith("graphs.main.steps.0.do.0.do.0: there is no loop")


@pytest.mark.parametrize("name", ["nothing", "one", "index", "item"])
def test_only_variables_of_a_loop_are_set(name: str) -> None:
    """No step's value, no round's number or item."""
    do = [{"type": "set", "values": {name: 1}}]
    one = {"id": "one", "type": "transform", "transformer": "text", "parts": []}

    [found] = problems_of([one, {"type": "loop", "over": [1], "state": {"n": 0}, "do": do}, END])

    assert found == (
        f"graphs.main.steps.1.do.0: {name!r} is no variable of a loop around this step"
    )


def test_branches_of_a_parallel_step_share_no_variable() -> None:
    """Which of them came last would be luck."""
    inner = {
        "type": "parallel", "times": 2, "index": "at",
        "do": [{"type": "set", "values": {"n": 1}}],
    }  # fmt: skip

    [found] = problems_of([{"type": "loop", "times": 2, "state": {"n": 0}, "do": [inner]}, END])

    assert "'n' is shared by the branches of a parallel step" in found


async def test_variables_of_a_loop_inside_a_branch_are_its_own() -> None:
    """They may be set there."""
    grow = {"id": "next", "type": "transform", "transformer": "count", "value": "$n"}
    loop = {
        "type": "loop", "times": 3, "index": "round", "state": {"n": "$at"},
        "do": [grow, {"type": "set", "values": {"n": "$next"}}],
    }  # fmt: skip
    tell = {"type": "transform", "transformer": "count", "value": "$n", "more": 0}
    group = {"id": "one", "type": "parallel", "times": 2, "index": "at", "do": [loop, tell]}
    told_of = {"id": "shown", "type": "aggregate", "strategy": "told", "from": "$one"}

    assert await told(make_run(), group, told_of, SHOW[1]) == "0:3:0 1:4:1"


async def test_failed_step_ends_the_graph() -> None:
    """Unless it says otherwise."""
    with pytest.raises(UpstreamReset):
        await run_steps(make_run(BROKEN), CALL, *SHOW)


async def test_failure_may_be_passed_over_or_be_the_value() -> None:
    """`skip` leaves nothing, `value` what went wrong."""
    assert await told(make_run(BROKEN), {**CALL, "on_error": "skip"}, *SHOW) == "None"
    got = await told(
        make_run(BROKEN), {**CALL, "on_error": "value"}, {**SHOW[0], "value": "$one.code"}, SHOW[1]
    )
    assert got == "'upstream_reset'"


async def test_error_text_takes_the_place_of_the_failures_own() -> None:
    """Status and code stay."""
    step = {**CALL, "error": "{{ request.question }} failed: {{ cause }}"}

    with pytest.raises(GraphFailed) as caught:
        await run_steps(make_run(budget=Budget(Limits(max_hops=0))), step, *SHOW)

    error = caught.value
    assert str(error) == "What is it? failed: The request's budget is exhausted."
    assert (error.status, error.code) == (429, "budget_exhausted")
    assert error.headers == BudgetExhausted.headers
    assert isinstance(error.__cause__, BudgetExhausted)


def test_error_text_uses_what_there_is() -> None:
    """And nothing else."""
    [found] = problems_of([{**CALL, "error": "no {{ nothing.at_all }}"}, END])

    assert found == "graphs.main.steps.0.error: uses 'nothing', which nothing provides"


@pytest.mark.parametrize("word", ["retry", 1, None])
def test_on_error_is_one_of_three_words(word: object) -> None:
    """Nothing else."""
    [found] = problems_of([{**CALL, "on_error": word}, END])

    assert found.startswith("graphs.main.steps.0.on_error: is")
