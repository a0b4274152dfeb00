"""Streams of a wired Router, asked for and read."""

from typing import Any

from tests.codec.stream_folding import data_of, fold_anthropic
from tests.demo.raw_client import Got
from tests.engine.stepped_backend import Steps
from tests.engine.wired import (
    ANTHROPIC_TO_OPENAI,
    OPENAI_TO_ANTHROPIC,
    Pair,
    Wired,
    chunked,
)

TEXT = "Hello y\u00f6u \u6f22 \U0001f600"
TRANSLATED = [ANTHROPIC_TO_OPENAI, OPENAI_TO_ANTHROPIC]


def text_of(pair: Pair, body: bytes) -> str:
    """Return the text of a whole stream in the client's protocol."""
    if pair.is_anthropic_client:
        message = fold_anthropic(body)
        assert message["stop_reason"] == "end_turn"
        return "".join(block["text"] for block in message["content"])
    chunks = [each for each in data_of(body)[:-1] if each["choices"]]
    deltas = [each["choices"][0]["delta"] for each in chunks]
    assert data_of(body)[-1] == "[DONE]"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    return "".join(delta.get("content") or "" for delta in deltas)


def usages_of(body: bytes) -> list[dict[str, Any]]:
    """Return the chunks of a chat stream that have a usage which is not null."""
    return [each for each in data_of(body)[:-1] if each.get("usage")]


async def ask_stream(
    wired: Wired, pair: Pair, steps: Steps | None = None, body: bytes | None = None
) -> Got:
    """Ask for a stream; the backend answers with these steps, or with all there is."""
    wired.backend(pair).steps = chunked(200, *pair.pieces) if steps is None else steps
    return await wired.ask(pair, pair.body(stream=True) if body is None else body)


def undated(body: bytes) -> list[Any]:
    """Return the events without the time at which a chunk was made."""
    events = data_of(body)
    for event in events:
        if isinstance(event, dict):
            event.pop("created", None)
    return events
