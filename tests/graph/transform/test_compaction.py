"""What of a reply is shown to its reader."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.transform.compaction import compacted


@pytest.mark.parametrize(
    ("text", "tokens", "wanted"),
    [
        ("AAAA-aaaa-1234567", 2, "-1234567"),
        ("12345678", 2, "12345678"),
        ("123456789", 2, "23456789"),
        ("aéééé", 2, "éééé"),
        ("éééaé", 1, "aé"),
        ("x" * 4001, None, "x" * 4000),
        ("x" * 4001, 0, "x" * 4000),
    ],
)
def test_last_tokens_are_kept(text: str, tokens: int | None, wanted: str) -> None:
    """A token is four bytes; a character that would be cut in two is left out."""
    assert compacted(text, "last_n_tokens", tokens) == wanted


def test_full_keeps_everything() -> None:
    """The number of tokens is without effect then."""
    assert compacted("x" * 50, "full", 1) == "x" * 50


@settings(max_examples=80)
@given(st.text("aé€😀", max_size=40), st.integers(1, 6))
def test_compacted_is_the_end_of_the_text(text: str, tokens: int) -> None:
    """It is never longer than allowed, and never shorter by a whole character than it could be."""
    kept = compacted(text, "last_n_tokens", tokens)

    size = len(kept.encode())
    assert text.endswith(kept)
    assert size <= tokens * 4
    assert kept == text or size > tokens * 4 - 4
