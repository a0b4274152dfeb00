"""A buffered Anthropic answer as a chat completion.

Source: the reference's rules "Buffered responses", and its parity record
`auto-essay-anthropic-backend` where they differ.
"""

from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.json_value import (
    JsonValue,
    UntranslatableResponse,
    is_text,
    joined,
    text_of,
)
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

Members = Mapping[str, msgspec.Raw]

FINISH_REASONS = {"max_tokens": "length", "tool_use": "tool_calls"}


def anthropic_response_to_chat(body: bytes, *, created: int, model: str | None = None) -> bytes:
    """Translate a message; all its thinking is `reasoning_content`, other blocks have no place.

    Args:
        body: of an answer with a status of success.
        created: Unix seconds.
        model: shown in place of the backend's.

    Raises:
        UntranslatableResponse: `body` is no message.
    """
    try:
        return _completion(body, created, model)
    except InvalidRequest as error:  # the strict decoder's name for any malformed JSON
        raise UntranslatableResponse("the backend's answer is not JSON") from error


def _completion(body: bytes, created: int, model: str | None) -> bytes:
    members = read_members(body)
    blocks = None if members is None else read_entries(members.get("content", NULL))
    if members is None or blocks is None:
        raise UntranslatableResponse("the backend's answer is not a message")
    message = _message(blocks)
    finish_reason = FINISH_REASONS.get(read_string(members.get("stop_reason", NULL)) or "", "stop")
    if finish_reason == "stop" and "tool_calls" in message:
        finish_reason = "tool_calls"
    chat: dict[str, JsonValue] = {
        "id": members.get("id", NULL),
        "object": "chat.completion",
        "created": created,
        "model": members.get("model", NULL) if model is None else model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    usage = chat_usage(read_members(members.get("usage", NULL)) or {})
    if usage is not None:
        chat["usage"] = usage
    return msgspec.json.encode(chat)


def _message(blocks: list[msgspec.Raw]) -> dict[str, JsonValue]:
    texts: list[msgspec.Raw] = []
    thoughts: list[msgspec.Raw] = []
    calls: list[JsonValue] = []
    for block in blocks:
        members = read_members(block) or {}
        match read_string(members.get("type", NULL)):
            case "text" if is_text(members.get("text")):
                texts.append(members["text"])
            case "thinking" if is_text(members.get("thinking")):
                thoughts.append(members["thinking"])
            case "tool_use":
                calls.append(_tool_call(members))
    message: dict[str, JsonValue] = {
        "role": "assistant",
        "content": joined(texts) if texts else None,
    }
    if thoughts:
        message["reasoning_content"] = joined(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _tool_call(members: Members) -> JsonValue:
    given = members.get("input", NULL)
    function: dict[str, JsonValue] = {
        "name": members.get("name", NULL),
        "arguments": "{}" if given == NULL else text_of(given),
    }
    return {"id": members.get("id", NULL), "type": "function", "function": function}


def chat_usage(members: Members) -> JsonValue:
    """Return the usage; None if the backend did not report both counts.

    The Messages API counts cached tokens apart from `input_tokens`, a chat completion within.
    """
    given, written = token_count(members, "input_tokens"), token_count(members, "output_tokens")
    if given is None or written is None:
        return None
    cached = token_count(members, "cache_read_input_tokens")
    cache_written = token_count(members, "cache_creation_input_tokens")
    prompt = given + (cached or 0) + (cache_written or 0)
    usage: dict[str, JsonValue] = {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
    }
    if cached is not None or cache_written is not None:
        usage["prompt_tokens_details"] = {
            "cached_tokens": cached or 0,
            "cache_write_tokens": cache_written or 0,
        }
    details = read_members(members.get("output_tokens_details", NULL)) or {}
    thinking = token_count(details, "thinking_tokens") or 0
    usage["completion_tokens_details"] = {"reasoning_tokens": thinking}
    return usage


def token_count(members: Members, name: str) -> int | None:
    """Return a count of tokens; None if it is not there or odd."""
    literal = bytes(members.get(name, NULL))
    return int(literal[:18]) if literal.isdigit() else None
