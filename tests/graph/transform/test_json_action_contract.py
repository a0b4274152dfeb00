"""Transformer `json_action_contract`."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.transform.workflow_values import INPUTS, reply
from vsr.codec.chat_reply import Reply, ToolCall
from vsr.graph.transform.choice_contract import Source
from vsr.graph.transform.json_action_contract import (
    JsonActionContract,
    JsonActionSpec,
    completed_action,
)

EXACT = JsonActionSpec()
INSIDE = JsonActionSpec("json_object")
ACTION = '{"task_complete": true, "n": 1}'


def _act(said: Reply, action: JsonActionSpec | None, *candidates: Reply) -> str:
    return JsonActionContract(said, candidates, action)(INPUTS).content


def test_json_action_is_completed_and_ordered() -> None:
    """A terminal reads the members in one order, and every command lasts at least a second."""
    written = {
        "zeta": {"b": 1, "a": [{"d": 1, "c": 2}]},
        "beta": None,
        "commands": [
            {"keystrokes": "ls", "duration": 0.2},
            {"keystrokes": "pwd", "duration": 5},
            {"keystrokes": "", "duration": "long"},
            {"keystrokes": "x", "duration": True, "also": 1},
        ],
        "analysis": 7,
    }

    content = _act(reply("x", json.dumps(written)), EXACT)

    members = json.loads(content)
    assert list(members) == ["analysis", "plan", "commands", "task_complete", "beta", "zeta"]
    assert isinstance(members["analysis"], str)
    assert members["plan"]
    assert members["task_complete"] is False
    assert '"commands":[{"duration":1,"keystrokes":"ls"},{"duration":5,"keystrokes":"pwd"},' in (
        content
    )
    assert [command["duration"] for command in members["commands"]] == [1, 5, 1, 1]
    assert content.endswith('"zeta":{"a":[{"c":2,"d":1}],"b":1}}')


def test_json_action_keeps_what_is_said() -> None:
    """Only what is missing is made up."""
    members = json.loads(
        _act(reply("x", '{"task_complete": 1, "analysis": "", "plan": "p"}'), EXACT)
    )

    assert members == {"analysis": "", "plan": "p", "commands": [], "task_complete": 1}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no",
        "[]",
        "{}",
        '{"analysis": "a", "plan": "p"}',
        '{"commands": null}',
        '{"commands": {}}',
        '{"commands": ["ls"]}',
        '{"commands": [{"keystrokes": 1}]}',
        '{"commands": [{"keystrokes": "a"}, {}], "task_complete": true}',
        "[" * 100_000,
    ],
)
def test_json_action_leaves_what_is_none(content: str) -> None:
    """A terminal must not run half of something."""
    assert _act(reply("x", content), INSIDE) == content


def test_json_action_in_a_text_needs_the_mode_that_looks_for_it() -> None:
    """`exact` takes the whole text or nothing."""
    said = reply("x", f"Do this: {ACTION} please")

    assert _act(said, EXACT) == said.content
    assert json.loads(_act(said, INSIDE))["n"] == 1


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        (("content",), None),
        (("reasoning_content",), 2),
        (("candidate_responses",), 3),
        (("content", "candidate_responses", "reasoning_content"), 3),
    ],
)
def test_json_action_is_looked_for_in_order(sources: tuple[Source, ...], found: int | None) -> None:
    """Of a candidate the content counts before its reasoning, and the first candidate first."""
    said = reply("x", "none here", reasoning='{"task_complete": true, "n": 2}')
    candidates = (
        reply("y", "nor here", reasoning='{"task_complete": true, "n": 3}'),
        reply("z", '{"task_complete": true, "n": 4}'),
    )

    content = _act(said, JsonActionSpec("exact", sources), *candidates)

    assert content == "none here" if found is None else json.loads(content)["n"] == found


def test_json_action_drops_tool_calls() -> None:
    """The action is the answer; a tool call beside it would be a second one."""
    calls = (ToolCall("1", "f", "{}"),)
    said = msgspec.structs.replace(reply("x", ACTION), tool_calls=calls, has_tool_calls=True)

    acting = JsonActionContract(said, action=EXACT)(INPUTS)
    without_contract = JsonActionContract(said)(INPUTS)

    assert (acting.tool_calls, acting.has_tool_calls) == ((), False)
    assert without_contract == said


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["keystrokes", "duration", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(["commands", "task_complete", "analysis", "plan", "x"]), _values, max_size=5
    )
)
def test_completed_action_is_an_action_and_stays_one(written: dict[str, object]) -> None:
    """What is accepted has all members, and completing it again changes nothing."""
    completed = completed_action(written)

    if completed is None:
        return
    assert {"analysis", "plan", "commands", "task_complete"} <= completed.keys()
    assert completed_action(completed) == completed
