"""Rule trees in conditions of graphs."""

import pytest

from vsr.config.step_rules import RecipeSignals
from vsr.resources.program import And, Leaf, Not, OnUnknown, RuleTree

DECLARED = {"keyword": {"math", "code"}, "context": {"long"}}
SIGNALS = RecipeSignals(DECLARED, ("keyword", "context"))
MATH: dict[str, object] = {"type": "keyword", "name": "math"}


def read(raw: object, signals: RecipeSignals = SIGNALS) -> tuple[RuleTree | None, list[str]]:
    """Return the tree that was written, and every complaint."""
    found: list[str] = []
    tree = signals.read(
        raw,
        ("when", 0),
        lambda path, *text: found.append(" | ".join((".".join(map(str, path)), *text))),
    )
    return tree, found


def test_tree_is_read_as_that_of_a_decision() -> None:
    """A leaf, or an operator with conditions; lists may have become tuples on the way."""
    composite = {
        "operator": "and",
        "conditions": (MATH, {"operator": "NOT", "conditions": [MATH]}),
        "on_unknown": "fail_request",
    }
    math = Leaf("keyword", "math")

    assert read(MATH) == (RuleTree(math), [])
    assert read(composite) == (RuleTree(And((math, Not(math))), OnUnknown.FAIL_REQUEST), [])


NOTHING = "names no signal", "", "write a type and a name, or an operator and conditions"
UNSERVED = "", "use another or remove it"
OUT_OF_PLACE = "is out of place", "", "write it on the rules themselves"


def under(leaf: dict[str, object]) -> dict[str, object]:
    """Return a leaf that is a condition among others."""
    return {"operator": "OR", "conditions": [MATH, leaf]}


@pytest.mark.parametrize(
    ("raw", "place", "text"),
    [
        (
            {"type": "keyword", "name": "maths"},
            ".name",
            ("'maths' is not declared under routing.signals.keywords", "", "did you mean 'math'?"),
        ),
        (
            {"type": "domain", "name": "law"},
            ".type",
            ("'domain' is not served by this version", *UNSERVED),
        ),
        (
            under({"type": "context", "name": "lon"}),
            ".conditions.1.name",
            ("'lon' is not declared under routing.signals.context", "", "did you mean 'long'?"),
        ),
        (
            under({**MATH, "predicate": {"gt": 1}}),
            ".conditions.1.predicate",
            ("is not served by this version", *UNSERVED),
        ),
        (under({**MATH, "on_unknown": "match"}), ".conditions.1.on_unknown", OUT_OF_PLACE),
        (
            under({**MATH, "nam": "x"}),
            ".conditions.1.nam",
            ("is an unknown key", "", "did you mean 'name'?"),
        ),
        (
            {"type": "keyword"},
            ".name",
            ("is missing", "a leaf names a signal by type and name", ""),
        ),
        ("math", "", NOTHING),
        ({}, "", NOTHING),
    ],
)
def test_fault_is_told_where_it_stands(raw: object, place: str, text: tuple[str, ...]) -> None:
    """In the words of a decision's faults, and nothing is made of the tree."""
    assert read(raw) == (None, [" | ".join((f"when.0{place}", *text))])


def test_without_a_document_there_are_no_signals() -> None:
    """The names are told; a tree that names none holds anywhere."""
    nowhere = RecipeSignals(None, ("keyword", "context"))
    why = "signals are declared by the recipe whose decision runs the graph"
    mend = "give the document with --config"

    assert read({"operator": "AND", "conditions": [MATH]}, nowhere) == (
        None,
        [" | ".join(("when.0", "asks for keyword:math, and there is no document", why, mend))],
    )
    assert read({"operator": "AND"}, nowhere) == (RuleTree(And()), [])


def test_type_without_a_list_of_names_takes_any() -> None:
    """As a recipe without domains does."""
    signals = RecipeSignals(DECLARED, ("keyword", "domain"))

    assert read({"type": "domain", "name": "x"}, signals) == (RuleTree(Leaf("domain", "x")), [])
