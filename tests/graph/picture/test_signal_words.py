"""Conditions on signals in words."""

import pytest

from vsr.graph.picture.outline import in_one_line, outline
from vsr.graph.picture.signal_words import signal_words, tree_words
from vsr.resources.program import And, Leaf, Not, OnUnknown, Or, RuleTree

MATH = {"type": "keyword", "name": "math"}
LONG = {"type": "context", "name": "long"}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"signal": MATH}, "signal keyword:math"),
        (MATH, "signal keyword:math"),
        ({"operator": "or", "conditions": [MATH, LONG]}, "signal keyword:math or context:long"),
        ({"operator": "NOT", "conditions": [MATH]}, "signal not keyword:math"),
        (
            {
                "signal": {
                    "operator": "AND",
                    "conditions": [MATH, {"operator": "OR", "conditions": [MATH, LONG]}],
                }
            },
            "signal keyword:math and (keyword:math or context:long)",
        ),
        ({**MATH, "on_unknown": "match"}, "signal keyword:math (unknown: match)"),
        ({"not": {"signal": MATH}}, "not signal keyword:math"),
        ({"any": [MATH, {"empty": "$a"}]}, "signal keyword:math or {empty: $a}"),
        (
            {"all": [{"any": [MATH, LONG]}, MATH]},
            "(signal keyword:math or signal context:long) and signal keyword:math",
        ),
        ({"all": [{"empty": "$a"}]}, None),
        ({"succeeded": "$a"}, None),
        ({"signal": "math"}, "signal math"),
        ("math", None),
    ],
)
def test_condition_is_told_in_words(condition: object, words: str | None) -> None:
    """Those on signals are; what joins only others is left to others, faults and all."""
    assert signal_words(condition, in_one_line) == words


def test_compiled_tree_has_the_same_words() -> None:
    """`graph validate` tells what a graph asks."""
    math, long = Leaf("keyword", "math"), Leaf("context", "long")

    assert tree_words(RuleTree(math)) == "keyword:math"
    assert tree_words(RuleTree(And((Or((math, long)), Not(long))), OnUnknown.MATCH)) == (
        "(keyword:math or context:long) and not context:long (unknown: match)"
    )
    assert tree_words(RuleTree(And())) == "anything"


def test_pictures_show_the_words() -> None:
    """Beside an arm and in a field."""
    call = {"type": "call", "model": "small"}
    branch, loop = outline(
        [
            {"type": "branch", "cases": [{"when": {"signal": MATH}, "then": [call]}]},
            {"type": "loop", "until": {"not": MATH}, "max_items": 2, "do": [call]},
        ]
    )

    assert branch.parts[0].label == "when signal keyword:math"
    assert loop.facts[0] == ("until", "not signal keyword:math")
