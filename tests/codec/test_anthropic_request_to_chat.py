"""Anthropic requests as chat requests."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import JSON_VALUES
from vsr.codec.anthropic.request_to_chat import anthropic_to_chat
from vsr.errors import InvalidRequest

USER = '{"role":"user","content":"hi"}'


def body_of(*members: str, messages: str = USER) -> bytes:
    """Return a request with these members besides model and messages."""
    return "".join(
        ("{", ",".join(('"model":"m"', f'"messages":[{messages}]', *members)), "}")
    ).encode()


def chat_of(*members: str, messages: str = USER) -> dict[str, Any]:
    """Return the chat request made of such a request."""
    chat: dict[str, Any] = json.loads(anthropic_to_chat(body_of(*members, messages=messages)).body)
    return chat


def warnings_of(*members: str, messages: str = USER) -> tuple[list[str], list[str]]:
    """Return what is lost to all backends, and to chat backends."""
    chat = anthropic_to_chat(body_of(*members, messages=messages))
    return [str(it) for it in chat.warnings], [str(it) for it in chat.openai_warnings]


def test_literals_survive() -> None:
    """Numbers, escapes and schemas are the client's bytes, in the client's order."""
    body = body_of(
        '"top_p":1.10',
        '"max_tokens":6.4e1',
        '"temperature":0.70',
        '"tools":[{"name":"f\\u00e9","input_schema":{"type":"object", "minimum":1.10}}]',
        '"unknown":{"a" : 1E2}',
        messages='{"role":"user","content":"h\\u0069"}',
    )

    chat = anthropic_to_chat(body)

    assert chat.body.decode() == (
        '{"model":"m","messages":[{"role":"user","content":"h\\u0069"}],'
        '"top_p":1.10,"max_completion_tokens":6.4e1,"temperature":0.70,'
        '"tools":[{"type":"function","function":{"name":"f\\u00e9",'
        '"parameters":{"type":"object", "minimum":1.10}}}],"unknown":{"a" : 1E2}}'
    )


def test_tool_input_keeps_its_literals() -> None:
    """The arguments are the text of the input: 1.10 stays 1.10."""
    use = '{"type":"tool_use","id":"t","name":"f","input":{"a": 1.10}}'
    turn = f'{{"role":"assistant","content":[{use}]}}'

    [message] = chat_of(messages=turn)["messages"]

    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1.10}'}
    assert "content" not in message


def test_stream_asks_for_usage() -> None:
    """An Anthropic stream ends with its usage, so the chat backend must report it."""
    chat = chat_of('"stream":true')

    assert chat["stream"] is True
    assert chat["stream_options"] == {"include_usage": True}
    assert "stream" not in chat_of('"stream":false')


def test_limit_has_the_default() -> None:
    """A chat request without a limit would have another one."""
    assert chat_of()["max_completion_tokens"] == 4096
    assert chat_of('"max_tokens":null')["max_completion_tokens"] == 4096


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ('{"type":"auto"}', {"tool_choice": "auto"}),
        ('{"type":"none"}', {"tool_choice": "none"}),
        ('{"type":"any"}', {"tool_choice": "required"}),
        (
            '{"type":"tool","name":"f"}',
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        ),
        (
            '{"type":"auto","disable_parallel_tool_use":true}',
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
        ('{"type":"other"}', {}),
        ("null", {}),
    ],
)
def test_tool_choice_is_translated(member: str, expected: dict[str, Any]) -> None:
    """Each of the four, and the wish for one call at a time; without tools there is none."""
    tools = '"tools":[{"name":"f","input_schema":{"type":"object"}}]'
    names = ("tool_choice", "parallel_tool_calls")

    with_tools = chat_of(tools, f'"tool_choice":{member}')
    without = chat_of(f'"tool_choice":{member}')

    assert {name: with_tools[name] for name in names if name in with_tools} == expected
    assert not without.keys() & set(names)


def test_tool_result_without_text_has_empty_content() -> None:
    """A tool message without content breaks the chat API's schema."""
    turn = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}'

    assert chat_of(messages=turn)["messages"] == [
        {"role": "tool", "tool_call_id": "t", "content": ""}
    ]


@pytest.mark.parametrize(
    ("block", "warnings"),
    [
        ('{"type":"image"}', ["error;missing_source;{}.source"]),
        (
            '{"type":"image","source":{"type":"base64","data":"A"}}',
            ["error;incomplete_base64;{}.source"],
        ),
        ('{"type":"image","source":{"type":"url"}}', ["error;missing_url;{}.source"]),
        ('{"type":"image","source":{"type":"file"}}', ["error;missing_file_id;{}.source"]),
        ('{"type":"image","source":{"type":"x"}}', ["lossy;unsupported_image_source;{}.source"]),
        ('{"type":"tool_result"}', ["error;missing_tool_use_id;{}.tool_use_id"]),
        (
            '{"type":"tool_result","tool_use_id":"t","content":[{"type":"document"},{"type":"x"}]}',
            [
                "lossy;tool_result_document_dropped;{}.content",
                "lossy;unsupported_tool_result_part;{}.content",
            ],
        ),
        ('{"type":"text"}', []),
        ("7", ["lossy;unsupported_block_type;{}.type"]),
    ],
)
def test_odd_user_block_is_warned_about(block: str, warnings: list[str]) -> None:
    """It is left out, and the warning says where it stood."""
    turn = f'{{"role":"user","content":[{{"type":"text","text":"x"}},{block}]}}'

    found, _ = warnings_of(messages=turn)

    assert found == [warning.format("messages[0].content[1]") for warning in warnings]
    assert chat_of(messages=turn)["messages"][0]["content"] == [{"type": "text", "text": "x"}]


def test_remote_image_keeps_its_address() -> None:
    """Nobody fetches it."""
    source = '{"type":"url","url":"https:\\/\\/e\\/i.png"}'
    turn = f'{{"role":"user","content":[{{"type":"image","source":{source}}}]}}'

    assert chat_of(messages=turn)["messages"][0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://e/i.png"}}
    ]


def test_empty_turns_and_prompts_are_left_out() -> None:
    """Chat backends would see a message that nobody wrote."""
    turns = ",".join(
        f'{{"role":"{role}","content":{content}}}'
        for role in ("user", "assistant")
        for content in ('""', "[]", "null", '[{"type":"text","text":""}]')
    )

    for system in ('""', "[]", "null", '[{"type":"text","text":""}]'):
        assert chat_of(f'"system":{system}', messages=turns)["messages"] == []


def test_system_block_of_another_type_is_warned_about() -> None:
    """Only text can be a prompt."""
    found, _ = warnings_of('"system":[{"type":"image"},{"type":"text","text":"x"}]')

    assert found == ["lossy;unsupported_type;system"]


def test_odd_assistant_blocks_are_warned_about() -> None:
    """Calls without name or id cannot be carried; a provider's own calls are not the client's."""
    turn = (
        '{"role":"assistant","content":[{"type":"tool_use","id":"t"},{"type":"server_tool_use"},'
        '{"type":"web_search_tool_result"}]}'
    )

    found, _ = warnings_of(messages=f"{USER},{turn}")

    assert found == [
        "error;incomplete_tool_use;messages[1].content[0]",
        "info;server_tool_use_captured;messages[1].content[1].type",
        "lossy;unsupported_block_type;messages[1].content[2].type",
    ]
    assert len(chat_of(messages=f"{USER},{turn}")["messages"]) == 1


def test_odd_tools_are_warned_about() -> None:
    """A tool without a name cannot be called; one without a schema can."""
    tools = (
        '"tools":[{"input_schema":{}},{"name":"f","input_schema":[]},{"name":"g","type":"custom"}]'
    )

    found, _ = warnings_of(tools)

    assert found == [
        "error;missing_name;tools[0].name",
        "error;invalid_schema;tools[1].input_schema",
        "error;invalid_schema;tools[2].input_schema",
    ]
    assert [tool["function"]["name"] for tool in chat_of(tools)["tools"]] == ["f", "g"]


def test_loss_to_chat_backends_is_told_apart() -> None:
    """An Anthropic backend would get all of these back from the record."""
    thinking = '{"type":"thinking","thinking":"t","signature":"s"}'
    text = '{"type":"text","text":"x"}'
    body = body_of(
        '"top_k":1',
        '"thinking":{"type":"enabled"}',
        '"service_tier":null',
        '"metadata":{"user_id":"u"}',
        '"cache_control":{"type":"ephemeral"}',
        '"n":2',
        '"tools":[{"type":"web_search_20250305","name":"w"}]',
        messages=f'{{"role":"assistant","content":[{thinking},{text}]}}'
        ',{"role":"user","content":[{"type":"document"}]}',
    )

    chat = anthropic_to_chat(body, has_beta=True)

    assert [str(it) for it in chat.warnings] == ["info;server_tool_captured;tools[0].type"]
    assert [str(it) for it in chat.openai_warnings] == [
        "lossy;signature_drop_on_openai_backend;messages[0].content[0].signature",
        "lossy;unsupported_block_type;messages[1].content[0].type",
        "lossy;server_tool_drop_on_openai_backend;tools[0].type",
        "lossy;top_k_drop_on_openai_backend;top_k",
        "lossy;dropped;thinking",
        "lossy;dropped;n",
        "lossy;beta_drop_on_openai_backend;anthropic-beta",
    ]
    assert json.loads(chat.body).keys() == {"model", "messages", "user", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b'{"messages":[]}', "model_required"),
        (b'{"model":"","messages":[]}', "model_required"),
        (b'{"model":7,"messages":[]}', "model_required"),
        (b'{"model":"m"}', "invalid_request"),
        (b'{"model":"m","messages":{}}', "invalid_request"),
        (b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}', "invalid_json"),
        (
            body_of(
                messages='{"role":"assistant","content":'
                '[{"type":"tool_use","id":"t","name":"n","input":"?"}]}'
            ).replace(b"?", b"\xff"),
            "invalid_json",
        ),
    ],
)
def test_malformed_request_is_a_typed_error(body: bytes, code: str) -> None:
    """Never another exception, a lone surrogate and bytes that are no UTF-8 included."""
    with pytest.raises(InvalidRequest) as caught:
        anthropic_to_chat(body)

    assert caught.value.code == code


@given(value=JSON_VALUES, more=JSON_VALUES)
def test_any_values_are_translated_or_refused(value: object, more: object) -> None:
    """Odd types in any place cost a warning at most."""
    block = {"type": "tool_result", "tool_use_id": value, "content": more}
    use = {"type": "tool_use", "id": value, "name": "n", "input": more}
    request = {
        "model": "m",
        "messages": [
            value,
            {"role": "user", "content": [block, more]},
            {"role": "assistant", "content": [use]},
        ],
        "system": value,
        "tools": [more, {"name": "n", "input_schema": value}],
        "tool_choice": value,
        "stop_sequences": more,
        "metadata": value,
    }

    chat = json.loads(anthropic_to_chat(json.dumps(request).encode()).body)

    assert all(
        message["role"] in {"system", "user", "assistant", "tool"} for message in chat["messages"]
    )
