"""Chat streams that break off, fail or are malformed, as Anthropic streams."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.chat_chunks import DONE, FULL, chunk, failure, translated
from tests.codec.stream_folding import (
    CUTS,
    chat_stream,
    cut,
    data_of,
    events_of,
    fold_anthropic,
    run,
)
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic


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
