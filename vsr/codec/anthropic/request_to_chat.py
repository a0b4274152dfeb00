"""An Anthropic Messages request as a chat request.

Source: the reference's rules "Anthropic request and chat request", and its parity record
`anthropic-messages-ingress` where they differ.
"""

from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.assistant_blocks import AssistantTurn, signed_only
from vsr.codec.anthropic.json_value import TRUE, JsonValue, encode, is_text
from vsr.codec.anthropic.protocol_warning import Reason, WarningLog
from vsr.codec.anthropic.request_tools import tool_choice_to_chat, tools_to_chat
from vsr.codec.anthropic.side_record import ChatTranslation, Origin, SideRecord
from vsr.codec.anthropic.user_blocks import UserTurn
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.envelope import open_envelope
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

DEFAULT_MAX_TOKENS = 4096
"""Of a request that gives no limit; the Messages API asks for one. Source: the reference."""

_TRANSLATED = frozenset(
    {"model", "messages", "system", "max_tokens", "temperature", "top_p", "stop_sequences"}
    | {"stream", "tools", "tool_choice"}
)
_SAME = frozenset({"max_tokens", "temperature", "top_p"})
_RENAMED = {"max_tokens": "max_completion_tokens"}
_ANTHROPIC_ONLY = frozenset(
    {"cache_control", "container", "context_management", "inference_geo", "mcp_servers"}
    | {"metadata", "output_config", "output_format", "service_tier", "speed", "thinking", "top_k"}
)
"""Members of the Messages API that a chat request has no place for, or means otherwise."""
_NOT_LOST = frozenset({"cache_control", "metadata"})
"""Of those: chat backends cache by themselves, and `user_id` is carried."""
_OWNED = frozenset(
    {"max_completion_tokens", "stop", "user", "parallel_tool_calls", "stream_options", "n"}
)
"""Chat members that only the translation may set; a second choice would have no place in an
Anthropic answer."""


def anthropic_to_chat(body: bytes, *, has_beta: bool = False) -> ChatTranslation:
    """Translate a request; values that have a counterpart keep their bytes.

    Members that neither API knows are carried on.

    Args:
        body: the client's.
        has_beta: the request has an `anthropic-beta` header.

    Raises:
        InvalidRequest: the body is no JSON object, or has no model or no messages.
    """
    members = open_envelope(body).members
    entries = _checked_messages(members)
    log, openai_log = WarningLog(), WarningLog()
    system = _system_origin(members.get("system", NULL), log)
    turns = [
        origin
        for at, entry in enumerate(entries)
        if (origin := _message_origin(entry, f"messages[{at}]", log, openai_log)) is not None
    ]
    tools = tools_to_chat(members.get("tools", NULL), log, openai_log)
    choice = tool_choice_to_chat(members.get("tool_choice", NULL), log)
    if not any(origin.chat for origin in tools):  # chat backends refuse a choice without tools
        choice = {}
    left_over = {name: value for name, value in members.items() if name not in _TRANSLATED}
    carried = _carried(left_over, openai_log)
    if has_beta:
        openai_log.lossy(Reason.BETA_DROP, "anthropic-beta")
    record = SideRecord(
        system,
        turns,
        tools,
        Origin([encode(choice)], members["tool_choice"]) if "tool_choice" in members else None,
        {name: value for name, value in left_over.items() if name not in carried},
        frozenset(carried),
    )
    chat = _chat_members(members, record) | choice | carried
    return ChatTranslation(
        msgspec.json.encode(chat), tuple(log.warnings), tuple(openai_log.warnings), record
    )


def _checked_messages(members: Mapping[str, msgspec.Raw]) -> list[msgspec.Raw]:
    if not is_text(members.get("model")):
        raise InvalidRequest("model is required", code="model_required", param="model")
    entries = read_entries(members.get("messages", NULL))
    if entries is None:
        raise InvalidRequest("messages field must be an array", param="messages")
    return entries


def _chat_members(members: Mapping[str, msgspec.Raw], record: SideRecord) -> dict[str, JsonValue]:
    """Return what is made of the parts in `record`, and the other members with a counterpart."""
    parts = (record.system, *record.messages) if record.system else record.messages
    chat: dict[str, JsonValue] = {
        "model": members["model"],
        "messages": [message for origin in parts for message in origin.chat],
    }
    chat |= _parameters(members)
    tools = [tool for origin in record.tools for tool in origin.chat]
    return chat | {"tools": tools} if tools else chat


def _system_origin(system: msgspec.Raw, log: WarningLog) -> Origin | None:
    content: JsonValue = None
    if is_text(system):
        content = system
    else:
        parts: list[JsonValue] = []
        for block in read_entries(system) or ():
            members = read_members(block) or {}
            if read_string(members.get("type", NULL)) != "text":
                log.lossy(Reason.UNSUPPORTED_TYPE, "system")
            elif is_text(members.get("text")):
                parts.append({"type": "text", "text": members["text"]})
        content = parts or None
    if content is None:
        return None
    return Origin([encode({"role": "system", "content": content})], system)


def _message_origin(
    message: msgspec.Raw, field: str, log: WarningLog, openai_log: WarningLog
) -> Origin | None:
    """Translate one turn; None if no backend should see it."""
    members = read_members(message) or {}
    role = read_string(members.get("role", NULL))
    content = members.get("content", NULL)
    if role not in {"user", "assistant"}:
        log.lossy(Reason.UNSUPPORTED_ROLE, f"{field}.role")
        return None
    blocks = read_entries(content)
    if blocks is None:
        if not is_text(content):
            return None
        return Origin([encode({"role": role, "content": content})], message)
    turn = (UserTurn if role == "user" else AssistantTurn)(log, openai_log)
    for at, block in enumerate(blocks):
        turn.add(block, f"{field}.content[{at}]")
    original = signed_only(message, blocks)
    return None if original is None else Origin(turn.finish(), original)


def _parameters(members: Mapping[str, msgspec.Raw]) -> dict[str, JsonValue]:
    """Return what has a counterpart besides messages and tools, in the client's order."""
    chat: dict[str, JsonValue] = {}
    for name, value in members.items():
        if name in _SAME and value != NULL:
            chat[_RENAMED.get(name, name)] = value
        elif name == "stop_sequences":
            stops = [stop for stop in read_entries(value) or () if is_text(stop)]
            chat.update({"stop": stops} if stops else {})
        elif name == "stream" and value == TRUE:
            chat.update({"stream": TRUE, "stream_options": {"include_usage": True}})
        elif name == "metadata":
            user_id = (read_members(value) or {}).get("user_id", NULL)
            chat.update({"user": user_id} if is_text(user_id) else {})
    chat.setdefault("max_completion_tokens", DEFAULT_MAX_TOKENS)
    return chat


def _carried(members: Mapping[str, msgspec.Raw], openai_log: WarningLog) -> dict[str, JsonValue]:
    """Return the other members as far as a chat request may have them."""
    carried: dict[str, JsonValue] = {}
    for name, value in members.items():
        if name not in _ANTHROPIC_ONLY and name not in _OWNED:
            carried[name] = value
        elif name not in _NOT_LOST and value != NULL:
            reason = Reason.TOP_K_DROP if name == "top_k" else Reason.DROPPED
            openai_log.lossy(reason, name)
    return carried
