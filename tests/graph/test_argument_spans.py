"""Where the values of arguments stand."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.argument_spans import argument_spans

LEAVES = (
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('arguments"\\{}[]:, é\n', max_size=9)
)
KEYS = st.sampled_from(["arguments", "name", "a b", ""])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def pieces(text: str) -> list[str]:
    """Return the marked pieces."""
    return [text[start:end] for start, end in argument_spans(text)]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ('{"name": "f", "arguments": {"city": "Paris", "n": 12}}', ["Paris", "12"]),
        (
            '{"arguments": {"a": {"b": [1, "x", {"c": null}], "d": true}}}',
            ["1", "x", "null", "true"],
        ),
        ('{"arguments": "{\\"city\\": \\"Rome\\"}"}', ['{\\"city\\": \\"Rome\\"}']),
        ('{"name": "f"}', []),
        ('{"name": "arguments", "x": 1}', []),
        ('{"arguments": ""}', [""]),
        ('["arguments", 1]', []),
    ],
)
def test_values_are_marked_and_keys_are_not(text: str, marked: list[str]) -> None:
    """At any depth: the inside of strings with their escapes, and other scalars."""
    assert pieces(text) == marked


def test_marking_lasts_until_the_object_with_the_key_closes() -> None:
    """Later siblings count, what stands before the key or outside its object does not."""
    text = '{"n": 0, "call": {"id": 1, "arguments": {"a": 2}, "b": "3", "c": [4]}, "d": 5}'

    assert pieces(text) == ["2", "3", "4"]


def test_text_before_and_between_objects_is_passed_over() -> None:
    """Its quotes and brackets open nothing; a second object is read like the first."""
    text = '" [<call>{"arguments": {"a": 1}}</call> it\'s "<call>{"arguments": {"a": 2}}</call>'

    assert pieces(text) == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ('{"arguments": {"city": "Par', ["Par"]),
        ('{"arguments": "a\\', ["a", "\\"]),
        ('{"arguments": {"city"', []),
        ('{"arguments": tr', ["tr"]),
        ('{"arguments": 1]]}} x "y"', ["1"]),
        ("{", []),
        ("", []),
        ("no object", []),
    ],
)
def test_broken_text_is_read_as_far_as_it_goes(text: str, marked: list[str]) -> None:
    """An answer may be cut at any token, and a model may write no JSON."""
    assert pieces(text) == marked


@settings(max_examples=60)
@given(VALUES, st.sampled_from([None, 1]))
def test_marked_pieces_are_the_values_of_arguments(value: object, indent: int | None) -> None:
    """Of any JSON object, in any layout, they are what a real parser finds there."""
    whole = {"x": value, "arguments": value}
    text = json.dumps(whole, indent=indent, ensure_ascii=False)

    assert pieces(text) == list(expected(whole, is_active=False))


def expected(value: object, *, is_active: bool) -> Iterator[str]:
    """Yield the leaves below `arguments`, as JSON spells them but without quotes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            is_active = is_active or key == "arguments"
            yield from expected(inner, is_active=is_active)
    elif isinstance(value, list):
        for inner in value:
            yield from expected(inner, is_active=is_active)
    elif is_active:
        spelled = json.dumps(value, ensure_ascii=False)
        yield spelled[1:-1] if isinstance(value, str) else spelled


@settings(max_examples=60)
@given(st.text('{}[]:,"\\ a1\n', max_size=30), st.booleans())
def test_any_text_is_read(text: str, starts_well: bool) -> None:  # noqa: FBT001
    """Pieces stand in order, apart, and inside the text."""
    whole = '{"arguments":' + text if starts_well else text
    at = 0

    for start, end in argument_spans(whole):
        assert at <= start <= end <= len(whole)
        at = end
