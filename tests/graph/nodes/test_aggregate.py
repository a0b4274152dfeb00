"""Node type `aggregate`."""

import pytest

from tests.fakes.caller import Said
from tests.fakes.graph import make_run, problems_of, run_steps, told
from vsr.errors import GraphFailed, UpstreamReset

END = {"type": "respond", "from": "$one"}
CALLS = {
    "id": "group", "type": "parallel", "over": ["a", "b"], "on_error": "skip",
    "do": [{"type": "call", "model": "$item"}],
}  # fmt: skip


async def test_strategy_judges_the_outcomes_in_declared_order() -> None:
    """Failed ones, too."""
    run = make_run({"a": Said(error=UpstreamReset()), "b": Said("B")})
    step = {"id": "one", "type": "aggregate", "strategy": "first", "from": "$group"}

    assert await told(run, CALLS, step, END) == "B"


async def test_plain_values_count_as_successes_and_failures_as_what_they_are() -> None:
    """So that a list of anything can be judged."""
    run = make_run({"a": Said(error=UpstreamReset()), "b": Said("B")})
    calls = [
        {"id": name, "type": "call", "model": name, "on_error": "value"} for name in ("a", "b")
    ]
    step = {"id": "one", "type": "aggregate", "strategy": "told", "from": ["$a", "$b", "word"]}

    assert await told(run, *calls, step, END) == "0:<upstream_reset>:0 1:B:1 2:word:2"


async def test_strategy_without_a_value_fails_the_step() -> None:
    """With its own message."""
    step = {
        "id": "one", "type": "aggregate", "strategy": "first", "from": "$group", "min_votes": 3,
    }  # fmt: skip

    with pytest.raises(GraphFailed, match=r"^too few replies$"):
        await run_steps(make_run(), CALLS, step, END)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"strategy": "best"}, "strategy: is no strategy: 'best', known: first, told"),
        ({}, "strategy: is no strategy: None, known: first, told"),
        (
            {"strategy": "first", "min_vote": 1},
            "min_vote: is an unknown key, did you mean 'min_votes'?",
        ),
        ({"strategy": "first", "min_votes": 0}, "cannot be used"),
        ({"strategy": "first", "min_votes": "1"}, "min_votes: is '1', and here stands integer"),
    ],
)
def test_fields_of_the_strategy_are_checked(fields: dict[str, object], problem: str) -> None:
    """They are those of its own class, and no others."""
    step = {"id": "one", "type": "aggregate", "from": "$group", **fields}

    assert any(problem in each for each in problems_of([CALLS, step, {**END, "from": "x"}]))


def test_type_of_the_step_is_the_strategys() -> None:
    """A reply has no such member."""
    step = {"id": "one", "type": "aggregate", "strategy": "first", "from": "$group"}

    [found] = problems_of([CALLS, step, {**END, "from": "$one.contents"}])

    assert "$one.contents: Reply has no member 'contents'" in found
