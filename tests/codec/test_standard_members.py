"""The members that the OpenAI schema knows."""

import json

import msgspec
import pytest

from vsr.codec.standard_members import keep_standard


def _kept(**members: object) -> dict[str, object]:
    raws = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in members.items()}
    return {name: json.loads(bytes(raw)) for name, raw in keep_standard(raws).items()}


def test_unknown_top_level_members_go() -> None:
    """What only some backends know is lost; zero and null are values like others."""
    kept = _kept(
        model="m", top_k=5, chat_template_kwargs={}, plugins=[], seed=0, stop=None, stream=True
    )

    assert kept == {"model": "m", "seed": 0, "stop": None, "stream": True}


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            {"role": "system", "content": "s", "cache_control": {}},
            {"role": "system", "content": "s"},
        ),
        (
            {"role": "user", "content": "u", "name": "ann", "x": 1},
            {"role": "user", "content": "u", "name": "ann"},
        ),
        (
            {"role": "tool", "tool_call_id": "t", "content": "r", "name": "f"},
            {"role": "tool", "tool_call_id": "t", "content": "r"},
        ),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "r", "refusal": None},
            {"role": "assistant", "content": "a", "refusal": None},
        ),
    ],
)
def test_messages_keep_what_their_role_knows(
    message: dict[str, object], kept: dict[str, object]
) -> None:
    """Each role has members of its own; extensions inside a message are lost."""
    assert _kept(messages=[message])["messages"] == [kept]


def test_null_content_beside_tool_calls_goes() -> None:
    """An assistant's tool calls need no content; the calls lose what the schema does not know."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    odd_call = {**call, "index": 0, "function": {**call["function"], "x": 1}}  # type: ignore[dict-item]
    message = {"role": "assistant", "content": None}

    kept = _kept(
        messages=[
            {**message, "tool_calls": [odd_call]},
            {**message, "function_call": {"name": "f", "arguments": "", "x": 1}},
            message,
        ]
    )

    assert kept["messages"] == [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "function_call": {"name": "f", "arguments": ""}},
        message,
    ]


def test_parts_keep_what_their_type_knows() -> None:
    """A part of a type that the schema does not know is the client's data and passes whole."""
    parts = [
        {"type": "text", "text": "t", "cache_control": {}},
        {"type": "image_url", "image_url": {"url": "u", "detail": "low", "x": 1}},
        {"type": "video_url", "video_url": {"url": "v", "fps": 2}},
        5,
    ]

    kept = _kept(messages=[{"role": "user", "content": parts}])

    assert kept["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "t"},
                {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
                {"type": "video_url", "video_url": {"url": "v", "fps": 2}},
                5,
            ],
        }
    ]


def test_tools_keep_what_their_type_knows() -> None:
    """A tool's parameters are a schema of the client's own and stay whole."""
    function = {"name": "f", "description": "d", "parameters": {"x-own": 1}, "strict": True}

    kept = _kept(
        tools=[
            {"type": "function", "function": {**function, "y": 1}, "cache_control": {}},
            {"type": "web_search", "depth": 3},
        ],
        functions=[{"name": "g", "parameters": {}, "z": 1}],
    )

    assert kept == {
        "tools": [{"type": "function", "function": function}, {"type": "web_search", "depth": 3}],
        "functions": [{"name": "g", "parameters": {}}],
    }


def test_what_is_not_in_the_schema_by_its_kind_stays_whole() -> None:
    """An unknown role, a schema in `response_format` and odd types are the client's data."""
    members: dict[str, object] = {
        "messages": [{"role": "critic", "content": "c", "x": 1}, 5, {"content": "no role"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "tools": "odd",
        "functions": [5],
    }

    assert _kept(**members) == members
    assert _kept(messages={}) == {"messages": {}}


def test_untouched_values_keep_their_bytes() -> None:
    """A message that loses nothing is not written anew, nor is a list of such messages."""
    raw = msgspec.Raw(b'[ {"role": "user", "content": "\\u00e9"} ]')
    tools = msgspec.Raw(b'[ {"type": "function", "function": {"name" : "f"}} ]')

    kept = keep_standard({"messages": raw, "tools": tools})

    assert b'{"role": "user", "content": "\\u00e9"}' in bytes(kept["messages"])
    assert kept["tools"] == tools
