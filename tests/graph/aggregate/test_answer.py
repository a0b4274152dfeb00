"""What an answer is and when two are the same."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.aggregate.answer import Normalization, answer_key, extract_answer


@pytest.mark.parametrize("normalization", ["exact", "trimmed", "casefold", "number"])
def test_blank_text_is_no_answer(normalization: Normalization) -> None:
    """However it is compared."""
    assert answer_key(" \n", normalization) is None
    assert answer_key("", normalization) is None


def test_texts_are_compared_as_told() -> None:
    """Case folding is Unicode's."""
    assert answer_key(" Straße ", "exact") == " Straße "
    assert answer_key(" Straße ", "trimmed") == "Straße"
    assert answer_key(" Straße ", "casefold") == answer_key("STRASSE", "casefold")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", "42"),
        ("= 42.00 apples", "42"),
        ("first 1, then 2", "2"),
        ("$1,234,567.50", "1234567.5"),
        ("1,2,3", "3"),
        ("1,2345", "2345"),
        ("-7", "-7"),
        ("x = -7.", "-7"),
        ("\u22127", "-7"),
        ("3-4", "4"),
        ("2024-05", "5"),
        (".5", "0.5"),
        ("6.02e23", "6.02E23"),
        ("1e3x", "3"),
        ("50%", "50"),
        ("9" * 60, "9" * 60),
    ],
)
def test_number_is_the_last_one_in_the_text(text: str, number: str) -> None:
    """By value and exactly, whatever stands around it and however it is written."""
    assert answer_key(text, "number") == Decimal(number)


@pytest.mark.parametrize("text", ["none", "-", "٣", "e+x", "..."])
def test_text_without_a_number_is_no_number(text: str) -> None:
    """So it has no vote where numbers are compared."""
    assert answer_key(text, "number") is None


@settings(max_examples=80)
@given(st.text("0123456789.,-eE+ x", max_size=14))
def test_text_has_a_number_if_it_has_a_digit(text: str) -> None:
    """Whatever else it has."""
    key = answer_key(text, "number")

    assert (key is not None) is any(character.isdigit() for character in text)


@settings(max_examples=40)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=3), st.sampled_from("., !"))
def test_spelling_of_a_number_makes_no_difference(number: Decimal, end: str) -> None:
    """With or without separators, and with a sentence around it."""
    assert answer_key(f"It is {number:,f}{end}", "number") == number
    assert answer_key(f"{number:f}", "number") == number


def test_content_is_the_answer_by_default() -> None:
    """All of it."""
    assert extract_answer(" a\nb ", "content") == " a\nb "


@pytest.mark.parametrize(
    ("content", "line"),
    [("a\nb\n \n", "b"), ("a", "a"), ("a\r\n b ", " b "), (" \n", None), ("", None)],
)
def test_last_line_is_one_that_says_something(content: str, line: str | None) -> None:
    """White space at the end of a reply is no line."""
    assert extract_answer(content, "last_line") == line


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ("A: 1, no, A: 2", "2"),
        ("none", None),
        ("A:", None),
        ("A: 1 and A:", None),
        ("é A: 3", "3"),
    ],
)
def test_pattern_takes_the_group_of_its_last_match(content: str, answer: str | None) -> None:
    """A model may change its mind; a group that has no part in the match is no answer."""
    assert extract_answer(content, "pattern", pattern=r"A:(?: (\d))?") == answer


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ('{"a": "x"}', "x"),
        ('text ```{"a": "x"}``` text', "x"),
        ('{"a": 7}', "7"),
        ('{"a": true}', "true"),
        ('{"a": {"z": 1, "b": [1, 2]}}', '{"b":[1,2],"z":1}'),
        ('{"a": null}', None),
        ('{"b": 1}', None),
        ('{"a": 1', None),
        ('} {"a"', None),
        ("7", None),
        ("", None),
        ('{"x": ' + "[" * 20_000 + "]" * 20_000 + "}", None),
    ],
)
def test_member_of_the_object_is_the_answer(content: str, answer: str | None) -> None:
    """In one spelling, so that it can be compared; null is no answer."""
    assert extract_answer(content, "json", member="a") == answer
