"""An Anthropic stream as chat completion chunks."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.anthropic_events import (
    CREATED,
    FULL,
    STOP,
    block,
    delta,
    finish,
    piece,
    start,
    stop,
    tool,
    translated,
    translation,
)
from tests.codec.stream_folding import (
    CUTS,
    anthropic_stream,
    cut,
    data_of,
    fold_anthropic,
    fold_chat,
    run,
)
from vsr.codec.anthropic.response_to_chat import anthropic_response_to_chat
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.stream_usage import ReportedUsage

BUFFERED = {
    "id": "msg_1",
    "model": "up",
    "content": [
        {"type": "thinking", "thinking": "Hm ü🙂", "signature": "s=="},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "A b\u2028\n"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": 1}},
        {"type": "tool_use", "id": "t0", "name": "f", "input": {"a": '"'}},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "f", "input": {"b": [1]}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 7},
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@settings(max_examples=25)
@given(cuts=CUTS)
def test_stream_becomes_the_buffered_answer_in_any_split(end: str, cuts: list[int]) -> None:
    """Wherever the bytes are cut, and whatever ends the lines."""
    text = "\ufeff" + anthropic_stream(*FULL).decode().replace("data: ", "id: 1\ndata:")
    body = text.replace(', "index"', '\ndata: , "index"').replace("\n", end).encode()
    stream = translation()

    out = run(stream, *cut(body, cuts))

    assert out == run(translation(), body)
    expected = json.loads(
        anthropic_response_to_chat(json.dumps(BUFFERED).encode(), created=CREATED)
    )
    assert expected["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == (
        '{"a": "\\""}'
    )
    assert fold_chat(out) == expected
    assert stream.usage == ReportedUsage(14, 7, 4)
    assert stream.is_complete


BLOCKS = st.lists(
    st.tuples(st.just("text"), st.text('ab é🙂"\\', min_size=1, max_size=6))
    | st.tuples(st.just("thinking"), st.text("ab", min_size=1, max_size=6))
    | st.tuples(st.just("tool_use"), st.dictionaries(st.text("k{", max_size=3), st.text('{}"\\'))),
    max_size=6,
)


@given(blocks=BLOCKS)
def test_blocks_of_any_order_come_back_through_a_chat_stream(
    blocks: list[tuple[str, Any]],
) -> None:
    """Thinking, texts and tools in every order, there and back."""
    events: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for at, (kind, value) in enumerate(blocks):
        if kind == "tool_use":
            text = json.dumps(value)
            events += (tool(at, f"t{at}"), piece(at, text[:2]), piece(at, text[2:]), stop(at))
            content.append({"type": kind, "id": f"t{at}", "name": "f", "input": value})
            continue
        events += (block(at, kind), delta(at, f"{kind}_delta", **{kind: value}), stop(at))
        if content and content[-1]["type"] == kind:
            content[-1][kind] += value
        else:
            signature = {"signature": ""} if kind == "thinking" else {}
            content.append({"type": kind, kind: value} | signature)

    chat = run(translation(), anthropic_stream(start(), *events, finish(), STOP))
    message = fold_anthropic(run(ChatStreamToAnthropic(), chat))

    assert message["content"] == content
    assert message["id"] == "msg_1"


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("refusal", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        (None, "stop"),
    ],
)
@pytest.mark.parametrize("has_tool", [False, True])
def test_finish_reason_is_that_of_a_buffered_answer(
    stop_reason: str | None, finish_reason: str, *, has_tool: bool
) -> None:
    """Also where the backend gives none, or ends its turn with a call."""
    content = [{"type": "tool_use", "id": "t0", "name": "f", "input": {}}] if has_tool else []
    buffered = {"id": "msg_1", "content": content, "stop_reason": stop_reason}

    tools = [tool(0), stop(0)] if has_tool else []
    body = run(translation(), anthropic_stream(start(), *tools, finish(stop_reason), STOP))

    found = fold_chat(body)["choices"][0]["finish_reason"]
    expected = json.loads(anthropic_response_to_chat(json.dumps(buffered).encode(), created=0))
    assert found == expected["choices"][0]["finish_reason"]
    if has_tool and finish_reason == "stop":
        finish_reason = "tool_calls"
    assert found == finish_reason


def test_first_chunk_has_the_role_and_each_the_model_shown() -> None:
    """The client sees one name of the model, in members of the usual order."""
    stream = translation(model="shown")

    first = stream.feed(anthropic_stream(start()))

    assert first.decode() == (
        'data: {"id":"msg_1","object":"chat.completion.chunk","created":1700000000,'
        '"model":"shown","choices":[{"index":0,"delta":{"role":"assistant"},'
        '"finish_reason":null}]}\n\n'
    )


def test_usage_is_for_who_asked() -> None:
    """The Router reads it in any case."""
    stream = translation(include_usage=False)

    body = run(stream, anthropic_stream(start(input_tokens=3), finish(output_tokens=5), STOP))

    assert b"usage" not in body
    assert stream.usage == ReportedUsage(3, 5)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ({"input_tokens": 3, "output_tokens": 1}, None, ReportedUsage(3)),
        ({"input_tokens": 3}, {"output_tokens": 5}, ReportedUsage(3, 5)),
        ({"input_tokens": 0}, {"input_tokens": 3, "output_tokens": 5}, ReportedUsage(3, 5)),
        ({"input_tokens": 3}, {"input_tokens": 0, "output_tokens": 0}, ReportedUsage(3, 0)),
        ({"input_tokens": 3}, {"input_tokens": None, "output_tokens": 5}, ReportedUsage(3, 5)),
        ({}, {"output_tokens": 5}, ReportedUsage(None, 5)),
        ({}, {"output_tokens": "5"}, ReportedUsage()),
        ({}, {}, None),
        (
            {"input_tokens": 3, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 1},
            {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}},
            ReportedUsage(6, 5, 1, 2, 4),
        ),
    ],
)
def test_usage_is_put_together(
    first: dict[str, Any], last: dict[str, Any] | None, expected: ReportedUsage | None
) -> None:
    """Of the start and the end; what only the end can tell is unknown until then."""
    stream = translation()

    stream.feed(anthropic_stream(start(**first)))
    if last is not None:
        stream.feed(anthropic_stream(finish(**last)))

    assert stream.usage == expected


def test_usage_with_an_unknown_count_is_not_shown() -> None:
    """Rather than a made up 0."""
    body = run(translation(), anthropic_stream(start(), finish(output_tokens=5), STOP))

    assert "usage" not in fold_chat(body)


@pytest.mark.parametrize(
    "events",
    [
        [tool(0), finish(), STOP],
        [tool(0), tool(0, "t1"), finish(), STOP],
        [tool(0), piece(7, "{"), stop(7), stop(0), finish(), STOP],
    ],
)
def test_call_without_input_has_an_empty_object(events: list[dict[str, Any]]) -> None:
    """Even if its block never ends; a piece of an unknown block is nobody's."""
    calls = translated(start(), *events)["tool_calls"]

    assert {call["function"]["arguments"] for call in calls} == {"{}"}


def test_calls_may_be_mixed() -> None:
    """Each piece goes to the call of its block."""
    calls = translated(
        start(),
        tool(0, "t0"),
        tool(1, "t1"),
        piece(0, '{"a"'),
        piece(1, '{"b"'),
        piece(0, ":1}"),
        piece(1, ":2}"),
        finish(),
        STOP,
    )["tool_calls"]

    assert [call["function"]["arguments"] for call in calls] == ['{"a":1}', '{"b":2}']


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
def test_last_event_needs_no_empty_line(end: bytes) -> None:
    """Some backends do not end their last line."""
    body = anthropic_stream(start(), finish(), STOP).removesuffix(b"\n\n") + end

    assert data_of(run(translation(), body))[-1] == "[DONE]"


def test_nothing_is_read_behind_the_end() -> None:
    """`[DONE]` comes once."""
    stream = translation()

    assert data_of(stream.feed(anthropic_stream(start(), finish(), STOP, STOP)))[-1] == "[DONE]"
    assert stream.feed(anthropic_stream(start(), STOP)) == b""
    assert stream.close() == b""
