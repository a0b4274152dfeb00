"""Chat completion chunks as tests write them, and what an Anthropic client makes of them."""

import json
from typing import Any

from tests.codec.stream_folding import chat_stream, events_of, fold_anthropic, run
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic

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
