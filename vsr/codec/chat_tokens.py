"""The token count of a chat request, estimated from the bytes of its envelope.

Source: the reference's routing rules, "Context token count".
"""

from collections.abc import Mapping

import msgspec

from vsr.codec.chat_messages import (
    Content,
    Conversation,
    Message,
    Part,
    TextMessage,
    read_entries,
    read_members,
    read_string,
)
from vsr.codec.strict_json import NULL, utf8_bytes

MAX_TOKENS = 2**63 - 1
"""Where counts saturate."""

_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 8192
_MESSAGE_TOKENS = 4
_TOOL_TOKENS = 8
"""Framing of a tool call, a tool result and a tool definition each."""

_IMAGE_TYPES = frozenset({"image", "image_url", "input_image"})
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_PROSE_ROLES = frozenset({"system", "developer", "user", "assistant"})
_RESULT_ROLES = frozenset({"tool", "function"})
_STRUCTURED_MEMBERS = ("tool_choice", "function_call", "response_format")
_RESERVE_MEMBERS = ("max_completion_tokens", "max_tokens")


class EnvelopeSize(msgspec.Struct):
    """What a request's parts weigh; `tokens` is the floor of its token count."""

    text_bytes: int = 0
    """Of decoded text, in UTF-8."""
    structured_bytes: int = 0
    """Of other JSON as received."""
    images: int = 0
    framing_tokens: int = 0
    output_reserve_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Return the floor; it may exceed MAX_TOKENS."""
        return (
            text_tokens(self.text_bytes)
            + self.structured_bytes
            + _IMAGE_TOKENS * self.images
            + self.framing_tokens
            + self.output_reserve_tokens
        )

    def add_text(self, raw: bytes) -> None:
        """Count a member that should be a string; one that isn't counts as structured."""
        text = read_string(raw)
        if text is None:
            self.add_structured(raw)
        else:
            self.text_bytes += utf8_bytes(text)

    def add_structured(self, raw: bytes) -> None:
        """Count a value by its bytes as received."""
        if raw and raw != NULL:
            self.structured_bytes += len(raw)

    def add_part(self, part: Part) -> None:
        """Count one content part."""
        kind = part.type.strip().lower()
        if kind in _IMAGE_TYPES:
            self.images += 1
        elif kind in _TEXT_TYPES:
            self.text_bytes += utf8_bytes(part.text)
            self.structured_bytes += part.odd_bytes
        else:
            self.structured_bytes += part.size_bytes


def text_tokens(size_bytes: int) -> int:
    """Return the tokens of that many bytes of text."""
    return -(-size_bytes // _BYTES_PER_TOKEN)


def measure(conversation: Conversation, members: Mapping[str, msgspec.Raw]) -> EnvelopeSize:
    """Weigh a request: its conversation and the other members that take up context."""
    messages, definitions = conversation.messages, conversation.definitions
    size = EnvelopeSize(
        structured_bytes=conversation.odd_bytes,
        framing_tokens=_MESSAGE_TOKENS * len(messages) + _TOOL_TOKENS * len(definitions),
    )
    for message, content in zip(messages, conversation.contents, strict=True):
        _add_message(size, message, content)
    for definition in definitions:
        size.add_structured(definition)
    for name in _STRUCTURED_MEMBERS:
        if name in members:
            size.add_structured(members[name])
    for name in _RESERVE_MEMBERS:
        if name in members and members[name] != NULL:
            _add_reserve(size, members[name])
            break
    return size


def _add_message(size: EnvelopeSize, message: Message | TextMessage, content: Content) -> None:
    role = message.role or ""
    size.text_bytes += utf8_bytes(role)
    if isinstance(content, str) and role in _PROSE_ROLES:
        size.text_bytes += utf8_bytes(content)
    elif role.strip().lower() in _RESULT_ROLES:
        _add_tool_result(size, message, content)
    else:
        _add_content(size, content)
    if message.name or message.tool_call_id or message.refusal or message.reasoning_content:
        _add_other_texts(size, message)
    if message.tool_calls:
        _add_tool_calls(size, message.tool_calls)
    if message.function_call:
        _add_function_call(size, message.function_call)


def _add_content(size: EnvelopeSize, content: Content) -> None:
    if isinstance(content, str):
        size.text_bytes += utf8_bytes(content)
    elif isinstance(content, Part):
        size.add_part(content)
    else:
        for part in content or ():
            size.add_part(part)


def _add_other_texts(size: EnvelopeSize, message: Message | TextMessage) -> None:
    for text in (message.name, message.tool_call_id, message.refusal, message.reasoning_content):
        size.text_bytes += utf8_bytes(text or "")


def _add_tool_result(size: EnvelopeSize, message: Message | TextMessage, content: Content) -> None:
    size.framing_tokens += _TOOL_TOKENS
    if isinstance(content, str):
        size.structured_bytes += len(message.content or "")
        return
    for part in (content,) if isinstance(content, Part) else content or ():
        if part.type.strip().lower() in _IMAGE_TYPES:
            size.images += 1
        else:
            size.structured_bytes += part.size_bytes


def _add_tool_calls(size: EnvelopeSize, raw: msgspec.Raw) -> None:
    calls = read_entries(raw)
    if calls is None:
        size.add_structured(raw)
        return
    for call in calls:
        members = read_members(call) or {}
        size.framing_tokens += _TOOL_TOKENS
        function = read_members(members.get("function", NULL))
        if function is None:
            size.add_structured(call)
            continue
        for name in ("id", "type", "tool_call_id"):
            size.add_text(members.get(name, NULL))
        size.add_text(function.get("name", NULL))
        size.add_structured(function.get("arguments", NULL))


def _add_function_call(size: EnvelopeSize, raw: msgspec.Raw) -> None:
    function = read_members(raw)
    if function is None:
        size.add_structured(raw)
        return
    size.framing_tokens += _TOOL_TOKENS
    size.add_text(function.get("name", NULL))
    size.add_structured(function.get("arguments", NULL))


def _add_reserve(size: EnvelopeSize, limit: msgspec.Raw) -> None:
    """Count an output limit; only an integer literal reserves, another value is just bytes."""
    literal = bytes(limit)
    if literal.isdigit():
        size.output_reserve_tokens = min(int(literal[:20]), MAX_TOKENS)
    else:
        size.add_structured(limit)
