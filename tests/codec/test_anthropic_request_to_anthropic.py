"""Chat requests as Anthropic requests."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import CHAT_REQUESTS, JSON_VALUES, TEXT
from vsr.codec.anthropic.request_to_anthropic import chat_to_anthropic
from vsr.codec.anthropic.request_to_chat import anthropic_to_chat
from vsr.errors import InvalidRequest

USER = '{"role":"user","content":"hi"}'


def body_of(*members: str, messages: str = USER) -> bytes:
    """Return a request with these members besides model and messages."""
    return ("{" + ",".join(('"model":"m"', f'"messages":[{messages}]', *members)) + "}").encode()


def anthropic_of(*members: str, messages: str = USER) -> dict[str, Any]:
    """Return the Anthropic request made of such a request."""
    translated = chat_to_anthropic(body_of(*members, messages=messages))
    anthropic: dict[str, Any] = json.loads(translated.body)
    return anthropic


def user_blocks(content: str) -> list[dict[str, Any]]:
    """Return the blocks made of a user message's content."""
    messages = anthropic_of(messages=f'{{"role":"user","content":{content}}}')["messages"]
    blocks: list[dict[str, Any]] = messages[0]["content"] if messages else []
    return blocks


def test_literals_survive() -> None:
    """Numbers, escapes, schemas and arguments are the client's bytes, in the client's order."""
    call = '{"id":"c","type":"function","function":{"name":"f","arguments":" {\\"a\\" : 1.10} "}}'
    body = body_of(
        '"top_p":1.10',
        '"max_tokens":64',
        '"temperature":0.70',
        '"tools":[{"type":"function","function":{"name":"f","parameters":{"minimum": 1.10}}}]',
        messages=f'{{"role":"assistant","content":"h\\u0069","tool_calls":[{call}]}}',
    )

    anthropic = chat_to_anthropic(body)

    assert anthropic.body.decode() == (
        '{"model":"m","messages":[{"role":"assistant","content":['
        '{"text":"h\\u0069","type":"text"},'
        '{"type":"tool_use","id":"c","name":"f","input":{"a" : 1.10}}]}],'
        '"max_tokens":64,"top_p":1.10,"temperature":0.70,'
        '"tools":[{"type":"custom","name":"f","input_schema":{"minimum": 1.10,"type":"object"}}]}'
    )
    assert anthropic.warnings == ()


def test_all_system_and_developer_messages_are_joined() -> None:
    """In order, each a block; wherever they stand."""
    messages = ",".join(
        [
            '{"role":"system","content":"a"}',
            USER,
            '{"role":"developer","content":[{"type":"text","text":"b"},{"text":"c"}]}',
            '{"role":"system","content":""}',
        ]
    )

    anthropic = anthropic_of(messages=messages)

    assert [block["text"] for block in anthropic["system"]] == ["a", "b", "c"]
    assert len(anthropic["messages"]) == 1


def test_results_in_a_row_share_a_turn() -> None:
    """The Messages API wants all results of a turn's calls in the next turn."""
    messages = ",".join(
        [
            '{"role":"tool","tool_call_id":"1","content":"a"}',
            '{"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"b"}]}',
            USER,
            '{"role":"tool","tool_call_id":"3","content":""}',
        ]
    )

    first, _, last = anthropic_of(messages=messages)["messages"]

    assert [(it["tool_use_id"], it["content"][0]["text"]) for it in first["content"]] == [
        ("1", "a"),
        ("2", "b"),
    ]
    assert last == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "3"}]}


@pytest.mark.parametrize(
    ("url", "source"),
    [
        (
            "data:image/png;base64,QUJD",
            {"type": "base64", "media_type": "image/png", "data": "QUJD"},
        ),
        (
            "DATA:image\\/png;charset=x;base64,Q\\/",
            {"type": "base64", "media_type": "image/png", "data": "Q/"},
        ),
        ("https://e/i.png", {"type": "url", "url": "https://e/i.png"}),
        ("file_id:f-1", {"type": "file", "file_id": "f-1"}),
    ],
)
def test_image_becomes_a_source(url: str, source: dict[str, str]) -> None:
    """Inline, remote, or a file that the client named in the Messages API."""
    content = f'[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]'

    assert user_blocks(content) == [{"type": "image", "source": source}]


@pytest.mark.parametrize(
    "part",
    [
        '{"type":"image_url","image_url":{"url":"data:image/png,x"}}',
        '{"type":"image_url","image_url":{"url":"data:;base64,x"}}',
        '{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}',
        '{"type":"image_url","image_url":{"url":""}}',
        '{"type":"image_url"}',
        '{"type":"input_audio"}',
        '{"type":7}',
    ],
)
def test_part_without_a_counterpart_is_skipped_with_a_warning(part: str) -> None:
    """The texts around it become one, as if it had not been there."""
    texts = '{"type":"text","text":"a"}', '{"type":"text","text":"b"}'
    message = f'{{"role":"user","content":[{texts[0]},{part},{texts[1]}]}}'

    anthropic = chat_to_anthropic(body_of(messages=message))

    assert json.loads(anthropic.body)["messages"] == [
        {"role": "user", "content": [{"text": "a b", "type": "text"}]}
    ]
    assert [str(it) for it in anthropic.warnings] == [
        "lossy;unsupported_block_type;messages[0].content[1].type"
    ]


def test_empty_messages_are_left_out() -> None:
    """The Messages API refuses empty content."""
    empty = ['""', "[]", "null", '[{"type":"text","text":""}]']
    messages = ",".join(
        f'{{"role":"{role}","content":{content}}}'
        for content in empty
        for role in ("user", "assistant")
    )

    assert anthropic_of(messages=messages)["messages"] == []


def test_refusal_is_what_the_assistant_said() -> None:
    """Both forms of it."""
    messages = (
        '{"role":"assistant","content":null,"refusal":"no"},'
        '{"role":"assistant","content":[{"type":"refusal","refusal":"never"}]}'
    )

    turns = anthropic_of(messages=messages)["messages"]

    assert [turn["content"][0]["text"] for turn in turns] == ["no", "never"]


@pytest.mark.parametrize(
    ("members", "limit"),
    [
        ('"max_tokens":5,"max_completion_tokens":6', 6),
        ('"max_tokens":5,"max_completion_tokens":0', 5),
        ('"max_tokens":5,"max_completion_tokens":null', 5),
        ('"max_tokens":-5', 4096),
        ('"max_tokens":"5"', 4096),
        ('"max_tokens":0', 4096),
    ],
)
def test_limit_is_the_first_positive_one(members: str, limit: int) -> None:
    """The Messages API asks for one, so there is a default."""
    assert anthropic_of(members)["max_tokens"] == limit


@pytest.mark.parametrize(
    ("members", "choice"),
    [
        ('"tool_choice":"auto"', {"type": "auto"}),
        ('"tool_choice":"odd"', {"type": "auto"}),
        ('"tool_choice":"any"', {"type": "any"}),
        ('"tool_choice":"required","parallel_tool_calls":false', {"type": "any"}),
        ('"tool_choice":"none","parallel_tool_calls":false', {"type": "none"}),
        ('"tools":[],"parallel_tool_calls":false', {"type": "auto"}),
        ('"parallel_tool_calls":false', None),
        ('"parallel_tool_calls":true,"tools":[]', None),
    ],
)
def test_tool_choice_is_translated(members: str, choice: dict[str, Any] | None) -> None:
    """One call at a time is a property of the choice."""
    found = anthropic_of(members).get("tool_choice")

    if choice is not None and "false" in members and choice["type"] != "none":
        choice = choice | {"disable_parallel_tool_use": True}
    assert found == choice


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        ('{"type":"object","b":1}', {"type": "object", "b": 1}),
        ('{"type":"string"}', {"type": "object"}),
        ("{}", {"type": "object"}),
        ("null", {"type": "object", "properties": {}}),
        ("[]", {"type": "object", "properties": {}}),
    ],
)
def test_tool_schema_is_an_object(parameters: str, schema: dict[str, Any]) -> None:
    """The Messages API refuses any other."""
    function = f'{{"name":"f","parameters":{parameters}}}'

    [tool] = anthropic_of(f'"tools":[{{"type":"function","function":{function}}}]')["tools"]

    assert tool == {"type": "custom", "name": "f", "input_schema": schema}


def test_function_without_a_name_is_refused() -> None:
    """A choice could not name it; the error says which one."""
    tools = '"tools":[{"type":"function","function":{"name":""}}]'

    with pytest.raises(InvalidRequest) as caught:
        chat_to_anthropic(body_of(tools))

    assert caught.value.param == "tools[0].function.name"


def test_lost_members_are_warned_about() -> None:
    """All that asks for something; values that ask for nothing are not mentioned."""
    body = body_of(
        '"seed":1',
        '"n":2',
        '"response_format":{"type":"json_object"}',
        '"logprobs":false',
        '"presence_penalty":0',
        '"stop":null',
        '"stream":true',
        '"stream_options":{"include_usage":true}',
        '"user":"u"',
        '"top_k":3',
        '"thinking":{"type":"enabled"}',
        '"tools":[{"type":"web_search"}]',
        messages='{"role":"odd"},{"role":"assistant","function_call":{"name":"f"}}',
    )

    anthropic = chat_to_anthropic(body)

    assert [str(it) for it in anthropic.warnings] == [
        "lossy;unsupported_role;messages[0].role",
        "lossy;dropped;messages[1].function_call",
        "lossy;unsupported_type;tools[0].type",
        "lossy;dropped;seed",
        "lossy;dropped;n",
        "lossy;dropped;response_format",
    ]
    assert json.loads(anthropic.body) == {
        "model": "m",
        "messages": [],
        "max_tokens": 4096,
        "stream": True,
        "metadata": {"user_id": "u"},
        "top_k": 3,
        "thinking": {"type": "enabled"},
    }


@pytest.mark.parametrize(
    ("call", "param"),
    [
        ('{"function":{"name":"f"}}', "id"),
        ('{"id":"c","function":{}}', "function.name"),
        ('{"id":"c","function":{"name":"f","arguments":"[]"}}', "function.arguments"),
        ('{"id":"c","function":{"name":"f","arguments":{}}}', "function.arguments"),
        ('{"id":"c","function":{"name":"f","arguments":"{}}"}}', "function.arguments"),
        ("7", "id"),
    ],
)
def test_incomplete_tool_call_is_refused(call: str, param: str) -> None:
    """Left out it would leave a result without a call; the error says which member."""
    message = f'{{"role":"assistant","tool_calls":[{call}]}}'

    with pytest.raises(InvalidRequest) as caught:
        chat_to_anthropic(body_of(messages=message))

    assert caught.value.param == f"messages[0].tool_calls[0].{param}"


@pytest.mark.parametrize(
    "body", [b"[]", b'{"model":"m"}', b'{"model":"m","messages":{}}', b'{"messages":["\\ud83d"]}']
)
def test_malformed_request_is_a_typed_error(body: bytes) -> None:
    """Never another exception."""
    with pytest.raises(InvalidRequest):
        chat_to_anthropic(body)


ARGUMENTS = st.dictionaries(TEXT, JSON_VALUES, max_size=2).map(json.dumps)
CALLS = st.lists(st.tuples(TEXT.filter(bool), ARGUMENTS), min_size=1, max_size=3)


@given(calls=CALLS, results=st.lists(st.tuples(TEXT.filter(bool), TEXT), min_size=1, max_size=3))
def test_tool_history_survives_the_way_there_and_back(
    calls: list[tuple[str, str]], results: list[tuple[str, str]]
) -> None:
    """Ids, names, order and arguments, to the byte."""
    history = [
        {
            "role": "assistant",
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": name, "arguments": arguments}}
                for name, arguments in calls
            ],
        },
        *(
            {"role": "tool", "tool_call_id": call_id, "content": content}
            for call_id, content in results
        ),
    ]
    body = json.dumps({"model": "m", "messages": history}).encode()

    back = anthropic_to_chat(chat_to_anthropic(body).body)

    assert json.loads(back.body)["messages"] == history


@given(request=CHAT_REQUESTS, value=JSON_VALUES)
def test_any_request_is_translated_or_refused(request: dict[str, Any], value: object) -> None:
    """Odd types in any place never raise anything but the typed error."""
    message = {"role": "assistant", "content": value, "tool_calls": value}
    request = request | {"tools": value, "stop": value, "tool_choice": value, "max_tokens": value}
    request["messages"] = [*request["messages"], value, message]

    try:
        anthropic = json.loads(chat_to_anthropic(json.dumps(request).encode()).body)
    except InvalidRequest:
        return

    assert {turn["role"] for turn in anthropic["messages"]} <= {"user", "assistant"}
    assert all(turn["content"] for turn in anthropic["messages"])
