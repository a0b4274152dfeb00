"""Node type `branch`."""

import pytest

from tests.fakes.graph import make_run, problems_of, told
from vsr.resources.graph import ParamSpec, ParamType

SPECS = {"which": ParamSpec(ParamType.STRING)}
ENDLESS = (
    "graphs.main.steps: may come to its end without an answer, "
    "let every way through it end with a respond step"
)
SHOW = (
    {"id": "shown", "type": "transform", "transformer": "shown", "value": "$taken"},
    {"type": "respond", "from": "$shown"},
)


def text(*parts: str) -> dict[str, object]:
    """Return a step that makes a text."""
    return {"type": "transform", "transformer": "text", "parts": list(parts)}


def case(word: str, *then: object) -> dict[str, object]:
    """Return an arm that is taken for a word."""
    return {"when": {"equals": {"value": "$params.which", "to": word}}, "then": list(then)}


@pytest.mark.parametrize(
    ("which", "got"), [("a", "'first'"), ("b", "'second'"), ("c", "'neither'")]
)
async def test_first_arm_that_holds_is_taken(which: str, got: str) -> None:
    """Its last step's value is the step's."""
    cases = [case("a", text("first")), case("a", text("never")), case("b", text("second"))]
    step = {"id": "taken", "type": "branch", "cases": cases, "else": [text("neither")]}

    assert await told(make_run(), step, *SHOW, specs=SPECS, params={"which": which}) == got


async def test_without_an_arm_that_holds_there_is_no_value() -> None:
    """And nothing fails."""
    step = {"id": "taken", "type": "branch", "cases": [case("a", text("first"))]}

    assert await told(make_run(), step, *SHOW, specs=SPECS, params={"which": "x"}) == "None"


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({"all": [{"equals": {"value": 1, "to": 1}}, {"equals": {"value": 2, "to": 2}}]}, True),
        ({"all": [{"equals": {"value": 1, "to": 1}}, {"equals": {"value": 2, "to": 1}}]}, False),
        ({"any": [{"equals": {"value": 1, "to": 2}}, {"equals": {"value": 2, "to": 2}}]}, True),
        ({"any": [{"equals": {"value": 1, "to": 2}}]}, False),
        ({"not": {"equals": {"value": 1, "to": 2}}}, True),
        ({"not": {"any": [{"succeeded": "$params.which"}]}}, False),
        ({"succeeded": "$params.which"}, True),
    ],
)
async def test_conditions_are_put_together(when: object, *, holds: bool) -> None:
    """With `all`, `any` and `not`; what is no mapping is a condition's `value`."""
    cases = [{"when": when, "then": [text("yes")]}]
    step = {"id": "taken", "type": "branch", "cases": cases, "else": [text("no")]}

    got = await told(make_run(), step, *SHOW, specs=SPECS, params={"which": "x"})

    assert got == ("'yes'" if holds else "'no'")


def test_arms_that_all_end_the_graph_leave_nothing_behind_them() -> None:
    """A later step is never reached, and no answer is missing."""
    respond = {"type": "respond", "from": "x"}
    fails = {"type": "fail", "message": "no"}
    step = {"id": "taken", "type": "branch", "cases": [case("a", respond)], "else": [fails]}

    assert problems_of([step], specs=SPECS, params={"which": "a"}) == []
    assert problems_of([step, respond], specs=SPECS, params={"which": "a"}) == [
        "graphs.main.steps.1: is never reached, taken ends the list, remove it"
    ]


def test_arm_that_comes_to_its_end_needs_an_answer_behind_it() -> None:
    """As an absent `else` does."""
    respond = {"type": "respond", "from": "x"}
    step = {"type": "branch", "cases": [case("a", respond)]}

    assert problems_of([step], specs=SPECS, params={"which": "a"}) == [ENDLESS]


def test_names_of_an_arm_end_with_it() -> None:
    """Another arm may not have been taken."""
    inner = text("x") | {"id": "inner"}
    step = {"type": "branch", "cases": [case("a", inner)]}
    found = problems_of(
        [step, {"type": "respond", "from": "$inner"}], specs=SPECS, params={"which": "a"}
    )

    [problem] = found
    assert problem.startswith("graphs.main.steps.1.from: $inner refers to nothing that an earlier")
