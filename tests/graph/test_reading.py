"""What is read out of a value."""

import pytest

from tests.graph.branch_ends import ends, failure, reply
from vsr.graph.reading import is_usable, reply_of, success_of, text_of
from vsr.graph.value import Prompt


def test_success_is_what_is_there() -> None:
    """Of a branch's outcome what the branch brought; a failure brings nothing, wherever it is."""
    (won,) = ends(0)
    lost, failed = ends(None, failure())
    last_step_failed = type(won)(0, failure(), rank=0)

    assert success_of("") == ""
    assert success_of(won) == 0
    for nothing in (None, failure(), lost, failed, last_step_failed):
        assert success_of(nothing) is None


def test_reply_and_text_are_found_in_outcomes_too() -> None:
    """A value of another kind has neither."""
    (won,) = ends("a")

    assert reply_of(won) == reply_of(reply("a")) == reply("a")
    assert reply_of("a") is None
    assert [text_of(value) for value in (won, reply("a"), "a", Prompt("a"))] == ["a"] * 4
    assert text_of(7) is None
    assert text_of(failure()) is None


@pytest.mark.parametrize(
    ("content", "reasoning", "usable"),
    [("a", "", True), ("", "b", True), (" \n", "b", True), (" \n", "\t", False), ("", "", False)],
)
def test_reply_is_usable_if_it_says_or_thinks_something(
    content: str,
    reasoning: str,
    usable: bool,  # noqa: FBT001
) -> None:
    """White space says nothing."""
    assert is_usable(reply(content, reasoning=reasoning)) is usable
