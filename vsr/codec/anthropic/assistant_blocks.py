"""Content of Anthropic assistant turns as a chat message."""

from collections.abc import Sequence

import msgspec

from vsr.codec.anthropic.json_value import JsonValue, encode, is_text, text_of
from vsr.codec.anthropic.protocol_warning import Reason, WarningLog
from vsr.codec.chat_messages import read_members, read_string
from vsr.codec.strict_json import NULL

_NO_INPUT = "{}"


class AssistantTurn:
    """Builds the chat message of one assistant turn with content blocks."""

    def __init__(self, log: WarningLog, openai_log: WarningLog) -> None:
        self._log = log
        self._openai_log = openai_log
        self._parts: list[JsonValue] = []
        self._calls: list[JsonValue] = []

    def add(self, block: msgspec.Raw, field: str) -> None:
        """Add a content block; `field` is its path."""
        members = read_members(block) or {}
        kind = read_string(members.get("type", NULL))
        if kind == "text":
            if is_text(members.get("text")):
                self._parts.append({"type": "text", "text": members["text"]})
        elif kind == "tool_use":
            self._add_call(members, field)
        elif kind == "thinking":
            if is_text(members.get("signature")):
                self._openai_log.lossy(Reason.SIGNATURE_DROP, f"{field}.signature")
        elif kind == "server_tool_use":
            self._log.info(Reason.SERVER_TOOL_USE_CAPTURED, f"{field}.type")
        else:
            self._log.lossy(Reason.UNSUPPORTED_BLOCK_TYPE, f"{field}.type")

    def finish(self) -> list[msgspec.Raw]:
        """Return the message, or nothing if no block has a counterpart."""
        message: dict[str, JsonValue] = {"role": "assistant"}
        if self._parts:
            message["content"] = self._parts
        if self._calls:
            message["tool_calls"] = self._calls
        return [encode(message)] if self._parts or self._calls else []

    def _add_call(self, members: dict[str, msgspec.Raw], field: str) -> None:
        call_id, name = members.get("id"), members.get("name")
        if not is_text(call_id) or not is_text(name):
            self._log.error(Reason.INCOMPLETE_TOOL_USE, field)
            return
        given = members.get("input", NULL)
        arguments = _NO_INPUT if given == NULL else text_of(given)
        function: dict[str, JsonValue] = {"name": name, "arguments": arguments}
        self._calls.append({"id": call_id, "type": "function", "function": function})


def signed_only(message: msgspec.Raw, blocks: Sequence[msgspec.Raw]) -> msgspec.Raw | None:
    """Return the turn without thinking that no signature vouches for; None if all of it goes.

    Such blocks come from the reasoning of a chat backend; an Anthropic one would refuse them.
    """
    kept = [block for block in blocks if not _is_unsigned(block)]
    if not kept:
        return None
    if len(kept) == len(blocks):
        return message
    return encode({**(read_members(message) or {}), "content": kept})


def _is_unsigned(block: msgspec.Raw) -> bool:
    members = read_members(block) or {}
    is_thinking = read_string(members.get("type", NULL)) == "thinking"
    return is_thinking and not is_text(members.get("signature"))
