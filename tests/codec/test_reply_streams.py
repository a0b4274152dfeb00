"""The answer of a request graph as an event stream."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vsr.codec.chat_reply import ReplyUsage, ToolCall, read_reply
from vsr.codec.chat_stream import read_payloads
from vsr.codec.reply_forms import Answer
from vsr.codec.reply_streams import (
    first_call,
    pass_stream,
    received_calls,
    stream_calls,
    stream_choices,
    stream_content,
)
from vsr.errors import GraphFailed

_USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 4}
_HEAD = {"id": "i", "object": "chat.completion.chunk", "created": 7, "model": "m"}


def _answer(
    *contents: str, extra: dict[str, object] | None = None, shows_usage: bool = False
) -> Answer:
    return Answer(
        id="i",
        created=7,
        model="m",
        contents=contents,
        usage=ReplyUsage(1, 2, 4),
        extra=extra or {},
        shows_usage=shows_usage,
    )


def _events(stream: bytes) -> list[object]:
    *events, done = stream.removesuffix(b"\n\n").split(b"\n\n")
    assert done == b"data: [DONE]"
    return [json.loads(event.removeprefix(b"data: ")) for event in events]


def _one(delta: object, reason: str | None = None, **more: object) -> dict[str, object]:
    return {**_HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


def test_stream_content_is_cut_by_characters() -> None:
    """The extra member stands on the first chunk only; pieces have 50 characters, not bytes."""
    stream = stream_content(_answer("é" * 50 + "ab", extra={"trace": [1]}))

    assert _events(stream) == [
        _one({"role": "assistant"}, trace=[1]),
        _one({"content": "é" * 50}),
        _one({"content": "ab"}),
        _one({}, "stop"),
    ]


def test_stream_content_may_be_whole() -> None:
    """Some graphs send their answer in one chunk."""
    stream = stream_content(_answer("a" * 120), piece_characters=None)

    assert _events(stream)[1:-1] == [_one({"content": "a" * 120})]


@pytest.mark.parametrize("contents", [(), ("",)])
def test_stream_of_no_content_has_no_content_chunk(contents: tuple[str, ...]) -> None:
    """Role and end still come."""
    stream = stream_content(_answer(*contents), piece_characters=None)

    assert _events(stream) == [_one({"role": "assistant"}), _one({}, "stop")]


def test_usage_chunk_comes_last_if_shown() -> None:
    """It has no choice, so that no client takes it for content."""
    stream = stream_content(_answer("a", shows_usage=True))

    assert _events(stream)[-1] == {**_HEAD, "choices": [], "usage": _USAGE}


def test_stream_calls_has_all_calls_in_one_chunk() -> None:
    """Calls go as they came, each with its index; the end says why."""
    calls: list[dict[str, object]] = [
        {"id": "1", "x": 1.5, "function": {"name": "f", "arguments": "{}"}},
        {"id": "2"},
    ]
    body = json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode()

    stream = stream_calls(_answer("not sent", extra={"trace": 1}), received_calls(body))

    assert _events(stream) == [
        _one({"role": "assistant"}, trace=1),
        _one({"tool_calls": [{"index": 0, **calls[0]}, {"index": 1, **calls[1]}]}),
        _one({}, "tool_calls"),
    ]


def test_received_calls_are_numbered_by_place() -> None:
    """A number that a backend put into a call of a whole answer does not count."""
    calls = [{"index": 5}, {"index": 5}]
    body = json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode()

    assert [call["index"] for call in received_calls(body)] == [0, 1]


@pytest.mark.parametrize(
    "message", [{}, {"tool_calls": []}, {"function_call": {"name": "f", "arguments": "{}"}}]
)
def test_received_calls_refuses_the_older_form(message: object) -> None:
    """A call in the older form has no chunk of this kind, so the run fails."""
    with pytest.raises(GraphFailed, match="no tool calls that could be streamed"):
        received_calls(json.dumps({"choices": [{"message": message}]}).encode())


@pytest.mark.parametrize(
    ("call", "call_id", "arguments"),
    [(ToolCall("c", "f", '{"a":1}'), "c", '{"a":1}'), (ToolCall(" ", "f", " "), "fresh", "{}")],
)
def test_first_call_fills_in_what_is_blank(call: ToolCall, call_id: str, arguments: str) -> None:
    """Clients need an id to answer to and JSON to read."""
    assert first_call(call, fresh_id="fresh") == [
        {
            "index": 0,
            "id": call_id,
            "type": "function",
            "function": {"name": "f", "arguments": arguments},
        }
    ]


def test_stream_choices_go_side_by_side() -> None:
    """Every chunk has every choice, and no reason to finish before the last one."""
    stream = stream_choices(_answer("a" * 60, "b"))

    assert _events(stream) == [
        {**_HEAD, "choices": [{"index": at, "delta": {"role": "assistant"}} for at in (0, 1)]},
        {**_HEAD, "choices": [_text(0, "a" * 50), _text(1, "b")]},
        {**_HEAD, "choices": [_text(0, "a" * 10), _text(1, "")]},
        {
            **_HEAD,
            "choices": [{"index": at, "delta": {}, "finish_reason": "stop"} for at in (0, 1)],
        },
    ]


def _text(index: int, text: str) -> dict[str, object]:
    return {"index": index, "delta": {"content": text}}


@settings(max_examples=50)
@given(st.lists(st.text(alphabet="aé€😀", max_size=120), max_size=3))
@example(["a" + "é" * 30, "ab" + "😀" * 20])
def test_stream_choices_cuts_no_character(contents: list[str]) -> None:
    """The pieces are the contents again, none above 50 bytes."""
    rows = [event["choices"] for event in _events(stream_choices(_answer(*contents)))]  # type: ignore[index]
    pieces = [[choice["delta"]["content"] for choice in row] for row in rows[1:-1]]

    assert ["".join(column) for column in zip(*pieces, strict=True)] == contents or not any(
        contents
    )
    assert all(len(piece.encode()) <= 50 for row in pieces for piece in row)
    assert all(any(row) for row in pieces)


@settings(max_examples=30)
@given(st.text(max_size=130), st.sampled_from([None, 1, 50]))
def test_a_stream_reads_as_its_content(content: str, size: int | None) -> None:
    """Whoever joins the chunks has the answer, whatever characters are in it."""
    stream = stream_content(_answer(content), piece_characters=size)

    assert read_reply("m", stream, is_stream=True).content == content


def _upstream(*payloads: object) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\r\n\r\n" for payload in payloads)


def test_pass_stream_replaces_the_usage() -> None:
    """Chunks stay the backend's but for their usage; the sum comes under the last id seen."""
    first = {"id": "u1", "created": 3, "model": "up", "choices": [{"delta": {"content": "a"}}]}
    last = {"id": "u2", "created": 4, "model": "up", "choices": [], "usage": {"total_tokens": 9}}
    body = _upstream({**first, "usage": None}, first, last) + b"data: [DONE]\n\n"

    stream = pass_stream(_answer(shows_usage=True), body)

    assert _events(stream) == [
        first,
        first,
        {**_HEAD, "id": "u2", "created": 4, "choices": [], "usage": _USAGE},
    ]
    assert _events(pass_stream(_answer(), body)) == [first, first]


def test_pass_stream_without_upstream_ids_has_its_own() -> None:
    """The usage chunk needs an id even if no chunk named one."""
    stream = pass_stream(_answer(shows_usage=True), _upstream({"choices": [{}]}))

    assert _events(stream)[-1] == {**_HEAD, "choices": [], "usage": _USAGE}


def test_pass_stream_keeps_what_it_cannot_read() -> None:
    """Comments and names of events keep their line, broken data its event; blank lines do not."""
    body = b": hi\r\n\r\n\r\nevent: x\r\ndata:{broken\r\n\r\ndata: {} \n\ndata: [DONE]\n\ndata: 5"

    assert pass_stream(_answer(), body) == (
        b": hi\nevent: x\ndata: {broken\n\ndata: {} \n\ndata: 5\n\ndata: [DONE]\n\n"
    )


def test_pass_stream_ends_once() -> None:
    """Whether the backend ended its stream or not, the client sees one end."""
    for ending in (b"", b"data: [DONE]\n\n", b"data:[DONE]\n\ndata: [DONE]"):
        stream = pass_stream(_answer(), _upstream({"choices": [{}]}) + ending)

        assert read_payloads(stream).count(b"[DONE]") == 1
