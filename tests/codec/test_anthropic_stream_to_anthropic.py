"""Chat completion chunks as an Anthropic stream."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.chat_chunks import DONE, FULL, ROLE, USAGE, call, chunk, tool, translated
from tests.codec.stream_folding import CUTS, chat_stream, cut, data_of, fold_anthropic, run
from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.stream_usage import ReportedUsage

FULL_CONTENT = [
    {"type": "thinking", "thinking": "Hm, ü🙂", "signature": ""},
    {"type": "text", "text": "Let me\n\u2028"},
    tool("t0", "get", a='}"{'),
    tool("t1", "set", b=[1, {}]),
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@settings(max_examples=25)
@given(cuts=CUTS)
def test_stream_becomes_the_same_message_in_any_split(end: str, cuts: list[int]) -> None:
    """Wherever the bytes are cut, in the middle of a character too, and whatever ends the lines."""
    text = chat_stream(*FULL).decode()
    text = "\ufeff" + text.replace("data: [D", "event: x\nid: 1\nretry: 5\ndata:[D")
    body = text.replace("\n", end).replace('"object"', end + 'data: "object"').encode()
    stream = ChatStreamToAnthropic(model="shown")

    out = run(stream, *cut(body, cuts))

    assert out == run(ChatStreamToAnthropic(model="shown"), body)
    message = fold_anthropic(out)
    assert message["content"] == FULL_CONTENT
    assert (message["id"], message["model"], message["stop_reason"]) == ("c1", "shown", "tool_use")
    assert message["usage"]["input_tokens"] == 9
    assert message["usage"]["output_tokens"] == 4
    assert stream.usage == ReportedUsage(9, 4)
    assert stream.is_complete


TEXTS = st.text('ab é🙂"\\', min_size=1, max_size=6)
INPUTS = st.dictionaries(st.text('k{"\\', max_size=3), st.text('{}[]"\\u'))
BLOCKS = st.lists(
    st.tuples(st.sampled_from(["text", "thinking"]), TEXTS, st.just({}))
    | st.tuples(st.just("tool_use"), st.just(""), INPUTS),
    max_size=6,
)


@st.composite
def mixed_streams(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw the chunks of an answer whose calls' pieces come mixed, and its content."""
    content: list[dict[str, Any]] = []
    chunks: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    for at, (kind, value, given_input) in enumerate(draw(BLOCKS)):
        if kind == "tool_use":
            text = json.dumps(given_input)
            start, stop = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
            first, *others = (text[:start], text[start:stop], text[stop:])
            content.append(tool(f"t{at}", "f", **given_input))
            chunks.append(call(at, f"t{at}", "f", first))
            late += [call(at, arguments=piece) for piece in others]
        else:
            name = "content" if kind == "text" else "reasoning_content"
            chunks += [chunk(**{name: value[:1]}), chunk(**{name: value[1:]})]
            if content and content[-1]["type"] == kind:
                content[-1][kind] += value
            else:
                signature = {"signature": ""} if kind == "thinking" else {}
                content.append({"type": kind, kind: value} | signature)
        is_due = draw(st.booleans())
        for piece in list(late):
            if is_due or draw(st.booleans()):
                _deliver(piece, late, chunks)
    while late:
        _deliver(late[0], late, chunks)
    return chunks, content


def _deliver(
    piece: dict[str, Any], late: list[dict[str, Any]], chunks: list[dict[str, Any]]
) -> None:
    """Send the oldest piece of the same call."""
    index = piece["choices"][0]["delta"]["tool_calls"][0]["index"]
    for candidate in late:
        if candidate["choices"][0]["delta"]["tool_calls"][0]["index"] == index:
            late.remove(candidate)
            chunks.append(candidate)
            return


@given(drawn=mixed_streams())
def test_blocks_of_any_order_and_mixture_stay_whole(
    drawn: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    """Each name and argument is intact, one block is open at a time, in order of their start."""
    chunks, content = drawn

    message = translated(*chunks, chunk("stop"), DONE)

    assert message["content"] == content
    calls_tool = any(block["type"] == "tool_use" for block in content)
    assert message["stop_reason"] == ("tool_use" if calls_tool else "end_turn")


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("content_filter", "refusal"),
        ("eos", "end_turn"),
        (None, "end_turn"),
        ("", "end_turn"),
    ],
)
@pytest.mark.parametrize("has_call", [False, True])
@pytest.mark.parametrize("last", [(USAGE, DONE), (DONE,)])
def test_stop_reason_is_that_of_a_buffered_answer(
    finish_reason: str | None,
    stop_reason: str,
    last: tuple[dict[str, Any] | str, ...],
    *,
    has_call: bool,
) -> None:
    """Also where the backend gives none, or says `stop` for a tool."""
    calls = [{"id": "t", "function": {"name": "f", "arguments": "{}"}}] if has_call else []
    answer = {"role": "assistant", "content": "x", "reasoning_content": "y", "tool_calls": calls}
    choice = {"index": 0, "message": answer, "finish_reason": finish_reason}
    buffered = {"id": "c1", "model": "up", "choices": [choice]}

    pieces = [chunk(reasoning_content="y"), chunk(content="x", tool_calls=calls)]
    message = translated(*pieces, chunk(finish_reason), *last)

    expected = json.loads(chat_response_to_anthropic(json.dumps(buffered).encode()).body)
    for members in (message, expected):
        members["content"].sort(key=lambda block: block["type"])
    assert message["content"] == expected["content"]
    assert message["stop_reason"] == expected["stop_reason"]
    if has_call and stop_reason == "end_turn":
        stop_reason = "tool_use"
    assert message["stop_reason"] == stop_reason


def test_usage_counts_the_cache_apart() -> None:
    """As Anthropic does; the Router gets the whole."""
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    stream = ChatStreamToAnthropic()

    body = run(
        stream,
        chat_stream(chunk(content="x"), chunk("stop"), {"choices": [], "usage": usage}, DONE),
    )

    assert fold_anthropic(body)["usage"] == {
        "input_tokens": 12,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 5,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 2},
    }
    assert stream.usage == ReportedUsage(20, 7, 5, 3, 2)


def test_usage_that_never_comes_is_unknown() -> None:
    """Anthropic has no form for that, the Router's accounts have."""
    stream = ChatStreamToAnthropic()

    body = run(stream, chat_stream(chunk(content="x"), chunk("stop"), DONE))

    assert fold_anthropic(body)["usage"]["output_tokens"] == 0
    assert stream.usage is None


def test_end_waits_for_the_usage() -> None:
    """It comes behind the finish reason; then nothing more is waited for, or read."""
    stream = ChatStreamToAnthropic()

    assert data_of(stream.feed(chat_stream(chunk("stop", content="x"))))[-1]["type"] == (
        "content_block_delta"
    )
    assert not stream.is_complete
    assert data_of(stream.feed(chat_stream(USAGE)))[-1] == {"type": "message_stop"}
    assert stream.is_complete
    assert stream.feed(chat_stream(chunk(content="late"), DONE)) == b""
    assert stream.close() == b""


@pytest.mark.parametrize("last", [b"data: [DONE]", b"data: [DONE]\n", b""])
def test_stream_may_end_without_an_empty_line(last: bytes) -> None:
    """Or without `[DONE]`, once the backend has said why it finished."""
    message = fold_anthropic(
        run(ChatStreamToAnthropic(), chat_stream(chunk("stop", content="x")), last)
    )

    assert message["content"] == [{"type": "text", "text": "x"}]


def test_byte_order_mark_costs_no_text() -> None:
    """It may be in front of the first event, and only there."""
    body = "\ufeff".encode() + chat_stream(chunk(content="x"), chunk("stop", content="y"))

    message = fold_anthropic(run(ChatStreamToAnthropic(), body))

    assert message["content"] == [{"type": "text", "text": "xy"}]


def test_comments_of_the_backend_become_pings() -> None:
    """So that a client hears something while the model is slow; before the message, nothing."""
    stream = ChatStreamToAnthropic()

    assert stream.feed(b": PROCESSING\n\n") == b""
    stream.feed(chat_stream(chunk(content="x")))
    assert data_of(stream.feed(b": PROCESSING\n\n")) == [{"type": "ping"}]


def test_text_comes_in_several_forms() -> None:
    """As a string, as parts, and as a refusal; nothing opens a block but text."""
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": ""}]

    message = translated(
        chunk(**ROLE),
        chunk(content=""),
        chunk(content=None, reasoning_content=""),
        chunk(content="a"),
        chunk(content=parts),
        chunk(refusal="c"),
        chunk("stop"),
        DONE,
    )

    assert message["content"] == [{"type": "text", "text": "abc"}]
