"""What steps of a graph read in a conversation."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.chat_history import (
    read_any_question,
    read_context,
    read_contracts,
    read_question,
    read_trailing_tools,
)


def _raws(*messages: object) -> list[msgspec.Raw]:
    return [msgspec.Raw(json.dumps(message).encode()) for message in messages]


def _turn(role: str, content: object) -> dict[str, object]:
    return {"role": role, "content": content}


_LIST = [{"type": "image_url"}, {"type": "text", "text": 1}, {"type": "text", "text": "part"}]


@pytest.mark.parametrize(
    ("contents", "question", "any_question"),
    [
        ([], "", ""),
        (["first", "last"], "last", "last"),
        (["first", ""], "", ""),
        (["first", _LIST], "first", "part"),
        (["first", [{"type": "image_url"}]], "first", "first"),
        (["first", None], "first", "first"),
        (["first", 7], "first", "first"),
        ([[{"type": "text", "text": ""}]], "", ""),
        (["first", [{"text": "no type"}, 5]], "first", "first"),
    ],
)
def test_the_two_questions(contents: list[object], question: str, any_question: str) -> None:
    """One variant reads strings only, the other the first text part of a list as well."""
    raws = _raws(*(_turn("user", content) for content in contents), _turn("assistant", "no"))

    assert read_question(raws) == question
    assert read_any_question(raws) == any_question


def test_context_is_of_system_and_tool_strings() -> None:
    """Other roles, lists and blank texts give no context; texts are not trimmed."""
    raws = _raws(
        _turn("system", "s "),
        _turn("developer", "d"),
        _turn("user", "u"),
        _turn("tool", " \n"),
        _turn("tool", [{"type": "text", "text": "list"}]),
        _turn("tool", "t"),
    )

    assert read_context(raws) == "s \nt"


def test_contracts_come_from_whoever_gives_instructions() -> None:
    """The text behind the last marker counts; a model's or a tool's text is no instruction."""
    marker = "Required output contract:"
    raws = _raws(
        _turn("system", f"x {marker} old {marker}\n one \n"),
        _turn("assistant", f"{marker} no"),
        _turn("tool", f"{marker} no"),
        _turn("user", [{"type": "text", "text": f"y {marker}"}, {"type": "text", "text": "two"}]),
        _turn("user", "none"),
        _turn("user", f"{marker}  "),
    )

    assert read_contracts(raws) == ("one", "two")


@settings(max_examples=60)
@given(
    st.lists(
        st.none()
        | st.integers()
        | st.dictionaries(
            st.sampled_from(["role", "content"]),
            st.sampled_from(["user", "tool", "system", None, 1, [], [{}], [[]], {}]),
        ),
        max_size=5,
    )
)
def test_odd_messages_are_passed_over(messages: list[object]) -> None:
    """Whatever JSON stands among the messages, reading them gives a value."""
    raws = _raws(*messages)

    assert isinstance(read_question(raws), str)
    assert isinstance(read_any_question(raws), str)
    assert isinstance(read_context(raws), str)
    assert isinstance(read_contracts(raws), tuple)
    assert len(read_trailing_tools(raws)) <= len(messages)
