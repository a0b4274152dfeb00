"""Transformer `require_usable`."""

import pytest

from tests.graph.remom_replies import INPUTS, reply
from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.transform.require_usable import RequireUsable


@pytest.mark.parametrize("usable", [reply("x"), reply(" ", reasoning="x")])
def test_usable_reply_passes(usable: Reply) -> None:
    """Content or reasoning is enough."""
    assert RequireUsable(usable)(INPUTS) is usable


def test_unusable_reply_fails() -> None:
    """White space says nothing."""
    with pytest.raises(GraphFailed, match=r"^returned no usable content or reasoning$"):
        RequireUsable(reply(" ", reasoning="\n"))(INPUTS)


def test_unusable_reply_passes_where_failures_are_skipped() -> None:
    """It was paid for, and the round counts it."""
    blank = reply("")

    assert RequireUsable(blank, failures="skip")(INPUTS) is blank


@pytest.mark.parametrize("blank", [reply(" \n", reasoning="x"), reply("")])
def test_reasoning_is_not_enough_where_content_is_needed(blank: Reply) -> None:
    """An answer is what the client will see."""
    with pytest.raises(GraphFailed, match=r"^returned no content$"):
        RequireUsable(blank, needs_content=True)(INPUTS)

    assert RequireUsable(blank, failures="skip", needs_content=True)(INPUTS) is blank


def test_content_passes_where_it_is_needed() -> None:
    """With or without reasoning."""
    usable = reply("x", reasoning="y")

    assert RequireUsable(usable, needs_content=True)(INPUTS) is usable
