"""Events of an Anthropic stream as tests write them, and what a chat client makes of them."""

from typing import Any

from tests.codec.stream_folding import anthropic_stream, data_of, fold_chat, run
from vsr.codec.anthropic.stream_to_chat import AnthropicStreamToChat

CREATED = 1_700_000_000
STOP = {"type": "message_stop"}
PING = {"type": "ping"}


def start(**usage: object) -> dict[str, Any]:
    """Return the message's start."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": []}
    return {"type": "message_start", "message": message | {"usage": usage}}


def block(index: int, kind: str, **members: object) -> dict[str, Any]:
    """Return a block's start."""
    content_block = {"type": kind} | members
    return {"type": "content_block_start", "index": index, "content_block": content_block}


def tool(index: int, call_id: str = "t0", **given: object) -> dict[str, Any]:
    """Return a tool block's start."""
    return block(index, "tool_use", id=call_id, name="f", input=given)


def delta(index: int, kind: str, **members: object) -> dict[str, Any]:
    """Return a piece of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | members}


def piece(index: int, text: str) -> dict[str, Any]:
    """Return a piece of a tool's input."""
    return delta(index, "input_json_delta", partial_json=text)


def stop(index: int) -> dict[str, Any]:
    """Return a block's end."""
    return {"type": "content_block_stop", "index": index}


def finish(stop_reason: str | None = "end_turn", **usage: object) -> dict[str, Any]:
    """Return the message's end, but for the last event."""
    reason = {"stop_reason": stop_reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": reason, "usage": usage}


def translation(
    *, include_usage: bool = True, model: str | None = None, max_event_bytes: int = 1 << 20
) -> AnthropicStreamToChat:
    """Return a translation for a client that asks for the usage."""
    return AnthropicStreamToChat(
        created=CREATED, include_usage=include_usage, model=model, max_event_bytes=max_event_bytes
    )


def translated(*events: dict[str, Any]) -> dict[str, Any]:
    """Return the message that a client puts together."""
    completion = fold_chat(run(translation(), anthropic_stream(*events)))
    message: dict[str, Any] = completion["choices"][0]["message"]
    return message


def failure(*events: dict[str, Any]) -> dict[str, Any]:
    """Return the error that a stream ends in."""
    stream = translation()
    chunks = data_of(run(stream, anthropic_stream(*events)))
    assert "[DONE]" not in chunks
    assert not stream.is_complete
    error: dict[str, Any] = chunks[-1]["error"]
    return error


FULL = (
    start(input_tokens=10, cache_read_input_tokens=4, output_tokens=1),
    block(0, "thinking", thinking="", signature=""),
    PING,
    delta(0, "thinking_delta", thinking="Hm ü🙂"),
    delta(0, "signature_delta", signature="s=="),
    stop(0),
    block(1, "redacted_thinking", data="x"),
    stop(1),
    block(2, "text", text="A"),
    delta(2, "text_delta", text=" b\u2028\n"),
    delta(2, "text_delta", text=""),
    stop(2),
    block(3, "server_tool_use", id="s", name="web_search", input={}),
    piece(3, '{"query":1}'),
    stop(3),
    tool(4, "t0"),
    piece(4, ""),
    piece(4, '{"a":'),
    piece(4, ' "\\""}'),
    stop(4),
    tool(5, "t1"),
    stop(5),
    tool(6, "t2", b=[1]),
    piece(6, '{"b":[1]}'),
    stop(6),
    finish("tool_use", output_tokens=7),
    STOP,
)
