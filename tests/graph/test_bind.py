"""Values of fields: literals, references, constants, and what only the value itself can tell."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

import pytest

from tests.fakes.graph import make_run, problems_of, run_steps, told
from vsr.errors import GraphFailed
from vsr.graph.kinds import Fit, conforms, described, fit, item_of, member_of, united
from vsr.graph.value import BranchOutcome, Failure, ModelRef
from vsr.resources.graph import ParamSpec, ParamType

END = {"type": "respond", "from": "$shown"}
MADE = {
    "id": "made", "type": "transform", "transformer": "record",
    "members": {"text": "$request.question", "number": 3, "list": ["a", "b"], "deep": {"x": 1}},
}  # fmt: skip
SPECS = {
    "text": ParamSpec(ParamType.STRING, required=False),
    "record": ParamSpec(ParamType.RECORD, required=False),
    "wait": ParamSpec(ParamType.DURATION, default="90s"),
    "models": ParamSpec(ParamType.MODELS, default=["a", "b"]),
    "refs": ParamSpec(ParamType.MODEL_REFS, default=["a", {"model": "b", "weight": 2.0}]),
}


def show(value: object) -> dict[str, object]:
    """Return a step that takes any value."""
    return {"id": "shown", "type": "transform", "transformer": "shown", "value": value}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "'plain'"),
        ("a $name inside", "'a $name inside'"),
        ("$$name", "'$name'"),
        ("$$$name", "'$$name'"),
        (7, "7"),
        (None, "None"),
        ([1, "$request.question", ["$$x"]], "(1, 'What is it?', ('$x',))"),
        ({"a": "$request.question", "b": {"c": 1}}, "{'a': 'What is it?', 'b': {'c': 1}}"),
        ("$made.text", "'What is it?'"),
        ("$made.list", "('a', 'b')"),
        ("$made.list.1", "'b'"),
        ("$made.list.7", "None"),
        ("$made.deep.x", "1"),
        ("$made.deep.x.y.z", "None"),
        ("$made.nothing.at.all", "None"),
        ("$params.wait", "90.0"),
        ("$params.models", "('a', 'b')"),
        ("$params.models.1", "'b'"),
        ("$params.refs.1.model", "'b'"),
        ("$params.refs.1.weight", "2.0"),
        ("$params.refs.0.called_name", "'a'"),
        ("$params.text", "None"),
        ("$params.record.x.y", "None"),
    ],
)
async def test_value_of_a_field(value: object, shown: str) -> None:
    """A reference or a literal, also inside of lists and mappings."""
    assert await told(make_run(), MADE, show(value), END, specs=SPECS) == shown


@pytest.mark.parametrize(("number", "got"), [("$made.number", "4"), (3, "4")])
async def test_value_that_only_it_can_tell_is_looked_at_when_its_step_runs(
    number: object, got: str
) -> None:
    """It fits here."""
    count = {"id": "sum", "type": "transform", "transformer": "count", "value": number}

    assert await told(make_run(), MADE, count, show("$sum"), END) == got


async def test_value_that_does_not_fit_fails_its_step() -> None:
    """The message says what it is, not which."""
    count = {"id": "sum", "type": "transform", "transformer": "count", "value": "$made.text"}

    with pytest.raises(GraphFailed) as caught:
        await run_steps(make_run(), MADE, count, show("$sum"), END)

    assert str(caught.value) == "$made.text is text, and the step takes integer"


async def test_value_that_a_class_refuses_fails_its_step() -> None:
    """Where it is known only then."""
    step = {"type": "aggregate", "strategy": "first", "from": [], "min_votes": "$made.low"}
    made = {**MADE, "members": {"low": 0}}

    with pytest.raises(GraphFailed, match="a step cannot use what it is given"):
        await run_steps(make_run(), made, step, show(1), END)


@pytest.mark.parametrize(
    ("low", "is_fine"), [("$params.text", True), ("$params.wait", False), ("$params.models", False)]
)
def test_parameters_are_constants(low: str, *, is_fine: bool) -> None:
    """Their values are checked when the graph is compiled."""
    step = {"id": "x", "type": "transform", "transformer": "text", "parts": [], "between": low}

    found = problems_of([step, {**END, "from": "x"}], specs=SPECS, params={"text": "-"})

    assert (found == []) is is_fine


class Colour(StrEnum):
    """A closed set."""

    RED = "red"


@pytest.mark.parametrize(
    ("source", "target", "answer"),
    [
        (str, str, Fit.YES),
        (str, int, Fit.NO),
        (int, float, Fit.YES),
        (float, int, Fit.NO),
        (bool, int, Fit.NO),
        (bool, float, Fit.NO),
        (object, str, Fit.MAYBE),
        (str, object, Fit.YES),
        (str, str | None, Fit.YES),
        (str | None, str, Fit.MAYBE),
        (str | int, str | None, Fit.MAYBE),
        (str | int, float | str, Fit.YES),
        (type(None), str, Fit.NO),
        (tuple[str, ...], tuple[str, ...], Fit.YES),
        (list[str], tuple[str, ...], Fit.YES),
        (tuple[str, ...], tuple[object, ...], Fit.YES),
        (tuple[str, ...], tuple[int, ...], Fit.MAYBE),
        (tuple[object, ...], tuple[int, ...], Fit.MAYBE),
        (str, tuple[str, ...], Fit.NO),
        (dict[str, int], Mapping[str, object], Fit.YES),
        (str, Mapping[str, object], Fit.NO),
        (Literal["a"], str, Fit.YES),
        (Literal["a", 1], str, Fit.MAYBE),
        (str, Literal["a", "b"], Fit.MAYBE),
        (int, Literal["a", "b"], Fit.NO),
        (Literal["a"], Literal["a", "b"], Fit.YES),
        (Literal["a", "c"], Literal["a", "b"], Fit.MAYBE),
        (Literal["c"], Literal["a", "b"], Fit.NO),
        (str, Colour, Fit.MAYBE),
        (Colour, str, Fit.YES),
        (Failure, ModelRef, Fit.NO),
        (BranchOutcome[str], BranchOutcome[object], Fit.YES),
    ],
)
def test_types_are_compared_before_anything_runs(
    source: object, target: object, answer: Fit
) -> None:
    """What surely cannot stand there is refused; what may is looked at later."""
    assert fit(source, target) is answer


@pytest.mark.parametrize(
    ("value", "kind", "is_one"),
    [
        (1, float, True),
        (True, int, False),
        (True, bool, True),
        (None, str | None, True),
        (["a"], tuple[str, ...], True),
        (["a", 1], tuple[str, ...], False),
        ("ab", tuple[str, ...], False),
        ({"a": 1}, Mapping[str, int], True),
        ({"a": "b"}, Mapping[str, int], False),
        ("a", Literal["a"], True),
        ("b", Literal["a"], False),
        (1, object, True),
    ],
)
def test_values_are_compared_when_they_are_there(
    value: object, kind: object, *, is_one: bool
) -> None:
    """Lists and mappings are looked through."""
    assert conforms(value, kind) is is_one


@pytest.mark.parametrize(
    ("kind", "name", "member"),
    [
        (tuple[str, ...], "0", str),
        (tuple[str, ...], "x", None),
        (str, "0", None),
        (Mapping[str, int], "x", int),
        (ModelRef, "weight", float),
        (ModelRef, "nothing", None),
        (ModelRef | None, "weight", float),
        (BranchOutcome[str], "value", str | None),
        (tuple[BranchOutcome[str], ...], "0", BranchOutcome[str]),
        (BranchOutcome[str], "is_lost", bool),
        (object, "x", object),
        (type(None), "x", None),
    ],
)
def test_members_have_types(kind: object, name: str, member: object) -> None:
    """Fields, properties, items and keys."""
    assert member_of(kind, name) == member


def test_unions_are_flat_and_anything_swallows_them() -> None:
    """Of no types at all there is nothing."""
    assert united([str, int | str]) == str | int
    assert united([str, object]) is object
    assert united([]) is type(None)
    assert item_of(tuple[str, ...] | None) is str
    assert item_of(str) is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (str | None, "text or nothing"),
        (tuple[int, ...], "a list of integer"),
        (Mapping[str, int], "a mapping"),
        (Literal["a", "b"], "one of a, b"),
        (ModelRef, "ModelRef"),
        (object, "anything"),
        (float | int, "number or integer"),
    ],
)
def test_types_are_told_in_an_authors_words(kind: object, words: str) -> None:
    """No Python in messages."""
    assert described(kind) == words
