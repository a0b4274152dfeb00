"""The matchers of the looper fixtures."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.looper_matching import ABSENT, differences

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab$", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)

MATCHES: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 1.0, "b": 2}),
    ([{"a": 1}, {}], [{"a": 1, "b": 2}, {"c": 3}]),
    (None, None),
    ({"$any": True}, None),
    ({"$absent": True}, ABSENT),
    ({"a": {"$absent": True}}, {"b": 1}),
    ({"$exact": {"a": [1, {"b": 2.0}]}}, {"a": [1.0, {"b": 2}]}),
    ({"$contains": ["on", "tw"]}, "one two"),
    ({"$contains": ['"a":1']}, {"a": 1}),
    ({"$contains": ['"a": 1', "é"]}, {"a": 1, "b": "é"}),
    ({"$not_contains": ["three"]}, "one two"),
    ({"$regex": "n.*o$"}, "one two"),
    ({"$set": ["b", "a", "a"]}, "a, b,a"),
    ({"$set": [1, 2]}, [2, 1]),
    ({"$len": 2}, [1, 2]),
    ({"$approx": [0.5, 0.01]}, 0.509),
    ({"$one_of": ["a", "b"]}, "b"),
    ({"$contains": ["a"], "$not_contains": ["b"]}, "a"),
    ({"a": 1, "$b": 2}, {"a": 1, "$b": 2}),
]
DIFFERS: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {}),
    ({"a": None}, {}),
    ({"a": 1}, [1]),
    ({}, "text"),
    ([1], [1, 2]),
    ([{}], [3]),
    (1, True),
    (False, 0),
    (0, None),
    ("1", 1),
    ({"$any": True}, ABSENT),
    ({"$absent": True}, None),
    ({"$exact": {"a": 1}}, {"a": 1, "b": 2}),
    ({"$exact": {"a": 1}}, {"a": True}),
    ({"$exact": None}, ABSENT),
    ({"$contains": ["on", "x"]}, "one two"),
    ({"$contains": ["a"]}, ABSENT),
    ({"$not_contains": ["tw"]}, "one two"),
    ({"$not_contains": ["tw"]}, ABSENT),
    ({"$not_contains": ['"a":1']}, {"a": 1}),
    ({"$regex": "^two"}, "one two"),
    ({"$set": ["a", "b"]}, "a,b,b"),
    ({"$set": ["a"]}, {"a": 1}),
    ({"$len": 2}, [1]),
    ({"$len": 2}, 2),
    ({"$approx": [0.5, 0.01]}, 0.52),
    ({"$approx": [1, 0]}, True),
    ({"$approx": [0.5, 0.01]}, "0.5"),
    ({"$one_of": ["a", "b"]}, "c"),
    ({"$contains": ["a"], "$not_contains": ["b"]}, "ab"),
    ({"$nonsense": 1}, 1),
]


@pytest.mark.parametrize(("wanted", "got"), MATCHES)
def test_what_matches_has_no_differences(wanted: object, got: object) -> None:
    """Unlisted members are ignored, numbers compare by value, matchers all hold."""
    assert list(differences(wanted, got, "at")) == []


@pytest.mark.parametrize(("wanted", "got"), DIFFERS)
def test_what_does_not_match_is_one_difference(wanted: object, got: object) -> None:
    """Of which the path says where."""
    [line] = differences(wanted, got, "at")

    assert line.startswith("at")


def test_difference_says_where_and_both_values() -> None:
    """One line for each place that differs."""
    wanted = {"a": [{"b": 1}, {"$len": 1}], "c": "x"}

    found = list(differences(wanted, {"a": [{"b": 2}, []], "c": None}, "body"))

    assert found == [
        "body.a[0].b: expected 1, got 2",
        'body.a[1]: expected {"$len": 1}, got []',
        'body.c: expected "x", got null',
    ]


@given(VALUES, VALUES)
@settings(max_examples=60, deadline=None)
def test_exact_is_equality_of_json(one: object, other: object) -> None:
    """Whatever is in the values: nothing in them is a matcher."""
    assert list(differences({"$exact": one}, one, "")) == []
    assert (not list(differences({"$exact": one}, other, ""))) == (_typed(one) == _typed(other))


def _typed(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Return a value in which true is not 1."""
    if isinstance(value, dict):
        return {key: _typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return (type(value).__name__, value)
