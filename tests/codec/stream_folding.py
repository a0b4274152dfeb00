"""Streams as tests read and write them: cut anywhere, and put together as a client does."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

from hypothesis import strategies as st

from vsr.codec.sse import SseDecoder, SseEvent

CUTS = st.lists(st.integers(0, 10_000), max_size=8)


class Translation(Protocol):
    """What the codec's streams have in common."""

    def feed(self, chunk: bytes) -> bytes:
        """Return what goes out now."""

    def close(self) -> bytes:
        """Return what is left."""


def run(stream: Translation, *chunks: bytes) -> bytes:
    """Return all that comes out."""
    return b"".join([*map(stream.feed, chunks), stream.close()])


def cut(body: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return `body` in pieces."""
    places = sorted({0, len(body), *(place % (len(body) + 1) for place in cuts)})
    return [body[start:stop] for start, stop in pairwise(places)]


def events_of(body: bytes) -> list[SseEvent]:
    """Return the events; the bytes end behind one."""
    decoder = SseDecoder()
    events = decoder.feed(body)
    assert decoder.close() == b""
    return [event for event in events if event.data is not None]


def data_of(body: bytes) -> list[Any]:
    """Return the events' data, decoded but for `[DONE]`."""
    texts = [(event.data or b"").decode() for event in events_of(body)]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


def chat_stream(*chunks: dict[str, Any] | str) -> bytes:
    """Return chunks as a backend sends them."""
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def anthropic_stream(*events: dict[str, Any]) -> bytes:
    """Return events as Anthropic sends them."""
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
    ).encode()


def fold_anthropic(body: bytes) -> dict[str, Any]:
    """Put a message together; fails if its events are not in Anthropic's order."""
    events = data_of(body)
    assert [event.event for event in events_of(body)] == [event["type"] for event in events]
    start, *middle, delta, stop = [event for event in events if event["type"] != "ping"]
    assert [start["type"], delta["type"], stop] == [
        "message_start",
        "message_delta",
        {"type": "message_stop"},
    ]
    message: dict[str, Any] = start["message"]
    is_open = False
    for event in middle:
        is_start = event["type"] == "content_block_start"
        assert is_open is not is_start
        if is_start:
            message["content"].append(event["content_block"] | {"input_json": ""})
        assert event["index"] == len(message["content"]) - 1
        is_open = event["type"] != "content_block_stop"
        if event["type"] == "content_block_delta":
            _add_delta(message["content"][-1], event["delta"])
    assert not is_open
    for block in message["content"]:
        text = block.pop("input_json")
        if text:
            block["input"] = json.loads(text)
    message |= delta["delta"]
    message["usage"] |= delta["usage"]
    return message


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind, name = {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "input_json_delta": ("tool_use", "partial_json"),
    }[delta["type"]]
    assert block["type"] == kind
    assert delta[name]
    block["input_json" if kind == "tool_use" else name] += delta[name]


def fold_chat(body: bytes) -> dict[str, Any]:
    """Put a completion together; fails if its chunks are not of one stream, ended by `[DONE]`."""
    *chunks, done = data_of(body)
    assert done == "[DONE]"
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    usage: dict[str, Any] = {}
    if chunks[-1]["choices"] == []:
        usage = {"usage": chunks.pop()["usage"]}
    message: dict[str, Any] = {"role": None, "content": None}
    calls: list[dict[str, Any]] = []
    for chunk in chunks:
        assert "usage" not in chunk
        [choice] = chunk["choices"]
        assert (choice["finish_reason"] is None) is (chunk is not chunks[-1])
        for name, value in choice["delta"].items():
            if name == "tool_calls":
                _add_call(calls, *value)
            else:
                message[name] = (message.get(name) or "") + value
    if calls:
        message["tool_calls"] = calls
    last = chunks[-1]
    choice = {"index": 0, "message": message} | {
        "finish_reason": last["choices"][0]["finish_reason"]
    }
    completion = {name: last[name] for name in ("id", "created", "model")}
    return completion | usage | {"object": "chat.completion", "choices": [choice]}


def _add_call(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    index = delta.pop("index")
    if "id" in delta:
        assert index == len(calls)
        calls.append(delta)
    else:
        calls[index]["function"]["arguments"] += delta["function"]["arguments"]
