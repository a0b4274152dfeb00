"""What routing reads of an Anthropic request."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given

from tests.reference_dir import reference_dir
from tests.strategies import JSON_VALUES
from vsr.codec.anthropic.request import read_anthropic
from vsr.codec.chat import read_chat
from vsr.codec.chat_facts import ChatFacts
from vsr.errors import InvalidRequest


def facts_of(*messages: dict[str, Any], **members: object) -> ChatFacts:
    """Return the facts of a request."""
    body = json.dumps({"model": "m", "messages": messages} | members)
    return read_anthropic(body.encode()).facts


def tokens_of(*messages: dict[str, Any], **members: object) -> int:
    """Return the token count of a request; its JSON has no spaces."""
    body = json.dumps({"model": "m", "messages": messages} | members, separators=(",", ":"))
    return read_anthropic(body.encode()).token_count


def test_routing_fixture_is_read_as_the_reference_reads_it() -> None:
    """Fixture 14: a loop of two calls in one turn, whose results share the next."""
    path = reference_dir() / "routing-fixtures" / "14-anthropic-extraction.yaml"
    plain, loop = yaml.safe_load(path.read_text(encoding="utf-8"))["cases"]

    first = read_anthropic(json.dumps(plain["request"]["body"]).encode())
    second = read_anthropic(json.dumps(loop["request"]["body"]).encode()).facts

    assert first.evaluation_text == "weather in Oslo"
    assert first.context_text == "be concise weather in Oslo"
    assert not first.facts.last_is_tool_result
    assert (second.tool_calls, second.tool_messages) == (2, 1)
    assert second.tool_call_names == ["w", "w"]
    assert second.last_is_tool_result
    assert second.current_user_text == "compare weather"


def test_texts_go_where_their_role_says() -> None:
    """System blocks are one message; earlier user texts and other turns are kept apart."""
    text = {"type": "text", "text": "b"}
    facts = facts_of(
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [text, {"type": "text", "text": ""}, text]},
        {"role": "assistant", "content": []},
        {"role": "user", "content": [text, {"type": "thinking", "thinking": "t"}]},
        {"role": "odd", "content": "c"},
        system=[{"type": "text", "text": "s"}, {"type": "text", "text": "t"}],
    )

    assert facts.current_user_text == "b"
    assert facts.prior_user_texts == ["a"]
    assert facts.non_user_texts == ["s t", "b b"]
    assert (facts.system_messages, facts.user_messages, facts.assistant_messages) == (1, 2, 2)
    assert facts.has_assistant_reply
    assert facts.last_role == "odd"


def test_user_behind_a_result_is_told() -> None:
    """Only if its own turn has no result."""
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    user = {"role": "user", "content": "next"}

    assert facts_of(result, user).last_user_follows_tool_result
    assert not facts_of(result, result).last_user_follows_tool_result
    assert not facts_of(result, user, user).last_user_follows_tool_result
    assert facts_of(result, result).tool_messages == 2


def test_inline_images_of_users_count() -> None:
    """As the reference has it, a remote one does not."""
    inline = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}}
    remote = {"type": "image", "source": {"type": "url", "url": "https://e/i.png"}}

    facts = facts_of(
        {"role": "user", "content": [inline, remote, inline]},
        {"role": "assistant", "content": [inline]},
    )

    assert facts.user_images == 2


def test_tools_are_counted() -> None:
    """Those that the provider runs, too."""
    assert facts_of(tools=[{"name": "f"}, {"type": "web_search"}]).tool_definitions == 2


@pytest.mark.parametrize(
    ("messages", "members", "tokens"),
    [
        ([{"role": "user", "content": "hello"}], {}, 7),
        ([{"role": "user", "content": [{"type": "text", "text": "hello"}]}], {}, 7),
        ([{"role": "user", "content": "hello"}], {"max_tokens": 100}, 107),
        ([{"role": "user", "content": "hello"}], {"max_tokens": None}, 7),
        ([{"role": "user", "content": "hello"}], {"max_tokens": 1.5}, 10),
        # ceil((4 + 5 + 6 + 1) / 4) + 2 messages
        ([{"role": "user", "content": "hello"}], {"system": "s"}, 12),
        ([{"role": "user", "content": [{"type": "image"}]}], {}, 1 + 4 + 8192),
        # ceil((9 + id, type, name) / 4), then the input, then framing
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}],
                }
            ],
            {},
            5 + 7 + 8 + 4,
        ),
        # ceil((4 + id) / 4) + "x" with its quotes + framing
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}],
                }
            ],
            {},
            2 + 3 + 8 + 4,
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": [{"type": "image"}, 1]}],
                }
            ],
            {},
            1 + 8192 + 1 + 8 + 4,
        ),
        ([{"role": "user", "content": [{"type": "document"}]}], {}, 1 + 19 + 4),
        ([], {"tools": [{"name": "f"}], "tool_choice": {"type": "any"}}, 8 + 12 + 14),
    ],
)
def test_tokens_are_the_floor_of_the_reference(
    messages: list[dict[str, Any]], members: dict[str, Any], tokens: int
) -> None:
    """Text by four bytes, JSON by one, and framing as the reference counts it."""
    assert tokens_of(*messages, **members) == tokens


def test_plain_request_is_the_same_in_either_api() -> None:
    """Model, stream, metadata, texts and tokens do not depend on the protocol."""
    body = (
        b'{"model":" m ","stream":true,"metadata":{"user_id":"u"},'
        b'"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}'
    )

    ours, chat = read_anthropic(body), read_chat(body)

    assert ours.facts == chat.facts
    assert ours.token_count == chat.token_count
    assert (ours.model, ours.is_streaming, ours.metadata) == ("m", True, {"user_id": "u"})
    assert not ours.is_blank


@pytest.mark.parametrize(
    "body", [b"{", b'{"messages":[]}', b'{"model":"m"}', b'{"model":"m","messages":1}']
)
def test_malformed_request_is_refused(body: bytes) -> None:
    """As a chat request would be."""
    with pytest.raises(InvalidRequest):
        read_anthropic(body)


@given(value=JSON_VALUES, more=JSON_VALUES)
def test_any_values_are_read(value: object, more: object) -> None:
    """Odd types in any place raise nothing, and the bound on tokens holds."""
    block = {"type": "tool_use", "id": value, "name": more, "input": value}
    result = {"type": "tool_result", "tool_use_id": value, "content": more}
    messages = [value, {"role": "assistant", "content": [block, more]}]
    messages += [{"role": "user", "content": [result, value]}, {"role": more, "content": value}]
    members = {"system": more, "tools": value, "tool_choice": more, "max_tokens": value}
    body = json.dumps({"model": "m", "messages": messages} | members)

    request = read_anthropic(body.encode())

    assert request.facts.assistant_messages >= 1
    assert not request.is_surely_shorter_than(request.token_count)
