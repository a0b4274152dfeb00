"""Tool calls of chat completion chunks as blocks of an Anthropic stream."""

from typing import Any

import pytest

from tests.codec.chat_chunks import DONE, USAGE, call, chunk, failure, tool, translated
from tests.codec.stream_folding import chat_stream, data_of, run
from vsr.codec.anthropic.block_queue import MAX_HELD_BYTES
from vsr.codec.anthropic.call_deltas import MAX_CALLS, MAX_ID_BYTES
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic


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
