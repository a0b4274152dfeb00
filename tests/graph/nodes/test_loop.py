"""Node type `loop`."""

import pytest

from tests.fakes.graph import caller_of, make_run, problems_of, run_steps, told
from vsr.errors import GraphFailed

SHOW = (
    {"id": "shown", "type": "transform", "transformer": "shown", "value": "$rounds"},
    {"type": "respond", "from": "$shown"},
)
ADD = {"id": "sum", "type": "transform", "transformer": "count", "value": "$index", "more": 10}
IS_TWO = {"equals": {"value": "$index", "to": 2}}


def loop(*do: object, **fields: object) -> dict[str, object]:
    """Return a loop."""
    return {"id": "rounds", "type": "loop", "do": list(do) or [ADD], **fields}


@pytest.mark.parametrize(
    ("fields", "got"),
    [
        ({"times": 3}, "(10, 11, 12)"),
        ({"times": 0}, "()"),
        ({"over": []}, "()"),
        ({"max_items": 2}, "(10, 11)"),
        ({"times": 9, "until": IS_TWO}, "(10, 11, 12)"),
        ({"max_items": 2, "until": IS_TWO}, "(10, 11)"),
        ({"times": 2, "yield": "$index"}, "(0, 1)"),
        ({"over": ["a", "b"], "yield": "$item"}, "('a', 'b')"),
        ({"over": ["a", "b"], "as": "name", "yield": ["$name", "$sum"]}, "(('a', 10), ('b', 11))"),
        ({"over": ["a", "b"], "max_items": 2, "yield": {"at": "$sum"}}, "({'at': 10}, {'at': 11})"),
    ],
)
async def test_loop_yields_once_per_round(fields: dict[str, object], got: str) -> None:
    """The value of the round's last step, unless it says what."""
    assert await told(make_run(), loop(**fields), *SHOW) == got


@pytest.mark.parametrize("fields", [{"over": ["a", "b"]}, {"times": 2}])
async def test_more_rounds_than_the_most_fail(fields: dict[str, object]) -> None:
    """Before the first one."""
    run = make_run()
    call = {"type": "call", "model": "a"}

    with pytest.raises(GraphFailed, match=r"2 (items|rounds), more than 1"):
        await run_steps(run, loop(call, max_items=1, **fields), *SHOW)

    assert run.ledger.entries == []


async def test_break_leaves_the_loop_and_yields_nothing() -> None:
    """From inside a branch, too."""
    leave = {"type": "branch", "cases": [{"when": IS_TWO, "then": [{"type": "break"}]}]}

    assert await told(make_run(), loop(leave, ADD, times=9), *SHOW) == "(10, 11)"


async def test_break_leaves_the_inner_loop_alone() -> None:
    """The outer one goes on."""
    inner = {
        "type": "loop",
        "times": 5,
        "index": "at",
        "do": [ADD | {"id": "s"}, {"type": "break"}],
    }

    assert await told(make_run(), loop(inner, times=2), *SHOW) == "((), ())"


async def test_state_is_kept_from_round_to_round_and_seen_behind_the_loop() -> None:
    """Where `set` changes it, whatever the depth; it begins anew with the loop."""
    grow = {"id": "next", "type": "transform", "transformer": "count", "value": "$sum"}
    keep = {"type": "set", "values": {"sum": "$next"}}
    inner = {
        "id": "rounds", "type": "loop", "times": 3, "index": "at", "state": {"sum": 5},
        "do": [grow, keep], "yield": "$sum",
    }  # fmt: skip
    outer = loop(inner, {"type": "transform", "transformer": "count", "value": "$sum"}, times=2)

    got = await told(make_run(), outer | {"id": "outer"}, SHOW[0] | {"value": "$outer"}, SHOW[1])

    assert got == "(9, 9)"


async def test_variables_are_set_all_at_once() -> None:
    """So that two of them can change places."""
    swap = {"type": "set", "values": {"a": "$b", "b": "$a"}}
    step = loop(swap, times=3, state={"a": "x", "b": "y"}, **{"yield": ["$a", "$b"]})

    assert await told(make_run(), step, *SHOW) == "(('y', 'x'), ('x', 'y'), ('y', 'x'))"


async def test_answer_ends_the_graph_from_any_depth() -> None:
    """Later rounds and steps never run."""
    respond = {"type": "respond", "from": "inside"}
    step = loop(
        {"type": "branch", "cases": [{"when": IS_TWO, "then": [respond]}]},
        {"type": "call", "model": "a"},
        times=9,
    )
    run = make_run()

    assert await told(run, step, *SHOW) == "inside"
    assert len(caller_of(run).calls) == 2
    assert [entry.step for entry in run.ledger.entries] == ["rounds[0]/call#1", "rounds[1]/call#1"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "give over, times or max_items"),
        ({"times": 1, "over": []}, "give over or times, not both"),
        ({"times": 1, "as": "params"}, "'params' is taken"),
        ({"times": 1, "index": "a b"}, "'a b' is no name"),
        ({"times": 1, "state": {"request": 1}}, "'request' is taken"),
    ],
)
def test_loop_without_an_end_or_with_bad_names_is_refused(
    fields: dict[str, object], problem: str
) -> None:
    """When it is compiled."""
    do = [{"type": "transform", "transformer": "text", "parts": []}]
    step = {"id": "rounds", "type": "loop", "do": do, **fields}

    assert any(problem in each for each in problems_of([step, {"type": "respond", "from": "x"}]))
