"""Rules compiled to closures."""

import pytest
from hypothesis import given

from tests.strategies import MATCHES, RULES
from vsr.decision.rules import RuleMatch, compile_rule, label, leaves
from vsr.resources.program import And, Leaf, Not, Or, Rule

A, B = Leaf("keyword", "a"), Leaf("context", "b")


def naive(rule: Rule, matches: dict[str, float]) -> tuple[float, list[str]] | None:
    """Return confidence and labels by the words of the rule table."""
    if isinstance(rule, Leaf):
        name = f"{rule.type}:{rule.name}"
        return (matches[name], [name]) if name in matches else None
    if isinstance(rule, Not):
        return (1.0, []) if naive(rule.condition, matches) is None else None
    found = [naive(condition, matches) for condition in rule.conditions]
    held = [it for it in found if it is not None]
    if isinstance(rule, Or):
        return max(held, key=lambda it: it[0]) if held else None
    if len(held) < len(found):
        return None
    mean = sum(it[0] for it in held) / len(held) if held else 0.0
    return mean, [name for it in held for name in it[1]]


@given(RULES, MATCHES)
def test_rule_agrees_with_the_naive_evaluator(rule: Rule, matches: dict[str, float]) -> None:
    """Match, confidence and labels are those of the table, for any tree and any matches."""
    found = compile_rule(rule)(matches)

    expected = naive(rule, matches)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.confidence == pytest.approx(expected[0])
        assert list(found.labels) == expected[1]


@pytest.mark.parametrize(
    ("rule", "matches", "expected"),
    [
        (A, {"keyword:a": 1.0}, RuleMatch(1.0, ("keyword:a",))),
        (A, {"keyword:a": 0.0}, RuleMatch(0.0, ("keyword:a",))),
        (A, {"context:a": 1.0}, None),
        (Leaf(" Keyword ", "a"), {"keyword:a": 1.0}, RuleMatch(1.0, ("keyword:a",))),
        (Leaf("keyword", "A"), {"keyword:a": 1.0}, None),
        (And(), {}, RuleMatch(0.0)),
        (Or(), {"keyword:a": 1.0}, None),
        (
            And((A, B)),
            {"keyword:a": 0.5, "context:b": 1.0},
            RuleMatch(0.75, ("keyword:a", "context:b")),
        ),
        (And((A, B)), {"keyword:a": 1.0}, None),
        (Or((A, B)), {"keyword:a": 0.5, "context:b": 1.0}, RuleMatch(1.0, ("context:b",))),
        (Or((A, B)), {"keyword:a": 0.5, "context:b": 0.5}, RuleMatch(0.5, ("keyword:a",))),
        (Not(A), {"keyword:a": 0.0}, None),
        (Not(A), {}, RuleMatch(1.0)),
        (Not(And()), {}, None),
        (And((A, Not(B))), {"keyword:a": 0.5}, RuleMatch(0.75, ("keyword:a",))),
    ],
)
def test_rule_follows_the_table(
    rule: Rule, matches: dict[str, float], expected: RuleMatch | None
) -> None:
    """An explicit 0 is a match, empty AND a catch-all, OR keeps its first best child."""
    assert compile_rule(rule)(matches) == expected


def test_leaves_come_in_the_order_written() -> None:
    """Leaves are found at any depth, repeated ones too."""
    rule = And((A, Or((Not(B), And((A,)))), Or()))

    assert list(leaves(rule)) == [A, B, A]


def test_label_normalises_only_the_type() -> None:
    """Types are lower case in labels, names as written."""
    assert label(" Keyword ", "MyRule") == "keyword:MyRule"
