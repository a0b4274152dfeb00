"""Translated streams as the official clients read them."""

import json
from collections.abc import Iterator

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message, TextBlock, ThinkingBlock, ToolUseBlock

from tests.codec.anthropic_events import FULL as ANTHROPIC
from tests.codec.chat_chunks import FULL as CHAT
from tests.codec.stream_folding import anthropic_stream, chat_stream, run
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.anthropic.stream_to_chat import AnthropicStreamToChat

CREATED = 1_700_000_000
ERROR = b'data: {"error":{"message":"no room","type":"x","code":503}}\n\n'
ANTHROPIC_ERROR = (
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no room"}}'
    b"\n\n"
)


def _transport(body: bytes) -> httpx2.MockTransport:
    def answer(request: httpx2.Request) -> httpx2.Response:
        pieces: Iterator[bytes] = (body[at : at + 7] for at in range(0, len(body), 7))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces)

    return httpx2.MockTransport(answer)


def _message(chat: bytes) -> Message:
    """Return what the Anthropic client makes of a chat stream."""
    body = run(ChatStreamToAnthropic(model="shown"), chat)
    http = httpx2.Client(transport=_transport(body))
    with (
        anthropic.Anthropic(api_key="k", max_retries=0, http_client=http) as client,
        client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
        ) as stream,
    ):
        return stream.get_final_message()


def test_anthropic_client_reads_a_translated_chat_stream() -> None:
    """Thinking, text, calls with their arguments, usage and stop reason."""
    message = _message(chat_stream(*CHAT))

    thinking, text, first, second = message.content
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.thinking == "Hm, ü🙂"
    assert isinstance(text, TextBlock)
    assert text.text == "Let me\n\u2028"
    assert isinstance(first, ToolUseBlock)
    assert (first.id, first.name, first.input) == ("t0", "get", {"a": '}"{'})
    assert isinstance(second, ToolUseBlock)
    assert (second.id, second.name, second.input) == ("t1", "set", {"b": [1, {}]})
    assert (message.id, message.model, message.stop_reason) == ("c1", "shown", "tool_use")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (9, 4)


@pytest.mark.parametrize(
    ("last", "text"), [(ERROR, "no room"), (b"", "ended before")], ids=["error", "truncated"]
)
@pytest.mark.parametrize("count", [0, 5])
def test_anthropic_client_raises_when_the_stream_fails(last: bytes, text: str, count: int) -> None:
    """Before the first chunk and after some: a half message is never returned."""
    with pytest.raises(anthropic.APIStatusError, match=text):
        _message(chat_stream(*CHAT[:count]) + last)


def _chunks(events: bytes) -> list[openai.types.chat.ChatCompletionChunk]:
    """Return what the OpenAI client makes of an Anthropic stream."""
    stream = AnthropicStreamToChat(created=CREATED, include_usage=True, model="shown")
    http = httpx2.Client(transport=_transport(run(stream, events)))
    with openai.OpenAI(api_key="k", max_retries=0, http_client=http) as client:
        return list(
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            )
        )


def test_openai_client_reads_a_translated_anthropic_stream() -> None:
    """Text, calls with their arguments, usage and finish reason."""
    chunks = _chunks(anthropic_stream(*ANTHROPIC))

    *chunks, last = chunks
    deltas = [chunk.choices[0].delta for chunk in chunks]
    arguments = ["", "", ""]
    for call in (call for delta in deltas for call in delta.tool_calls or ()):
        assert call.function is not None
        arguments[call.index] += call.function.arguments or ""
    assert "".join(delta.content or "" for delta in deltas) == "A b\u2028\n"
    assert [json.loads(text) for text in arguments] == [{"a": '"'}, {}, {"b": [1]}]
    assert {(chunk.id, chunk.model, chunk.created) for chunk in chunks} == {
        ("msg_1", "shown", CREATED)
    }
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "tool_calls"]
    assert last.choices == []
    usage = last.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (14, 7, 21)
    assert usage.prompt_tokens_details.cached_tokens == 4


@pytest.mark.parametrize(
    ("last", "text"),
    [(ANTHROPIC_ERROR, "no room"), (b"", "ended before")],
    ids=["error", "truncated"],
)
@pytest.mark.parametrize("count", [0, 5])
def test_openai_client_raises_when_the_stream_fails(last: bytes, text: str, count: int) -> None:
    """Before the first event and after some."""
    with pytest.raises(openai.APIError, match=text):
        _chunks(anthropic_stream(*ANTHROPIC[:count]) + last)
