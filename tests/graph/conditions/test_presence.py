"""Conditions `succeeded`, `usable` and `empty`."""

import msgspec
import pytest

from tests.graph.branch_ends import INPUTS, ends, failure, reply
from vsr.codec.chat_reply import Reply
from vsr.graph.conditions.presence import Empty, Succeeded, Usable
from vsr.graph.value import ModelRef, Prompt

CALLING = msgspec.structs.replace(reply(), has_tool_calls=True)
WON, LOST, FAILED, SILENT = ends("a", None, failure(), reply())


def test_value_that_is_there_succeeded() -> None:
    """Also an empty one; the list of a `parallel` step is there whatever became of its branches."""
    for there in (reply(), "", 0, False, (), WON, SILENT, [FAILED]):
        assert Succeeded(there)(INPUTS)
    for missing in (None, failure(), LOST, FAILED):
        assert not Succeeded(missing)(INPUTS)


@pytest.mark.parametrize("there", [reply("a"), reply(" ", reasoning="b"), WON])
def test_reply_that_says_something_is_usable(there: Reply) -> None:
    """Reasoning stands in for content."""
    assert Usable(there)(INPUTS)
    assert Usable(there, allow_tool_calls=True)(INPUTS)


@pytest.mark.parametrize("nothing", [None, failure(), LOST, FAILED, SILENT, reply(" \n")])
def test_reply_that_says_nothing_is_not_usable(nothing: Reply | None) -> None:
    """Nor is one that is not there."""
    assert not Usable(nothing)(INPUTS)
    assert not Usable(nothing, allow_tool_calls=True)(INPUTS)


def test_tool_calls_are_usable_where_they_are_allowed() -> None:
    """Nobody answers the calls of a panel."""
    assert not Usable(CALLING)(INPUTS)
    assert Usable(CALLING, allow_tool_calls=True)(INPUTS)


def test_empty_is_what_has_nothing_in_it() -> None:
    """Of a reply only its content counts."""
    silent = (reply(" "), reply(reasoning="b"), CALLING, SILENT)
    bare: tuple[object, ...] = (None, failure(), LOST, FAILED, "", " \n", Prompt(" "), (), [], {})
    for nothing in (*bare, *silent):
        assert Empty(nothing)(INPUTS)
    model = ModelRef("a", "a")
    for something in (reply("a"), WON, "a", Prompt("a"), (None,), {"a": None}, 0, False, model):
        assert not Empty(something)(INPUTS)
