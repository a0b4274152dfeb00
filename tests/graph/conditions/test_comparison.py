"""Conditions `equals`, `score_at_least` and `content_matches`."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.branch_ends import INPUTS, ends, failure, reply
from vsr.decision.signals.pattern_set import PatternError
from vsr.graph.conditions.comparison import ContentMatches, Equals, ScoreAtLeast
from vsr.graph.reading import MaybeText
from vsr.graph.value import Prompt
from vsr.routing.outcome import Cause

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("a"), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "a"),
        (1, 1.0),
        (True, True),
        (None, None),
        (("a", 1), ["a", 1.0]),
        ({"a": (1,), "b": 2}, {"b": 2, "a": [1]}),
        (Cause.LOST, "lost"),
    ],
)
def test_equal_values(one: object, other: object) -> None:
    """A value of the run and the way a document writes it."""
    assert Equals(one, other)(INPUTS)
    assert Equals(other, one)(INPUTS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "A"),
        (1, True),
        (0, False),
        ([1], [True]),
        ("1", 1),
        ("", None),
        ("ab", ["a", "b"]),
        (("a",), ("a", "a")),
        ((), ("a",)),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, {"a": True}),
        ({}, []),
        (None, False),
    ],
)
def test_unequal_values(one: object, other: object) -> None:
    """1 is not true, and nothing is taken for something of another kind."""
    assert not Equals(one, other)(INPUTS)
    assert not Equals(other, one)(INPUTS)


@settings(max_examples=60)
@given(VALUES, VALUES)
def test_equality_goes_both_ways(one: object, other: object) -> None:
    """And every value equals itself."""
    assert Equals(one, one)(INPUTS)
    assert Equals(one, other)(INPUTS) is Equals(other, one)(INPUTS)


def test_score_on_the_threshold_is_enough() -> None:
    """Of a branch's outcome its number counts."""
    won, lost, failed = ends(0.7, None, failure())

    assert ScoreAtLeast(0.7, 0.7)(INPUTS)
    assert ScoreAtLeast(1, 0.7)(INPUTS)
    assert ScoreAtLeast(0.0, -1)(INPUTS)
    assert ScoreAtLeast(won, 0.7)(INPUTS)  # type: ignore[arg-type]
    assert not ScoreAtLeast(0.699, 0.7)(INPUTS)
    for missing in (None, failure(), lost, failed, math.nan):
        assert not ScoreAtLeast(missing, -1)(INPUTS)  # type: ignore[arg-type]


def test_pattern_is_found_anywhere_in_a_text() -> None:
    """Of a reply, in its content."""
    (won,) = ends("The answer is 42.")

    for text in ("is 42", Prompt("is 42\n"), reply("is 42"), won):
        assert ContentMatches(text, r"is \d+")(INPUTS)  # type: ignore[arg-type]
    for other in ("is x", reply("", reasoning="is 42"), None, failure()):
        assert not ContentMatches(other, r"is \d+")(INPUTS)


def test_missing_text_matches_nothing() -> None:
    """Not even what an empty text matches."""
    missing: MaybeText = None

    assert ContentMatches("", "")(INPUTS)
    assert not ContentMatches(missing, "")(INPUTS)


def test_case_matters_unless_told_otherwise() -> None:
    """Also beyond ASCII."""
    assert not ContentMatches("ÉCOLE", "école")(INPUTS)
    assert ContentMatches("ÉCOLE", "école", case_sensitive=False)(INPUTS)


def test_expression_that_re2_refuses_is_refused() -> None:
    """When it is written, not when it is asked."""
    with pytest.raises(PatternError, match="pattern is not valid RE2"):
        ContentMatches("a", "(?<=a)b")
