"""An Anthropic stream as chat completion chunks."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.stream_folding import (
    CUTS,
    anthropic_stream,
    cut,
    data_of,
    events_of,
    fold_anthropic,
    fold_chat,
    run,
)
from vsr.codec.anthropic.response_to_chat import anthropic_response_to_chat
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.anthropic.stream_to_chat import MAX_OPEN_TOOLS, AnthropicStreamToChat
from vsr.codec.stream_usage import ReportedUsage

CREATED = 1_700_000_000
STOP = {"type": "message_stop"}
PING = {"type": "ping"}


def start(**usage: object) -> dict[str, Any]:
    """Return the message's start."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": []}
    return {"type": "message_start", "message": message | {"usage": usage}}


def block(index: int, kind: str, **members: object) -> dict[str, Any]:
    """Return a block's start."""
    content_block = {"type": kind} | members
    return {"type": "content_block_start", "index": index, "content_block": content_block}


def tool(index: int, call_id: str = "t0", **given: object) -> dict[str, Any]:
    """Return a tool block's start."""
    return block(index, "tool_use", id=call_id, name="f", input=given)


def delta(index: int, kind: str, **members: object) -> dict[str, Any]:
    """Return a piece of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | members}


def piece(index: int, text: str) -> dict[str, Any]:
    """Return a piece of a tool's input."""
    return delta(index, "input_json_delta", partial_json=text)


def stop(index: int) -> dict[str, Any]:
    """Return a block's end."""
    return {"type": "content_block_stop", "index": index}


def finish(stop_reason: str | None = "end_turn", **usage: object) -> dict[str, Any]:
    """Return the message's end, but for the last event."""
    reason = {"stop_reason": stop_reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": reason, "usage": usage}


def translation(
    *, include_usage: bool = True, model: str | None = None, max_event_bytes: int = 1 << 20
) -> AnthropicStreamToChat:
    """Return a translation for a client that asks for the usage."""
    return AnthropicStreamToChat(
        created=CREATED, include_usage=include_usage, model=model, max_event_bytes=max_event_bytes
    )


def translated(*events: dict[str, Any]) -> dict[str, Any]:
    """Return the message that a client puts together."""
    completion = fold_chat(run(translation(), anthropic_stream(*events)))
    message: dict[str, Any] = completion["choices"][0]["message"]
    return message


def failure(*events: dict[str, Any]) -> dict[str, Any]:
    """Return the error that a stream ends in."""
    stream = translation()
    chunks = data_of(run(stream, anthropic_stream(*events)))
    assert "[DONE]" not in chunks
    assert not stream.is_complete
    error: dict[str, Any] = chunks[-1]["error"]
    return error


FULL = (
    start(input_tokens=10, cache_read_input_tokens=4, output_tokens=1),
    block(0, "thinking", thinking="", signature=""),
    PING,
    delta(0, "thinking_delta", thinking="Hm ü🙂"),
    delta(0, "signature_delta", signature="s=="),
    stop(0),
    block(1, "redacted_thinking", data="x"),
    stop(1),
    block(2, "text", text="A"),
    delta(2, "text_delta", text=" b\u2028\n"),
    delta(2, "text_delta", text=""),
    stop(2),
    block(3, "server_tool_use", id="s", name="web_search", input={}),
    piece(3, '{"query":1}'),
    stop(3),
    tool(4, "t0"),
    piece(4, ""),
    piece(4, '{"a":'),
    piece(4, ' "\\""}'),
    stop(4),
    tool(5, "t1"),
    stop(5),
    tool(6, "t2", b=[1]),
    piece(6, '{"b":[1]}'),
    stop(6),
    finish("tool_use", output_tokens=7),
    STOP,
)
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


def test_open_blocks_are_bounded() -> None:
    """No backend makes the Router remember what it likes."""
    tools = [tool(at) for at in range(MAX_OPEN_TOOLS + 1)]

    assert "too many" in failure(start(), *tools, STOP)["message"]
    assert translated(start(), *tools[:-1], finish(), STOP)["tool_calls"]


@settings(max_examples=50)
@given(place=st.integers(0, 10_000), cuts=CUTS)
def test_stream_that_is_cut_off_ends_in_an_error(place: int, cuts: list[int]) -> None:
    """Wherever it is cut, no client takes it for whole."""
    whole = anthropic_stream(*FULL).removesuffix(b'"}\n\n')
    body = whole[: place % len(whole)]
    stream = translation()

    out = run(stream, *cut(body, cuts))

    assert data_of(out)[-1]["error"]["type"] == "server_error"
    assert b"[DONE]" not in out
    assert not stream.is_complete
    assert out == run(translation(), body)


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
def test_last_event_needs_no_empty_line(end: bytes) -> None:
    """Some backends do not end their last line."""
    body = anthropic_stream(start(), finish(), STOP).removesuffix(b"\n\n") + end

    assert data_of(run(translation(), body))[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (
            'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"m"}}',
            "api_error",
        ),
        ('data: {"type":"error","error":{"type":"x","message":"m"}}', "x"),
        ('data: {"error":{"type":"x","message":"m"}}', "x"),
        ('{"error":{"type":"x","message":"m"}}', "x"),
        ("event: error\ndata: m", None),
        ('event: error\ndata: {"message":"m"}', None),
        ('data: {"type":"error","message":"m"}', "error"),
    ],
)
@pytest.mark.parametrize("before", [[], [start(), block(0, "text", text="x")]])
def test_error_of_the_backend_is_the_last_chunk(
    event: str, kind: str | None, before: list[dict[str, Any]]
) -> None:
    """With all four members; there is no `[DONE]`, even if the message's end follows."""
    stream = translation()

    body = run(
        stream, anthropic_stream(*before), f"{event}\n\n".encode(), anthropic_stream(finish(), STOP)
    )

    error = {"type": kind, "code": None, "message": "m", "param": None}
    assert data_of(body)[-1] == {"error": error}
    assert b"[DONE]" not in body
    assert not stream.is_complete
    assert [event.event for event in events_of(body)] == [""] * len(events_of(body))


@pytest.mark.parametrize(
    "events", [[STOP], [block(0, "text", text="x"), STOP], [piece(0, "{"), start(), STOP], []]
)
def test_stream_without_a_start_is_an_error(events: list[dict[str, Any]]) -> None:
    """It is no message."""
    assert failure(*events)["type"] == "server_error"


@given(cuts=CUTS)
def test_event_over_the_bound_is_an_error_in_any_split(cuts: list[int]) -> None:
    """What came before it was sent, what comes behind it is not read."""
    body = anthropic_stream(
        start(), block(0, "text", text="x"), block(0, "text", text="y" * 500), finish(), STOP
    )
    stream = translation(max_event_bytes=300)

    chunks = data_of(run(stream, *cut(body, cuts)))

    assert [list(chunk) for chunk in chunks[2:]] == [["error"]]
    assert "over the bound" in chunks[2]["error"]["message"]


def test_nothing_is_read_behind_the_end() -> None:
    """`[DONE]` comes once."""
    stream = translation()

    assert data_of(stream.feed(anthropic_stream(start(), finish(), STOP, STOP)))[-1] == "[DONE]"
    assert stream.feed(anthropic_stream(start(), STOP)) == b""
    assert stream.close() == b""


@pytest.mark.parametrize(
    "event",
    [
        "data: {",
        "data: 7",
        "data:",
        "data: {}",
        "data: [DONE]",
        ": comment",
        'data: {"type":"ping"}',
        'data: {"type":"unheard_of","text":"n"}',
        'data: {"type":"content_block_unheard_of"}',
        'data: {"type":"content_block_start"}',
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        'data: {"type":"content_block_delta","index":0}',
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}',
        'data: {"type":"content_block_delta","index":"0"}',
        'data: {"type":"content_block_stop"}',
        'data: {"type":"message_start"}',
        'data: {"type":"message_delta"}',
        "data: " + '{"a":' * 5000,
    ],
)
def test_what_is_no_content_changes_nothing(event: str) -> None:
    """Malformed events and unknown ones are passed over."""
    whole = [start(), block(0, "text", text="x"), finish(), STOP]
    body = [anthropic_stream(*whole[:2]), f"{event}\n\n".encode(), anthropic_stream(*whole[2:])]

    assert run(translation(), *body) == run(translation(), anthropic_stream(*whole))


def test_odd_start_still_makes_chunks() -> None:
    """A backend that names neither message nor model."""
    body = run(translation(), anthropic_stream({"type": "message_start"}, finish(), STOP))

    assert data_of(body)[0]["id"] == ""
    assert data_of(body)[0]["model"] is None
