"""An Anthropic client's request on its way through a chat request to an Anthropic backend."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import JSON_VALUES
from vsr.codec.anthropic.request_to_anthropic import chat_to_anthropic
from vsr.codec.anthropic.request_to_chat import anthropic_to_chat
from vsr.codec.anthropic.side_record import Origin, align

WORDS = st.sampled_from(["a", "b", "é\n", ' "'])
CACHE = st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral"})})


def _with(strategy: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(strategy, CACHE).map(lambda pair: pair[0] | pair[1])


TEXT = _with(st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}))
RESULT = _with(
    st.fixed_dictionaries(
        {"type": st.just("tool_result"), "tool_use_id": WORDS},
        optional={"is_error": st.booleans(), "content": WORDS | st.lists(TEXT, max_size=2)},
    )
)
DOCUMENT = st.fixed_dictionaries({"type": st.just("document"), "source": JSON_VALUES})
TOOL_USE = st.fixed_dictionaries(
    {"type": st.just("tool_use"), "id": WORDS, "name": WORDS}
    | {"input": st.dictionaries(WORDS, JSON_VALUES, max_size=2)}
)
THINKING = st.fixed_dictionaries(
    {"type": st.just("thinking"), "thinking": WORDS, "signature": WORDS}
)
USER = st.fixed_dictionaries(
    {
        "role": st.just("user"),
        "content": WORDS | st.lists(TEXT | RESULT | DOCUMENT, min_size=1, max_size=3),
    }
)
ASSISTANT = st.fixed_dictionaries(
    {
        "role": st.just("assistant"),
        "content": WORDS | st.lists(TEXT | TOOL_USE | THINKING, min_size=1, max_size=3),
    }
)
TOOL = _with(
    st.fixed_dictionaries(
        {"name": WORDS, "input_schema": st.just({"type": "object"})},
        optional={"description": WORDS, "strict": st.booleans()},
    )
) | st.just({"type": "web_search_20250305", "name": "w"})
REQUESTS = st.fixed_dictionaries(
    {
        "model": st.just("m"),
        "max_tokens": st.integers(1, 9),
        "messages": st.lists(USER | ASSISTANT, max_size=6),
    },
    optional={
        "system": WORDS | st.lists(TEXT, min_size=1, max_size=2),
        "tools": st.lists(TOOL, min_size=1, max_size=3),
        "tool_choice": st.sampled_from(
            [{"type": "auto", "disable_parallel_tool_use": True}, {"type": "any"}]
        ),
        "stream": st.just(value=True),
        "stop_sequences": st.just(["x"]),
        "thinking": st.just({"type": "enabled", "budget_tokens": 5}),
        "metadata": st.just({"user_id": "u", "other": 1}),
        "top_k": st.just(3),
        "unheard_of": JSON_VALUES,
    },
)


@given(request=REQUESTS)
def test_unchanged_request_comes_back(request: dict[str, Any]) -> None:
    """Cache markers, signatures, documents, errors of tools and server tools are all there."""
    chat = anthropic_to_chat(json.dumps(request).encode())

    anthropic = chat_to_anthropic(chat.body, chat.record)

    assert json.loads(anthropic.body) == request
    assert anthropic.warnings == ()


def test_unchanged_turns_come_back_byte_for_byte() -> None:
    """A signature holds only for the very bytes, so history is never written anew."""
    turn = (
        '{ "content" : [{"type":"thinking","thinking":"h\\u00e9 \\/","signature":"s=="},'
        '{"type":"tool_use","id":"t","name":"f","input":{"a" : 1.10}}], "role":"assistant" }'
    )
    system = '[ {"type":"text","text":"s","cache_control":{"type":"ephemeral"}} ]'
    body = f'{{"model":"m","max_tokens":5,"messages":[{turn}],"system":{system},"top_k":1.0}}'
    chat = anthropic_to_chat(body.encode())

    anthropic = chat_to_anthropic(chat.body, chat.record)

    assert anthropic.body.decode() == (
        f'{{"model":"m","messages":[{turn}],"max_tokens":5,"system":{system},"top_k":1.0}}'
    )


def _changed(change: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent of a request whose chat form a plugin changed."""
    request = {
        "model": "m",
        "max_tokens": 5,
        "system": "old",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": {}}],
        "tool_choice": {"type": "any"},
        "unheard_of": 1,
    }
    chat = anthropic_to_chat(json.dumps(request).encode())
    members = json.loads(chat.body)
    members |= {name: value(members.get(name)) for name, value in change.items()}
    body = msgspec.json.encode({name: it for name, it in members.items() if it is not None})
    sent: dict[str, Any] = json.loads(chat_to_anthropic(body, chat.record).body)
    return sent


def test_added_system_message_joins_the_clients() -> None:
    """A plugin's prompt in front does not push the client's out."""
    system = {"role": "system", "content": "new"}

    changed = _changed({"messages": lambda messages: [system, *messages]})

    assert changed["system"] == [{"text": "new", "type": "text"}, {"text": "old", "type": "text"}]
    assert changed["messages"][0]["content"][0]["cache_control"] == {}


def test_changed_parts_are_translated_anew() -> None:
    """What a plugin wrote is sent; the record only answers for what is unchanged."""
    changed = _changed(
        {
            "messages": lambda _: [{"role": "user", "content": "other"}],
            "tools": lambda _: [{"type": "function", "function": {"name": "g"}}],
            "tool_choice": lambda _: "none",
            "unheard_of": lambda _: None,
        }
    )

    assert changed == {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": [{"text": "other", "type": "text"}]}],
        "tools": [
            {"type": "custom", "name": "g", "input_schema": {"type": "object", "properties": {}}}
        ],
        "tool_choice": {"type": "none"},
    }


def test_thinking_without_a_signature_is_not_replayed() -> None:
    """It was a chat backend's reasoning, shown by the Router; Anthropic would refuse it."""
    thinking = {"type": "thinking", "thinking": "t", "signature": ""}
    text = {"type": "text", "text": "x", "citations": []}
    turns = [
        {"role": "assistant", "content": [thinking, text]},
        {"role": "assistant", "content": [thinking]},
    ]
    chat = anthropic_to_chat(json.dumps({"model": "m", "messages": turns}).encode())

    anthropic = json.loads(chat_to_anthropic(chat.body, chat.record).body)

    assert anthropic["messages"] == [{"role": "assistant", "content": [text]}]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("1 2 3", ["a", "b", "c"]),
        ("2 3", ["b", "c"]),
        ("x 1 2 3", [0, "a", "b", "c"]),
        ("1 x 3", ["a", 1, 2, "b"]),
        ("3 1", [0, "a", "b"]),
        ("", ["b"]),
    ],
)
def test_alignment_finds_what_is_unchanged(entries: str, expected: list[object]) -> None:
    """Part b has no counterpart, part c has two, of which one alone is not enough."""
    raws = {word: msgspec.Raw(word.encode()) for word in "123xabc"}
    origins = [
        Origin([raws["1"]], raws["a"]),
        Origin([], raws["b"]),
        Origin([raws["2"], raws["3"]], raws["c"]),
    ]

    steps = [
        step if isinstance(step, int) else bytes(step.anthropic).decode()
        for step in align([raws[word] for word in entries.split()], origins)
    ]

    assert steps == expected
