"""References to environment variables."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.environment import Expanded, expand, expand_braced

ENVIRON = {"A": "alpha", "EMPTY": "", "X_1": "one", "9": "nine", "D": "$A ${A}", "A-b": "dash"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "alpha"),
        ("$A", "alpha"),
        ("<$A>", "<alpha>"),
        ("$A.b", "alpha.b"),
        ("$X_1", "one"),
        ("$9", "nine"),
        ("${NONE}", ""),
        ("$NONE", ""),
        ("${A:-word}", "alpha"),
        ("${EMPTY:-word}", "word"),
        ("${NONE:-word}", "word"),
        ("${NONE:-}", ""),
        ("${A-word}", "alpha"),
        ("${EMPTY-word}", ""),
        ("${NONE-word}", "word"),
        ("${NONE-a-b}", "a-b"),
        ("${NONE-a:-b}", "b"),
        ("${A-b:-word}", "dash"),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-${A}}", "${A}"),
        ("$$", "$"),
        ("$$A", "$A"),
        ("$${A}", "${A}"),
        ("$$$A", "$alpha"),
        ("${", "${"),
        ("${A", "${A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$-", "$-"),
        ("$ A", "$ A"),
        ("${}", ""),
        ("${ A }", ""),
        ("${A}${A}", "alphaalpha"),
        ("${D}", "$A ${A}"),
        ("$\u00e9", "$\u00e9"),
        ("nothing", "nothing"),
        ("", ""),
    ],
)
def test_expand_replaces_references(text: str, expected: str) -> None:
    """One pass, left to right; the result is not read again."""
    assert expand(text, ENVIRON) == expected


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("${A}", True),
        ("$A", True),
        ("${A:-1}", True),
        ("x${A}", False),
        ("$A$A", False),
        ("$$", False),
        ("$", False),
        ("${A", False),
    ],
)
def test_expand_marks_a_text_that_is_one_reference(text: str, *, whole: bool) -> None:
    """Only such a text may stand for a number or a truth value."""
    expanded = expand(text, ENVIRON)

    assert isinstance(expanded, Expanded)
    assert expanded.is_reference is whole


def test_expanded_text_shows_what_was_written() -> None:
    """A credential from the environment can't reach a message through `repr`."""
    expanded = expand("key ${A}", ENVIRON)

    assert repr(expanded) == "'key ${A}'"
    assert expanded == "key alpha"


@settings(deadline=None)
@given(st.text())
def test_escaped_text_expands_to_itself(text: str) -> None:
    """Doubling each dollar is a complete escape."""
    assert expand(text.replace("$", "$$"), ENVIRON) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "alpha"),
        ("$A ${NONE:-word} $params.x", "$A word $params.x"),
        ("$$ $${A} $$${A}", "$$ ${A} $${A}"),
        ("$9", "$9"),
        ("${A", "${A"),
    ],
)
def test_in_braces_alone_other_dollars_stay(text: str, expected: str) -> None:
    """Where `$name` means another thing, as in graphs."""
    assert expand_braced(text, ENVIRON) == expected


def test_reference_in_braces_may_stand_for_a_number_if_it_is_alone() -> None:
    """As with the other kinds of references."""
    alone, among = expand_braced("${A}", ENVIRON), expand_braced("${A}${A}", ENVIRON)

    assert isinstance(alone, Expanded)
    assert isinstance(among, Expanded)
    assert (alone.is_reference, among.is_reference) == (True, False)
    assert repr(alone) == "'${A}'"
