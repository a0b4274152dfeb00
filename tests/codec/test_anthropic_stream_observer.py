"""An Anthropic stream that passes unchanged while its usage is read."""

import pytest
from hypothesis import given, settings

from tests.codec.stream_folding import CUTS, anthropic_stream, cut
from vsr.codec.anthropic.stream_observer import AnthropicStreamObserver
from vsr.codec.stream_usage import ReportedUsage

MESSAGE = {"id": "m", "usage": {"input_tokens": 3, "cache_read_input_tokens": 2}}
START = {"type": "message_start", "message": MESSAGE}
TEXT = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": '"usage" and message_stop, ü🙂'},
}
END = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 1}},
}
STOP = {"type": "message_stop"}
KNOWN = ReportedUsage(5, 5, 2, None, 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@settings(max_examples=25)
@given(cuts=CUTS)
def test_every_byte_passes_at_once_and_the_usage_is_read(end: str, cuts: list[int]) -> None:
    """In any split, with comments, a byte order mark and data of several lines."""
    text = "\ufeff" + anthropic_stream(START, {"type": "ping"}, TEXT, END).decode() + ": x\n\n"
    text = text.replace(', "delta"', ',\ndata: "delta"') + anthropic_stream(STOP).decode()
    stream = AnthropicStreamObserver()

    for piece in cut(text.replace("\n", end).encode(), cuts):
        assert stream.feed(piece) == piece
    assert stream.close() == b""

    assert stream.usage == KNOWN
    assert stream.is_complete


def test_events_in_one_read_each_are_enough() -> None:
    """The usual case, in which most are not looked into."""
    stream = AnthropicStreamObserver()

    for event in (START, {"type": "ping"}, TEXT, END):
        stream.feed(anthropic_stream(event))

    assert stream.usage == KNOWN
    assert not stream.is_complete


def test_first_event_may_be_small_before_the_usage_comes() -> None:
    """A stream cut between its events: the output is unknown, and the message not whole."""
    stream = AnthropicStreamObserver()

    assert stream.usage is None
    stream.feed(anthropic_stream({"type": "ping"}))
    stream.feed(anthropic_stream(START))
    stream.close()

    assert stream.usage == ReportedUsage(5, None, 2)
    assert not stream.is_complete


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
def test_last_event_needs_no_empty_line(end: bytes) -> None:
    """Some backends do not end their last line."""
    stream = AnthropicStreamObserver()

    stream.feed(anthropic_stream(START, END, STOP).removesuffix(b"\n\n") + end)
    stream.close()

    assert stream.is_complete


@given(cuts=CUTS)
def test_event_over_the_bound_passes_unread(cuts: list[int]) -> None:
    """Memory is bounded; what comes behind it is read again."""
    big = START | {"padding": "x" * 500}
    body = anthropic_stream(big, END, STOP)
    stream = AnthropicStreamObserver(max_event_bytes=300)

    assert b"".join(map(stream.feed, cut(body, cuts))) == body

    assert stream.usage == ReportedUsage(None, 5, reasoning_tokens=1)
    assert stream.is_complete


@pytest.mark.parametrize(
    "event",
    [
        'data: {"usage":',
        'data: ["usage"]',
        'data: {"type":"message_delta","usage":7}',
        'data: {"type":"message_start","message":{"usage":[]}}',
        'data: {"type":"message_start","usage":{"input_tokens":1}}',
        'data: {"type":"message_delta","usage":{"\xff":1}}',
        'data: {"type":"message_delta","usage":{"output_tokens":null}}',
        'data: {"type":"x","usage":{"output_tokens":1}}',
        'data: {"type":"x","usage":"message_stop"}',
        'event: "usage"',
    ],
)
def test_what_is_no_usage_stays_unknown(event: str) -> None:
    """Malformed events are the client's to see; they never raise."""
    stream = AnthropicStreamObserver()
    body = f"{event}\n\n".encode("latin-1")

    assert stream.feed(body) == body

    assert stream.usage is None
    assert not stream.is_complete
