"""The Anthropic codec's streams against the reference's phase fixtures and parity records."""

import json
from typing import Any

import pytest
import yaml

from tests.codec.stream_folding import Translation, data_of, events_of, fold_anthropic, run
from tests.codec.test_anthropic_fixtures import CREATED, matches
from tests.reference_dir import reference_dir
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.anthropic.stream_to_chat import AnthropicStreamToChat


def _cases(name: str) -> list[dict[str, Any]]:
    path = reference_dir() / "phase-fixtures" / f"{name}.yaml"
    text = path.read_text(encoding="utf-8").replace("{$bind: cr}", str(CREATED))
    fixture: dict[str, Any] = yaml.safe_load(text)
    return [fixture | case for case in fixture.get("cases", [{"name": "only"}])]


def _chunk(given: dict[str, Any]) -> bytes:
    if "text" in given:
        return str(given["text"]).encode()
    texts = [entry if isinstance(entry, str) else json.dumps(entry) for entry in given["sse"]]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def _check(case: dict[str, Any], stream: Translation) -> None:
    sent = [stream.feed(_chunk(given)) for given in case["input"]["chunks"]]
    body = b"".join([*sent, stream.close()])

    expected = case["expect"]
    named = [
        {"event": event.event, "data": data}
        for event, data in zip(events_of(body), data_of(body), strict=True)
    ]
    assert matches(expected["events"], named), named
    counts = [len(events_of(piece)) for piece in sent]
    assert counts == expected.get("per_chunk", counts)


@pytest.mark.parametrize(
    "name", ["text-only", "preview-usage-and-usage-on-content", "text-then-tool"]
)
def test_chat_stream_becomes_what_the_fixture_says(name: str) -> None:
    """Events in the reference's order, at the chunk that brings them."""
    [case] = [case for case in _cases("27-chat-sse-to-anthropic-sse") if case["name"] == name]
    stream = ChatStreamToAnthropic(model=case["input"]["model"])

    _check(case, stream)

    assert stream.is_complete is case["expect"]["done"]


def test_anthropic_stream_becomes_what_the_fixture_says() -> None:
    """Only the usage, there with the finish reason, has a chunk of its own: field report S5."""
    [case] = _cases("28-anthropic-sse-to-chat-sse")
    events = case["expect"]["events"]
    at = next(index for index, event in enumerate(events) if "usage" in event["data"])
    usage = {"choices": [], "usage": events[at]["data"].pop("usage")}
    events.insert(at + 1, {"data": usage})
    if "per_chunk" in case["expect"]:
        case["expect"]["per_chunk"][-1] += 1
    stream = AnthropicStreamToChat(
        created=CREATED, include_usage=True, model=case["input"]["model"]
    )

    _check(case, stream)

    assert stream.is_complete is case["expect"]["done"]


def test_recorded_chat_stream_becomes_a_message() -> None:
    """The backend's chunks of `streaming-code-route`, read by read."""
    path = reference_dir() / "parity-corpus" / "cases.yaml"
    chunks = yaml.safe_load(path.read_text(encoding="utf-8"))["upstreams"]["chat-sse"]["chunks"]

    message = fold_anthropic(run(ChatStreamToAnthropic(), *map(str.encode, chunks)))

    assert message["id"] == "chatcmpl-parity"
    assert message["model"] == "upstream-model"
    assert message["content"] == [{"type": "text", "text": "Hello world."}]
    assert message["stop_reason"] == "end_turn"
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (9, 2)
