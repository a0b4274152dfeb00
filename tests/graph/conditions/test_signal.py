"""Condition `signal`, and rule trees that stand for it."""

import attrs
import pytest

from tests.graph.branch_ends import INPUTS
from tests.graph.compiled_graphs import faults
from vsr.graph.bind import Binder
from vsr.graph.conditions.builtin import BUILTIN_CONDITIONS
from vsr.graph.conditions.compile import ConditionReader
from vsr.graph.conditions.signal import Signal
from vsr.graph.env import Constant, Env, Path
from vsr.graph.late import Condition, Predicate
from vsr.graph.scope import Scope
from vsr.graph.signal_trees import SignalTree, SignalTrees
from vsr.registry import Registry
from vsr.resources.program import Leaf, RuleTree

MATH = {"type": "keyword", "name": "math"}
CODE = {"type": "keyword", "name": "code"}


def test_condition_has_the_answer_that_was_found() -> None:
    """By its number."""
    inputs = attrs.evolve(INPUTS, signals=(True, False))

    assert Signal(SignalTree(0))(inputs)
    assert not Signal(SignalTree(1))(inputs)


def reader() -> tuple[ConditionReader, SignalTrees]:
    """Return what reads conditions, and what it finds."""

    def read(raw: object, path: Path, complain: object) -> RuleTree:
        del path, complain
        assert isinstance(raw, dict)
        return RuleTree(Leaf(str(raw.get("type", raw.get("operator"))), str(raw.get("name"))))

    def complain(*told: object) -> None:
        raise AssertionError(told)

    trees = SignalTrees(read)
    binder = Binder(complain)
    binder.readers[SignalTree] = lambda raw, path, _: trees.bind(raw, path, complain)
    return ConditionReader(Registry("condition", BUILTIN_CONDITIONS), binder), trees


@pytest.mark.parametrize(
    ("raw", "holds"),
    [
        ({"signal": MATH}, True),
        (MATH, True),
        ({"not": MATH}, False),
        ({"not": {"signal": CODE}}, True),
        ({"any": [CODE, {"signal": MATH}]}, True),
        ({"all": [CODE, MATH]}, False),
        ({"operator": "AND", "conditions": [MATH]}, False),
    ],
)
def test_tree_stands_wherever_a_condition_does(raw: object, *, holds: bool) -> None:
    """With the name of the condition or without, also in a predicate, whose value it ignores."""
    conditions, trees = reader()
    condition = conditions.read(raw, (), Env({}))
    predicate = conditions.read_predicate(raw, (), Env({}))
    answers = {RuleTree(Leaf("keyword", "math")): True}
    inputs = attrs.evolve(INPUTS, signals=tuple(answers.get(it, False) for it in trees.found))

    assert isinstance(condition, Constant)
    assert isinstance(condition.value, Condition)
    assert condition.value.holds(Scope({}), inputs) is holds
    assert isinstance(predicate, Constant)
    assert isinstance(predicate.value, Predicate)
    assert predicate.value.holds("anything", Scope({}), inputs) is holds


def test_graph_where_there_are_no_signals_is_refused() -> None:
    """At the condition, in the author's words."""
    arm = {"when": {"signal": MATH}, "then": [{"type": "respond", "from": "x"}]}
    bare = {"when": MATH, "then": [{"type": "respond", "from": "x"}]}
    steps = [
        {"type": "branch", "cases": [arm, bare], "else": [{"type": "respond", "from": "y"}]},
    ]

    assert faults(steps) == [
        "steps 0 cases 0 when signal asks for signals, and there are none here  remove it",
        "steps 0 cases 1 when asks for signals, and there are none here  remove it",
    ]
