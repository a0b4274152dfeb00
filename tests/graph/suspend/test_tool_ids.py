"""Tool call ids that lead back to a suspended run."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.suspend.tool_ids import (
    PendingToolCalls,
    ToolCallId,
    new_state_id,
    parse_tool_call_id,
    suspend_reply,
)

STATE = "0123456789abcdef01234567"
OTHER = "f" * 24


def _draw(count: int) -> bytes:
    return b"\xab" * count


def _body(message: object, **choice: object) -> bytes:
    choices = [{"index": 0, "message": message, "logprobs": None, **choice}, {"index": 1}]
    return json.dumps({"id": "upstream", "choices": choices, "system": 1.0}).encode()


def _suspend(message: object, seq: int = 0) -> PendingToolCalls:
    asking = Reply("x", has_tool_calls=True, body=_body(message, finish_reason="stop"))
    return suspend_reply(asking, STATE, seq, _draw)


def _call(call_id: str | None, **function: object) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": "f", **function}, "extra": 1}


def test_new_state_id_is_24_hex_digits() -> None:
    """Twelve bytes that nobody guesses."""
    assert new_state_id(_draw) == "ab" * 12


def test_suspend_reply_names_every_call_and_keeps_the_rest() -> None:
    """Only ids and the finish reason change; numbering goes on over later turns of the state."""
    message = {"content": None, "tool_calls": [_call("c1", arguments='{"q": 1}'), _call("c2")]}

    pending = _suspend(message, seq=3)

    ids = (f"flowtool_{STATE}__3__c1", f"flowtool_{STATE}__4__c2")
    assert pending.tool_call_ids == ids
    assert pending.next_seq == 5
    body = json.loads(pending.reply.body)
    expected = json.loads(_body(message, finish_reason="tool_calls"))
    for call, call_id in zip(expected["choices"][0]["message"]["tool_calls"], ids, strict=True):
        call["id"] = call_id
    assert body == expected
    assert json.loads(bytes(pending.assistant)) == body["choices"][0]["message"]
    assert [(call.id, call.name, call.arguments) for call in pending.reply.tool_calls] == [
        (ids[0], "f", '{"q": 1}'),
        (ids[1], "f", ""),
    ]
    assert pending.reply.finish_reason == "tool_calls"


@pytest.mark.parametrize("call", [_call(None), _call(""), {"function": {"name": "f"}}])
def test_suspend_reply_makes_up_a_missing_id(call: dict[str, object]) -> None:
    """Two calls without an id must stay apart."""
    pending = _suspend({"tool_calls": [call]})

    assert pending.tool_call_ids == (f"flowtool_{STATE}__0__{'ab' * 12}",)


def test_suspend_reply_keeps_an_id_of_its_own_state_only() -> None:
    """A model may repeat an id from its history; one of another run must not lead there."""
    own, foreign = f"flowtool_{STATE}__0__c", f"flowtool_{OTHER}__0__c"

    pending = _suspend({"tool_calls": [_call(own), _call(foreign)]}, seq=1)

    assert pending.tool_call_ids == (own, f"flowtool_{STATE}__1__{foreign}")
    assert pending.next_seq == 2


def test_suspend_reply_turns_a_function_call_into_a_tool_call() -> None:
    """The older form has no id to answer to, so it gets one."""
    function = {"name": "get weather!", "arguments": "{}"}

    pending = _suspend({"content": "", "function_call": function})

    message = json.loads(bytes(pending.assistant))
    call_id = f"flowtool_{STATE}__0__call_get_weather__{'ab' * 12}"
    assert message == {
        "content": "",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    assert pending.reply.tool_calls[0].name == "get weather!"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"choices": []}',
        _body({}),
        _body({"tool_calls": [], "function_call": None}),
        _body({"tool_calls": [1]}),
        _body({"tool_calls": [_call("c", arguments={})]}),
    ],
)
def test_suspend_reply_refuses_a_body_it_cannot_name(body: bytes) -> None:
    """A client that cannot answer would wait for ever; the error shows nothing of the body."""
    with pytest.raises(GraphFailed, match="workflow tool state"):
        suspend_reply(Reply("x", has_tool_calls=True, body=body), STATE, 0, _draw)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 999_999_999), st.text(min_size=1, max_size=20))
def test_tool_call_id_is_read_back(seq: int, original: str) -> None:
    """Whatever a backend calls its tool call, the id says it again."""
    made = ToolCallId(STATE, seq, original)

    assert parse_tool_call_id(str(made)) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "call_1",
        f"flowtool_{STATE}__0__",
        f"flowtool_{STATE[:-1]}__0__c",
        f"flowtool_{STATE.upper()}__0__c",
        f"flowtool_{STATE}__x__c",
        f" flowtool_{STATE}__0__c",
        "flowtool_../../../../etc/passwd__0__c",
    ],
)
def test_tool_call_id_of_another_form_is_none(text: str) -> None:
    """Ids of ordinary tool calls, and forged ones, lead nowhere."""
    assert parse_tool_call_id(text) is None


def test_pending_tool_calls_survive_json() -> None:
    """They are part of what is kept."""
    pending = _suspend({"tool_calls": [_call("c")]})

    assert msgspec.json.decode(msgspec.json.encode(pending), type=PendingToolCalls) == pending
