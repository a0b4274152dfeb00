"""Buffered answers, from either API to the other."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import JSON_VALUES
from vsr.codec.anthropic.json_value import UntranslatableResponse
from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.response_to_chat import anthropic_response_to_chat

TEXT = '{"type":"text","text":"x"}'
USE = '{"type":"tool_use","id":"t","name":"f","input":{"a" : 1.10}}'


def message_of(*blocks: str, more: str = '"stop_reason":"end_turn"') -> bytes:
    """Return an Anthropic answer."""
    return (
        f'{{"id":"i","type":"message","model":"m","content":[{",".join(blocks)}],{more}}}'.encode()
    )


def chat_of(*blocks: str, more: str = '"stop_reason":"end_turn"') -> dict[str, Any]:
    """Return the completion made of such an answer."""
    chat: dict[str, Any] = json.loads(
        anthropic_response_to_chat(message_of(*blocks, more=more), created=7)
    )
    return chat


def completion_of(message: str, finish_reason: str = '"stop"', more: str = "") -> bytes:
    """Return a completion."""
    choice = f'{{"index":0,"message":{message},"finish_reason":{finish_reason}}}'
    return f'{{"id":"i","model":"m","choices":[{choice}]{more}}}'.encode()


def anthropic_of(message: str, finish_reason: str = '"stop"', more: str = "") -> dict[str, Any]:
    """Return the Anthropic answer made of such a completion."""
    translated = chat_response_to_anthropic(completion_of(message, finish_reason, more))
    answer: dict[str, Any] = json.loads(translated.body)
    return answer


def test_blocks_become_one_message() -> None:
    """Texts are joined without a separator; thinking is shown as reasoning."""
    message = chat_of(
        '{"type":"thinking","thinking":"h","signature":"s"}',
        '{"type":"text","text":"a\\u0062"}',
        '{"type":"redacted_thinking","data":"d"}',
        '{"type":"text","text":"c"}',
        USE,
    )["choices"][0]["message"]

    assert message == {
        "role": "assistant",
        "content": "abc",
        "reasoning_content": "h",
        "tool_calls": [
            {
                "id": "t",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a" : 1.10}'},
            }
        ],
    }


def test_answer_without_text_has_null_content() -> None:
    """As a chat backend would say it."""
    assert chat_of(USE)["choices"][0]["message"]["content"] is None


@pytest.mark.parametrize(
    ("stop_reason", "blocks", "finish_reason"),
    [
        ('"end_turn"', TEXT, "stop"),
        ('"stop_sequence"', TEXT, "stop"),
        ('"max_tokens"', TEXT, "length"),
        ('"max_tokens"', USE, "length"),
        ('"tool_use"', USE, "tool_calls"),
        ('"pause_turn"', TEXT, "stop"),
        ('"refusal"', TEXT, "stop"),
        ('"end_turn"', USE, "tool_calls"),
        ("null", TEXT, "stop"),
    ],
)
def test_finish_reason_follows_the_stop_reason(
    stop_reason: str, blocks: str, finish_reason: str
) -> None:
    """A call of a tool is never lost behind `stop`."""
    choice = chat_of(blocks, more=f'"stop_reason":{stop_reason}')["choices"][0]

    assert choice["finish_reason"] == finish_reason


def test_cached_tokens_are_part_of_the_prompt() -> None:
    """The Messages API counts them apart; without them the cost is wrong for any client."""
    usage = chat_of(
        more='"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":30,'
        '"cache_creation_input_tokens":400,"output_tokens_details":{"thinking_tokens":1}}'
    )["usage"]

    assert usage == {
        "prompt_tokens": 431,
        "completion_tokens": 2,
        "total_tokens": 433,
        "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }


@pytest.mark.parametrize("usage", ["null", "{}", '{"input_tokens":1}', '{"output_tokens":1}', "[]"])
def test_unknown_usage_stays_unknown(usage: str) -> None:
    """Not 0: nobody must be billed for a guess."""
    assert "usage" not in chat_of(more=f'"usage":{usage}')


def test_names_and_created_are_told() -> None:
    """The model is the backend's unless another is to be shown."""
    shown = json.loads(anthropic_response_to_chat(message_of(TEXT), created=7, model="alias"))

    assert (chat_of(TEXT)["model"], chat_of(TEXT)["created"]) == ("m", 7)
    assert shown["model"] == "alias"


def test_completion_becomes_blocks() -> None:
    """Reasoning first, then text, then calls, each with its literals."""
    call = '{"id":"t","type":"function","function":{"name":"f","arguments":"{\\"a\\" : 1.10}"}}'
    body = completion_of(
        f'{{"content":"h\\u0069","reasoning_content":"r","tool_calls":[{call}]}}', '"tool_calls"'
    )

    answer = chat_response_to_anthropic(body).body.decode()

    assert (
        '"content":[{"signature":"","thinking":"r","type":"thinking"},'
        '{"text":"h\\u0069","type":"text"},'
        '{"id":"t","input":{"a" : 1.10},"name":"f","type":"tool_use"}]'
    ) in answer


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ('{"content":null}', []),
        ('{"content":""}', []),
        ('{"content":"a","refusal":null}', ["a"]),
        ('{"content":"a","refusal":"no"}', ["no"]),
        ('{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}', ["ab"]),
    ],
)
def test_text_is_the_refusal_or_the_content(message: str, texts: list[str]) -> None:
    """An empty text is no block."""
    assert [block["text"] for block in anthropic_of(message)["content"]] == texts


CALL = '{"id":"t","function":{"name":"f","arguments":""}}'


@pytest.mark.parametrize(
    ("finish_reason", "calls", "stop_reason", "is_coerced"),
    [
        ('"stop"', "", "end_turn", False),
        ('"length"', "", "max_tokens", False),
        ('"tool_calls"', CALL, "tool_use", False),
        ('"content_filter"', "", "refusal", False),
        ('"odd"', "", "end_turn", True),
        ("null", "", "end_turn", True),
        ('"stop"', CALL, "tool_use", False),
        ('"length"', CALL, "max_tokens", False),
    ],
)
def test_stop_reason_follows_the_finish_reason(
    finish_reason: str, calls: str, stop_reason: str, *, is_coerced: bool
) -> None:
    """A client must see that it has to run a tool, also where the backend only says `stop`."""
    body = completion_of(f'{{"content":"x","tool_calls":[{calls}]}}', finish_reason)

    translated = chat_response_to_anthropic(body)

    assert json.loads(translated.body)["stop_reason"] == stop_reason
    coerced = "info;anthropic_stop_reason_coerced;finish_reason"
    assert (coerced in map(str, translated.warnings)) == is_coerced


def test_usage_counts_cached_tokens_apart() -> None:
    """Input is what is neither read from the cache nor written to it."""
    more = (
        ',"usage":{"prompt_tokens":431,"completion_tokens":2,"prompt_tokens_details":'
        '{"cached_tokens":30,"cache_write_tokens":400},'
        '"completion_tokens_details":{"reasoning_tokens":1}}'
    )

    translated = chat_response_to_anthropic(completion_of('{"content":"x"}', more=more))

    usage = json.loads(translated.body)["usage"]
    assert translated.warnings == ()
    assert usage["input_tokens"] == 1
    assert usage["output_tokens"] == 2
    assert usage["cache_read_input_tokens"] == 30
    assert usage["cache_creation_input_tokens"] == 400
    assert usage["output_tokens_details"] == {"thinking_tokens": 1}


def test_absent_cache_counters_are_warned_about() -> None:
    """And usage has its members even if the backend said nothing: SDKs read them."""
    translated = chat_response_to_anthropic(completion_of('{"content":"x"}'))

    assert [str(it) for it in translated.warnings] == ["info;cache_fields_absent;usage.cache"]
    assert json.loads(translated.body)["usage"]["input_tokens"] == 0


def test_call_cut_off_by_the_limit_is_left_out() -> None:
    """A client must not run a tool with half its arguments."""
    half = '{"id":"t","function":{"name":"f","arguments":"{\\"a\\": "}}'

    translated = chat_response_to_anthropic(
        completion_of(f'{{"content":"x","tool_calls":[{half}]}}', '"length"')
    )

    answer = json.loads(translated.body)
    assert answer["content"] == [{"text": "x", "type": "text"}]
    assert answer["stop_reason"] == "max_tokens"
    assert "lossy;incomplete_tool_use;choices[0].message.tool_calls[0]" in [
        str(it) for it in translated.warnings
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":7}]}',
        b'{"choices":[{"message":{},"finish_reason":"\xff"}]}',
        completion_of('{"tool_calls":[{"id":"t","function":{"name":"f","arguments":"{"}}]}'),
        completion_of('{"tool_calls":[{"function":{"name":"f"}}]}', '"tool_calls"'),
        completion_of('{"tool_calls":[{"id":"t"}]}', '"tool_calls"'),
    ],
)
def test_answer_that_is_no_completion_is_told(body: bytes) -> None:
    """Rather than turned into an empty message."""
    with pytest.raises(UntranslatableResponse):
        chat_response_to_anthropic(body)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"content":"x"}', b'{"error":{}}', b'{"content":[1}']
)
def test_answer_that_is_no_message_is_told(body: bytes) -> None:
    """Rather than turned into an empty completion."""
    with pytest.raises(UntranslatableResponse):
        anthropic_response_to_chat(body, created=7)


def test_untouched_answer_comes_back_byte_for_byte() -> None:
    """Signatures, citations and stop sequences reach an Anthropic client of such a backend."""
    original = message_of(
        '{"type":"thinking","thinking":"h","signature":"s"}',
        '{"type":"text", "text":"x","citations":[]}',
        more='"stop_reason":"stop_sequence","stop_sequence":"END"',
    )
    chat = anthropic_response_to_chat(original, created=7)

    same = chat_response_to_anthropic(chat, original=original)
    renamed = chat_response_to_anthropic(chat, original=original, model="alias")

    assert same.body == original
    assert renamed.body == original.replace(b'"m"', b'"alias"')


def test_changed_answer_is_translated() -> None:
    """What a plugin wrote is what the client reads."""
    original = message_of(TEXT)
    chat = anthropic_response_to_chat(original, created=7).replace(b'"x"', b'"changed"')

    answer = json.loads(chat_response_to_anthropic(chat, original=original).body)

    assert answer["content"] == [{"text": "changed", "type": "text"}]


@given(value=JSON_VALUES, more=JSON_VALUES)
def test_any_values_are_translated_or_told(value: object, more: object) -> None:
    """Nothing else is raised."""
    block = {"type": "tool_use", "id": value, "name": more, "input": value}
    answer = {"content": [value, block, {"type": "text", "text": more}], "usage": more, "id": value}
    call = {"id": "t", "function": {"name": "f", "arguments": value}}
    message = {"content": value, "refusal": more, "tool_calls": [call]}
    choice = {"message": message, "finish_reason": more}
    completion = {"choices": [choice], "usage": value}

    chat = json.loads(anthropic_response_to_chat(json.dumps(answer).encode(), created=7))

    assert chat["object"] == "chat.completion"
    try:
        chat_response_to_anthropic(json.dumps(completion).encode())
    except UntranslatableResponse:
        return
