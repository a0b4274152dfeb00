"""The client's answers to a suspended run's tool calls."""

import json

import msgspec
import pytest

from vsr.errors import GraphFailed
from vsr.graph.suspend.answers import check_answers, continued_messages, find_state_id

STATE, OTHER = "0" * 24, "f" * 24
FIRST, SECOND = f"flowtool_{STATE}__0__a", f"flowtool_{STATE}__1__b"


def _tool(call_id: object, content: str = "7") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_find_state_id_takes_the_first_that_leads_to_a_state() -> None:
    """Results of the client's own calls may stand among them."""
    assert find_state_id([_tool("call_1"), _tool(FIRST), _tool(f"flowtool_{OTHER}__0__a")]) == STATE


@pytest.mark.parametrize("trailing", [[], [_tool("call_1")], [_tool(None)], [{"role": "tool"}]])
def test_find_state_id_is_none_for_an_ordinary_conversation(
    trailing: list[dict[str, object]],
) -> None:
    """A request with tool results of its own starts a run."""
    assert find_state_id(trailing) is None


def test_check_answers_keeps_the_order_sent_and_the_first_of_two() -> None:
    """A client that repeats an answer has answered once."""
    sent = [_tool(SECOND, "8"), _tool(FIRST), _tool(SECOND, "9")]

    answers = check_answers(sent, STATE, (FIRST, SECOND))

    assert answers == (_tool(SECOND, "8"), _tool(FIRST))


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([_tool(FIRST)], f'missing tool result for workflow tool_call_id "{SECOND}"'),
        ([_tool(FIRST), _tool("call_1")], 'tool result "call_1" does not belong to a workflow'),
        ([_tool(FIRST), _tool(None)], 'tool result "" does not belong to a workflow'),
        (
            [_tool(f"flowtool_{OTHER}__0__a")],
            f'tool result "flowtool_{OTHER}__0__a" belongs to another workflow tool state',
        ),
        (
            [_tool(f"flowtool_{STATE}__5__a")],
            f'tool result "flowtool_{STATE}__5__a" is not pending in its workflow tool state',
        ),
    ],
)
def test_check_answers_refuses(sent: list[dict[str, object]], message: str) -> None:
    """The suspended model gets exactly the answers to what it asked."""
    with pytest.raises(GraphFailed) as raised:
        check_answers(sent, STATE, (FIRST, SECOND))

    assert str(raised.value) == message


def test_continued_messages_add_the_exchange() -> None:
    """The model sees its own conversation as before, then its question and the answers."""
    messages = b'[{"role":"user","content":"q","n":1.0}]'
    calls = [{"id": FIRST, "n": 1}, {"id": SECOND}]
    assistant = msgspec.Raw(json.dumps({"role": "assistant", "tool_calls": calls}).encode())

    continued = continued_messages(messages, assistant, (_tool(SECOND), _tool(FIRST)))

    assert bytes(continued).startswith(messages[:-1])
    assert json.loads(bytes(continued)) == [
        *json.loads(messages),
        {"role": "assistant", "tool_calls": [{"id": "a", "n": 1}, {"id": "b"}]},
        {**_tool(SECOND), "tool_call_id": "b"},
        {**_tool(FIRST), "tool_call_id": "a"},
    ]


def test_continued_messages_keep_ids_apart_that_the_backend_did_not() -> None:
    """Else nobody could tell which answer is whose."""
    ids = [f"flowtool_{STATE}__{seq}__same" for seq in range(2)]
    calls = [{"id": each} for each in ids]
    assistant = msgspec.Raw(json.dumps({"role": "assistant", "tool_calls": calls}).encode())

    continued = continued_messages(b"[]", assistant, tuple(map(_tool, ids)))

    message, *answers = json.loads(bytes(continued))
    assert [call["id"] for call in message["tool_calls"]] == ids
    assert [answer["tool_call_id"] for answer in answers] == ids
