"""The members of a chat-completions request that the OpenAI schema knows."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.strict_json import NULL

Known: TypeAlias = "Mapping[str, Known | None]"
"""Members that stay, each with those that stay inside it, or with None if it stays whole."""

_TOP_LEVEL = frozenset(
    {
        "messages",
        "model",
        "frequency_penalty",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "presence_penalty",
        "seed",
        "store",
        "temperature",
        "top_logprobs",
        "top_p",
        "parallel_tool_calls",
        "prompt_cache_key",
        "safety_identifier",
        "user",
        "audio",
        "logit_bias",
        "metadata",
        "modalities",
        "reasoning_effort",
        "service_tier",
        "stop",
        "stream",
        "stream_options",
        "function_call",
        "functions",
        "prediction",
        "response_format",
        "tool_choice",
        "tools",
        "web_search_options",
    }
)

_CALL: Known = {"name": None, "arguments": None}
_TOOL_CALL: Known = {
    "id": None,
    "type": None,
    "function": _CALL,
    "custom": {"name": None, "input": None},
}
_FUNCTION: Known = {"name": None, "description": None, "parameters": None}

_MESSAGE_ROLES: Mapping[str, Known] = {
    "system": {"role": None, "content": None, "name": None},
    "developer": {"role": None, "content": None, "name": None},
    "user": {"role": None, "content": None, "name": None},
    "assistant": {
        "role": None,
        "content": None,
        "refusal": None,
        "name": None,
        "audio": {"id": None},
        "function_call": _CALL,
        "tool_calls": _TOOL_CALL,
    },
    "tool": {"role": None, "content": None, "tool_call_id": None},
    "function": {"role": None, "content": None, "name": None},
}
_PART_TYPES: Mapping[str, Known] = {
    "text": {"type": None, "text": None},
    "refusal": {"type": None, "refusal": None},
    "image_url": {"type": None, "image_url": {"url": None, "detail": None}},
    "input_audio": {"type": None, "input_audio": {"data": None, "format": None}},
    "file": {"type": None, "file": {"file_data": None, "file_id": None, "filename": None}},
}
_TOOL_TYPES: Mapping[str, Known] = {
    "function": {"type": None, "function": {**_FUNCTION, "strict": None}},
    "custom": {"type": None, "custom": {"name": None, "description": None, "format": None}},
}
_CALLS = ("tool_calls", "function_call")


def keep_standard(members: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """Return the members that the schema knows, in their order.

    Inside messages, content parts and tools, too, only what it knows is kept, and a `null` content
    beside tool calls goes. Whatever has a role or type that the schema does not know stays whole,
    as does every other member, `response_format` among them; `stream` stays, although a step
    writes it anew.

    Source: looper-algorithms 3.1; the OpenAI API, "Create chat completion".
    """
    kept = {name: raw for name, raw in members.items() if name in _TOP_LEVEL}
    if "messages" in kept:
        messages = read_entries(kept["messages"])
        if messages is not None:
            kept["messages"] = _array([_standard_message(message) for message in messages])
    if "tools" in kept:
        kept["tools"] = _each_by_type(kept["tools"], _TOOL_TYPES)
    if "functions" in kept:
        kept["functions"] = _keep(kept["functions"], _FUNCTION)
    return kept


def _standard_message(raw: msgspec.Raw) -> msgspec.Raw:
    members = read_members(raw) or {}
    known = _MESSAGE_ROLES.get(read_string(members.get("role", NULL)) or "")
    if known is None:
        return raw
    kept = _kept_members(members, known)
    content = kept.get("content", NULL)
    if content == NULL and any(kept.get(name, NULL) != NULL for name in _CALLS):
        kept.pop("content", None)
    elif "content" in kept:
        kept["content"] = _each_by_type(content, _PART_TYPES)
    return raw if kept == members else _object(kept)


def _each_by_type(raw: msgspec.Raw, types: Mapping[str, Known]) -> msgspec.Raw:
    """Keep what is known of each entry's `type`; another type, or no array at all, stays whole."""
    entries = read_entries(raw)
    if entries is None:
        return raw
    kept = []
    for entry in entries:
        kind = read_string((read_members(entry) or {}).get("type", NULL))
        known = types.get(kind or "")
        kept.append(entry if known is None else _keep(entry, known))
    return raw if kept == entries else _array(kept)


def _keep(raw: msgspec.Raw, known: Known) -> msgspec.Raw:
    """Keep the known members of an object, or of each object of an array."""
    entries = read_entries(raw)
    if entries is None:
        return _keep_object(raw, known)
    kept = [_keep_object(entry, known) for entry in entries]
    return raw if kept == entries else _array(kept)


def _keep_object(raw: msgspec.Raw, known: Known) -> msgspec.Raw:
    members = read_members(raw)
    if members is None:
        return raw
    kept = _kept_members(members, known)
    return raw if kept == members else _object(kept)


def _kept_members(members: Mapping[str, msgspec.Raw], known: Known) -> dict[str, msgspec.Raw]:
    kept = {}
    for name, raw in members.items():
        if name in known:
            inner = known[name]
            kept[name] = raw if inner is None else _keep(raw, inner)
    return kept


def _array(entries: list[msgspec.Raw]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(entries))


def _object(members: Mapping[str, msgspec.Raw]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(members))
