"""Rules compiled to closures."""

import pytest
from hypothesis import given

from tests.strategies import MATCHES, RULES
from vsr.decision.rules import (
    RuleMatch,
    compile_guess,
    compile_rule,
    compile_tree,
    label,
    leaves,
)
from vsr.errors import SignalUnknown
from vsr.resources.program import And, Leaf, Not, OnUnknown, Or, Rule, RuleTree

A, B = Leaf("keyword", "a"), Leaf("context", "b")
U = Leaf("domain", "u")
UNKNOWN = {"domain:u": None}


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


@given(RULES, MATCHES)
def test_tree_whose_signals_are_all_known_is_its_rule(
    rule: Rule, matches: dict[str, float]
) -> None:
    """Whatever an unknown one would mean."""
    for on_unknown in (None, *OnUnknown):
        assert compile_tree(RuleTree(rule, on_unknown))(matches) == compile_rule(rule)(matches)


@pytest.mark.parametrize(
    ("rule", "is_open"),
    [
        (U, True),
        (Not(U), True),
        (Not(Not(U)), True),
        (And((A, U)), True),
        (And((U, B)), False),
        (And((Not(A), U)), False),
        (Or((B, U)), True),
        (Or((U, A)), False),
        (And((A, Or((U, B)))), True),
    ],
)
def test_unknown_signal_leaves_open_what_is_made_of_it(rule: Rule, *, is_open: bool) -> None:
    """Kleene's tables; `a` holds and `b` does not. What is not open is as it is without it."""
    matches = {"keyword:a": 0.5, **UNKNOWN}
    by_default = RuleMatch(1.0, ("on_unknown:match",))

    found = compile_tree(RuleTree(rule, OnUnknown.MATCH))(matches)

    assert found == (by_default if is_open else compile_rule(rule)({"keyword:a": 0.5}))


def test_open_tree_does_as_its_root_says() -> None:
    """Without a word it does not match; the signal itself is what does not."""
    assert compile_tree(RuleTree(U))(UNKNOWN) is None
    assert compile_tree(RuleTree(Not(U)))(UNKNOWN) == RuleMatch(1.0)
    assert compile_tree(RuleTree(Not(U), OnUnknown.NO_MATCH))(UNKNOWN) is None
    with pytest.raises(SignalUnknown):
        compile_tree(RuleTree(U, OnUnknown.FAIL_REQUEST))(UNKNOWN)


def test_branch_that_is_open_does_not_outrank_a_real_match() -> None:
    """Its negation would be certain, if an unknown signal were taken for a missing one."""
    rule = Or((Not(U), A))
    matches = {"keyword:a": 0.5, **UNKNOWN}

    assert compile_tree(RuleTree(rule, OnUnknown.MATCH))(matches) == RuleMatch(0.5, ("keyword:a",))


@given(RULES, MATCHES)
def test_guess_never_rules_out_what_matches(rule: Rule, matches: dict[str, float]) -> None:
    """Whatever turns out of the signals that are not known yet."""
    types = {it.partition(":")[0] for it in matches}
    for late in types:
        early = {it: value for it, value in matches.items() if not it.startswith(f"{late}:")}

        may_match = compile_guess(RuleTree(rule), frozenset({late}))(early)

        assert may_match or compile_rule(rule)(matches) is None


def test_guess_rules_out_what_other_signals_decide() -> None:
    """So that nobody asks a model for nothing."""
    may_match = compile_guess(RuleTree(And((A, U))), frozenset({"domain"}))

    assert may_match({"keyword:a": 1.0})
    assert not may_match({})
