"""Anthropic streams that break off, fail or are malformed, as chat completion chunks."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.anthropic_events import (
    FULL,
    STOP,
    block,
    failure,
    finish,
    piece,
    start,
    tool,
    translated,
    translation,
)
from tests.codec.stream_folding import CUTS, anthropic_stream, cut, data_of, events_of, run
from vsr.codec.anthropic.stream_to_chat import MAX_OPEN_TOOLS


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
