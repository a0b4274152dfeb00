"""Chat completion chunks as an Anthropic stream."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.stream_folding import (
    CUTS,
    chat_stream,
    cut,
    data_of,
    events_of,
    fold_anthropic,
    run,
)
from vsr.codec.anthropic.block_queue import MAX_HELD_BYTES
from vsr.codec.anthropic.call_deltas import MAX_CALLS, MAX_ID_BYTES
from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.stream_usage import ReportedUsage

USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
ROLE = {"role": "assistant", "content": "", "refusal": None, "tool_calls": None}
DONE = "[DONE]"


def chunk(finish_reason: str | None = None, **delta: object) -> dict[str, Any]:
    """Return a chunk of the one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "up", "choices": [choice]}


def call(
    index: int | None = 0,
    call_id: str | None = None,
    name: str | None = None,
    arguments: object = None,
) -> dict[str, Any]:
    """Return a chunk with a piece of a tool call; None is left out."""
    function = {"name": name, "arguments": arguments}
    piece: dict[str, Any] = {"index": index, "id": call_id}
    piece = {member: value for member, value in piece.items() if value is not None}
    piece["function"] = {name: value for name, value in function.items() if value is not None}
    return chunk(tool_calls=[piece])


def tool(call_id: str, name: str, **given: object) -> dict[str, Any]:
    """Return the block that a call becomes."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def translated(*chunks: dict[str, Any] | str) -> dict[str, Any]:
    """Return the message that a client puts together."""
    return fold_anthropic(run(ChatStreamToAnthropic(), chat_stream(*chunks)))


def failure(*chunks: dict[str, Any] | str) -> dict[str, Any]:
    """Return the error that a stream ends in."""
    stream = ChatStreamToAnthropic()
    body = run(stream, chat_stream(*chunks))
    *before, last = events_of(body)
    assert last.event == "error"
    assert "message_stop" not in [event.event for event in before]
    assert not stream.is_complete
    error: dict[str, Any] = json.loads(last.data or b"")
    assert error["type"] == "error"
    inner: dict[str, Any] = error["error"]
    return inner


FULL = (
    chunk(**ROLE),
    chunk(reasoning_content="Hm, "),
    chunk(reasoning_content="ü🙂"),
    chunk(content="Let "),
    chunk(content="me\n\u2028"),
    call(0, "t0", "get", ""),
    call(0, arguments='{"a":"}'),
    call(1, "t1", "set", '{"b":[1,{}]}'),
    call(0, arguments='\\"{"}'),
    chunk("tool_calls"),
    USAGE,
    DONE,
)
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


def test_next_call_begins_when_the_one_before_is_whole() -> None:
    """Calls that come in turn are streamed, not kept until the end."""
    stream = ChatStreamToAnthropic()
    stream.feed(chat_stream(call(0, "t0", "f", '{"a":1}')))

    begun = stream.feed(chat_stream(call(1, "t1", "g", '{"b"')))
    more = stream.feed(chat_stream(call(1, arguments=":2}")))

    assert [event["type"] for event in data_of(begun)] == [
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
    ]
    assert data_of(more)[0]["delta"]["partial_json"] == ":2}"


ONE = [tool("t0", "f", a=1)]
TWO = [*ONE, tool("t1", "g", b=2)]


@pytest.mark.parametrize(
    ("pieces", "content"),
    [
        pytest.param([call(0, "t0", "f", '{"a":1}')], ONE, id="in one chunk"),
        pytest.param(
            [call(0, "t0", "f", " "), call(0, arguments=' {"a":1}')], ONE, id="space in front"
        ),
        pytest.param([call(0, "t0", "f")], [tool("t0", "f")], id="no arguments"),
        pytest.param([call(0, "t0", "f", "")], [tool("t0", "f")], id="empty arguments"),
        pytest.param(
            [call(0, "t0", "f", ""), call(1, "t1", "g", ""), call(1, arguments='{"b":2}')],
            [tool("t0", "f"), TWO[1]],
            id="first of two without arguments",
        ),
        pytest.param(
            [call(0, "t0", "f", '{"a":1}'), call(0, "t1", "g", '{"b":2}')],
            TWO,
            id="one index for all, whole",
        ),
        pytest.param(
            [
                call(0, "t0", "f", '{"a"'),
                call(0, arguments=":1}"),
                call(0, "t1", "g", '{"b"'),
                call(0, arguments=":2}"),
            ],
            TWO,
            id="one index for all, in pieces",
        ),
        pytest.param(
            [
                call(0, "t0", "f", '{"a":1}'),
                call(1, "t1", "g", ""),
                call(0, arguments='{"b":'),
                call(0, arguments="2}"),
            ],
            TWO,
            id="later pieces have the first index",
        ),
        pytest.param(
            [call(0, "t0", "f", ""), call(1, arguments='{"a"'), call(2, arguments=":1}")],
            ONE,
            id="index counts the pieces",
        ),
        pytest.param(
            [
                call(None, "t0", "f", '{"a"'),
                call(None, arguments=":1}"),
                call(None, "t1", "g", '{"b":2}'),
            ],
            TWO,
            id="no index",
        ),
        pytest.param(
            [call(None, "t0", "f", ""), call(None, "t1", "g", ""), call(None, "t0", None, "{}")],
            [tool("t0", "f"), tool("t1", "g")],
            id="no index, mixed by id",
        ),
        pytest.param(
            [
                call(0, "t0", "f", '{"a"'),
                call(1, "t1", "g", '{"b"'),
                call(0, "t0", "f", ":1}"),
                call(1, "t1", "g", ":2}"),
            ],
            TWO,
            id="id and name in each piece",
        ),
        pytest.param(
            [call(0, "t0", "f", '{"a"'), call(0, "x", "", ":1"), call(0, "y", None, "}")],
            ONE,
            id="an id made up for each piece",
        ),
        pytest.param(
            [call(0, "t0"), call(0, None, "f"), call(0, None, None, '{"a":1}')],
            ONE,
            id="id, name and arguments in turn",
        ),
        pytest.param(
            [call(0, "t0", "f", '{"a":1}'), call(0, arguments="\n"), call(0, arguments="{}")],
            ONE,
            id="more behind the end",
        ),
        pytest.param(
            [call(0, "t", "f", '{"a":1}'), call(1, "t", "f", '{"b":2}')],
            [tool("t", "f", a=1), tool("t", "f", b=2)],
            id="one id for all",
        ),
    ],
)
def test_pieces_of_calls_find_their_call(
    pieces: list[dict[str, Any]], content: list[dict[str, Any]]
) -> None:
    """Backends number them wrongly, or not at all, in all these ways."""
    message = translated(*pieces, chunk("tool_calls"), DONE)

    assert message["content"] == content
    assert message["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    "pieces",
    [
        [call(0, "t0", "f", '{"a":')],
        [call(0, "t0", "f", '"a"')],
        [call(0, "t0", "f", "[]")],
        [call(0, "t0", "f", {"a": 1})],
        [call(0, "t0", None, "{}")],
        [call(0, None, "f", "{}")],
        [call(0, arguments="{}")],
        [call(0, "t0", "f", "{}"), call(0, None, "g", "{}")],
    ],
)
def test_malformed_call_is_an_error(pieces: list[dict[str, Any]]) -> None:
    """No client runs a tool with half of its input, or misses a call."""
    error = failure(*pieces, chunk("tool_calls"), USAGE, DONE)

    assert error == {
        "type": "api_error",
        "message": "the backend's answer has a malformed tool call",
    }


def test_call_that_the_token_limit_cut_off_ends_the_message() -> None:
    """The stop reason tells; a call that has no id yet is left out."""
    body = run(
        ChatStreamToAnthropic(),
        chat_stream(call(0, "t0", "f", '{"a":'), call(1, None, "g"), chunk("length"), DONE),
    )

    *_, stop, delta, end = data_of(body)
    assert stop == {"type": "content_block_stop", "index": 0}
    assert delta["delta"]["stop_reason"] == "max_tokens"
    assert end == {"type": "message_stop"}


def test_what_must_wait_is_bounded() -> None:
    """Pieces behind a call that does not end are kept up to a limit, then it is an error."""
    piece = call(1, arguments="x" * 1000)
    pieces = [piece] * (MAX_HELD_BYTES // 1000 + 1)

    error = failure(call(0, "t0", "f", "{"), call(1, "t1", "g", "{"), *pieces, DONE)

    assert "mixes too much" in error["message"]


def test_what_has_waited_frees_its_room() -> None:
    """The limit is on what waits at one time."""
    size = MAX_HELD_BYTES // 2
    pieces = []
    for at in range(0, 6, 2):
        pieces += [call(at, f"t{at}", "f", "{"), call(at + 1, f"t{at + 1}", "f", '{"b":"')]
        pieces += [call(at + 1, arguments="x" * size), call(at, arguments="}")]
        pieces += [call(at + 1, arguments='"}')]

    message = translated(*pieces, chunk("tool_calls"), DONE)

    assert len(message["content"]) == 6


@pytest.mark.parametrize(
    "pieces",
    [
        [call(at, f"t{at}", "f", "{}") for at in range(MAX_CALLS + 1)],
        [call(0, "t" * MAX_ID_BYTES, "f", "{}")],
        [call(0, "t0", "f" * MAX_ID_BYTES, "{}")],
    ],
)
def test_calls_are_bounded(pieces: list[dict[str, Any]]) -> None:
    """No backend makes the Router remember what it likes."""
    error = failure(*pieces, chunk("tool_calls"), DONE)

    assert "too" in error["message"]


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


@settings(max_examples=50)
@given(place=st.integers(0, 10_000), cuts=CUTS)
def test_stream_that_is_cut_off_ends_in_an_error(place: int, cuts: list[int]) -> None:
    """Wherever it is cut in front of its finish reason, no client takes it for whole."""
    whole = chat_stream(*FULL[:-3])
    body = whole[: place % len(whole)]
    stream = ChatStreamToAnthropic()

    out = run(stream, *cut(body, cuts))

    names = [event.event for event in events_of(out)]
    assert names.count("error") == 1
    assert names[-1] == "error"
    assert "message_stop" not in names
    assert not stream.is_complete
    assert out == run(ChatStreamToAnthropic(), body)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            'data: {"error":{"message":"m","type":"x","code":503}}\n\n',
            {"type": "overloaded_error", "message": "m"},
        ),
        (
            'data: {"object":"error","message":"m","code":400}\n\n',
            {"type": "invalid_request_error", "message": "m"},
        ),
        ('event: error\ndata: {"message":"m"}\n\n', {"type": "api_error", "message": "m"}),
        ("event: error\ndata: m\n\n", {"type": "api_error", "message": "m"}),
        ('data: {"error":"m"}\n\n', {"type": "api_error", "message": "m"}),
        (
            '{\n"error": {"message":"m",\n"code":"429"}}\n\n',
            {"type": "rate_limit_error", "message": "m"},
        ),
        ('{"error":{"message":"m","code":9}}\n\n', {"type": "api_error", "message": "m"}),
        (
            'data: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n',
            {"type": "overloaded_error", "message": "m"},
        ),
    ],
)
@pytest.mark.parametrize("before", [(), (chunk(content="x"),)])
def test_error_of_the_backend_is_the_last_event(
    event: str, expected: dict[str, str], before: tuple[dict[str, Any], ...]
) -> None:
    """In each form that backends have for it, and however they go on."""
    stream = ChatStreamToAnthropic()

    body = run(stream, chat_stream(*before), event.encode(), chat_stream(chunk("stop"), DONE))

    last = events_of(body)[-1]
    assert last.event == "error"
    assert json.loads(last.data or b"") == {"type": "error", "error": expected}
    assert not stream.is_complete


def test_error_at_the_end_needs_no_empty_line() -> None:
    """A server that fails writes its error's JSON and nothing else."""
    body = run(
        ChatStreamToAnthropic(), chat_stream(chunk(content="x")), b'{"error":{"message":"m"}}'
    )

    assert data_of(body)[-1]["error"]["message"] == "m"


@pytest.mark.parametrize("error", [None, {}, "", False])
def test_error_member_that_says_nothing_is_none(error: object) -> None:
    """Some backends have it in every chunk."""
    message = translated(chunk(content="x") | {"error": error}, chunk("stop"), DONE)

    assert message["content"] == [{"type": "text", "text": "x"}]


def test_finish_reason_error_is_an_error() -> None:
    """It is how a router of this kind says it in a chat stream."""
    assert failure(chunk(content="x"), chunk("error"), DONE)["type"] == "api_error"


def test_stream_without_an_answer_is_an_error() -> None:
    """`[DONE]` alone is no message."""
    assert "no answer" in failure(DONE)["message"]
    assert failure()["type"] == "api_error"


@given(cuts=CUTS)
def test_event_over_the_bound_is_an_error_in_any_split(cuts: list[int]) -> None:
    """What came before it was sent, what comes behind it is not read."""
    body = chat_stream(chunk(content="x"), chunk(content="y" * 500), chunk("stop"), DONE)
    stream = ChatStreamToAnthropic(max_event_bytes=300)

    events = data_of(run(stream, *cut(body, cuts)))

    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "error",
    ]
    assert not stream.is_complete


def test_comments_of_the_backend_become_pings() -> None:
    """So that a client hears something while the model is slow; before the message, nothing."""
    stream = ChatStreamToAnthropic()

    assert stream.feed(b": PROCESSING\n\n") == b""
    stream.feed(chat_stream(chunk(content="x")))
    assert data_of(stream.feed(b": PROCESSING\n\n")) == [{"type": "ping"}]


@pytest.mark.parametrize(
    "event",
    [
        "data: {",
        "data: 7",
        "data:",
        "data: {}",
        "event: x",
        "event: x\nid: 1",
        "event: x\nid: 1\ndata: {}",
        'data: {"a":"\\ud83d',
        'data: {"choices":null}',
        'data: {"choices":[{"index":1,"delta":{"content":"n"}}]}',
        'data: {"choices":[{"delta":null}]}',
        'data: {"choices":[{}]}',
        'data: {"choices":7}',
        'data: {"choices":[{"delta":{"content":7}}]}',
        "data: " + '{"a":' * 5000,
    ],
)
def test_what_is_no_content_changes_nothing(event: str) -> None:
    """Malformed chunks are passed over."""
    chunks = [chat_stream(chunk(content="x")), f"{event}\n\n".encode()]

    message = fold_anthropic(
        run(ChatStreamToAnthropic(), *chunks, chat_stream(chunk(content="y"), chunk("stop"), DONE))
    )

    assert message["content"] == [{"type": "text", "text": "xy"}]


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


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (rb"\ud83d\ude42", "🙂"),
        (rb"a\ud83d", "a\ufffd"),
        (rb"\ude42\\ud83d", "\ufffd\\ud83d"),
        (b"\xff", "\ufffd"),
        (rb"\u0000\/", "\0/"),
    ],
)
def test_characters_that_are_none_do_not_lose_the_text(literal: bytes, text: str) -> None:
    """A backend may cut a character in two; what is left is replaced, as decoders do."""
    body = b'data: {"choices":[{"delta":{"content":"' + literal + b'"}}]}\n\n'

    message = fold_anthropic(run(ChatStreamToAnthropic(), body, chat_stream(chunk("stop"), DONE)))

    assert message["content"] == [{"type": "text", "text": text}]
