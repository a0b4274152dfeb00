"""The conversation of a Chat Completions request, read as tolerantly as the reference does."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from vsr.codec.strict_json import NULL, decode

_ABSENT = msgspec.Raw()


class Message(msgspec.Struct, gc=False):
    """The members of a message that routing reads; an odd value is as good as absent."""

    role: str | None = None
    content: msgspec.Raw = _ABSENT
    name: str | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: msgspec.Raw = _ABSENT
    function_call: msgspec.Raw = _ABSENT


class Part(msgspec.Struct, gc=False):
    """One content part, or content that is neither a string nor an array."""

    type: str = ""
    text: str = ""
    size_bytes: int = 0
    """Bytes of the part as received."""
    odd_bytes: int = 0
    """Bytes as received of a `text` that is not a string; of the whole part if it has none."""


class TextMessage(msgspec.Struct, gc=False):
    """A turn whose content is a string, as most are: one decoding reads all of it.

    A tool's result is none: it counts by its bytes as received, which this does not keep.
    """

    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: msgspec.Raw = _ABSENT
    function_call: msgspec.Raw = _ABSENT


Content = str | Sequence[Part] | Part | None


class Conversation(msgspec.Struct, gc=False):
    """Messages, each with its content, and the tools declared for them."""

    messages: Sequence[Message | TextMessage]
    contents: Sequence[Content]
    """As long as `messages`."""
    definitions: list[msgspec.Raw]
    """Entries of `tools` and of the older `functions`."""
    odd_bytes: int = 0
    """Bytes as received of what has another type than it should: a message that is no object, a
    text member that is no string, tools that are no array."""


class _TypedPart(msgspec.Struct):
    type: str | None = None
    text: str | msgspec.UnsetType | None = msgspec.UNSET


_MESSAGES = msgspec.json.Decoder(list[Message])
_MESSAGE = msgspec.json.Decoder(Message)
_TEXT_MESSAGES = msgspec.json.Decoder(list[TextMessage])
_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_CONTENT = msgspec.json.Decoder(str | list[msgspec.Raw] | None)
_PART = msgspec.json.Decoder(_TypedPart)
_STRING = msgspec.json.Decoder(str)
_TEXT_MEMBERS = ("role", "name", "tool_call_id", "refusal", "reasoning_content")


def read_conversation(members: Mapping[str, msgspec.Raw]) -> Conversation:
    """Decode `messages`, an array if present, and the tools.

    Raises:
        InvalidRequest: a string in them is not UTF-8.
    """
    raw = members.get("messages")
    texts = None if raw is None else _read_text_messages(raw)
    if texts is not None and "tools" not in members and "functions" not in members:
        return Conversation(texts, [message.content for message in texts], [])
    messages, odd_bytes = ([], 0) if raw is None else _read_messages(raw)
    definitions: list[msgspec.Raw] = []
    for name in ("tools", "functions"):
        raw = members.get(name)
        if raw is None or raw == NULL:
            continue
        entries = read_entries(raw)
        definitions += entries or ()
        odd_bytes += len(raw) if entries is None else 0
    contents = [_read_content(message.content) for message in messages]
    return Conversation(messages, contents, definitions, odd_bytes)


def read_entries(raw: bytes) -> list[msgspec.Raw] | None:
    """Return the entries of an array, or None if `raw` is another value."""
    try:
        return decode(_ENTRIES, raw)
    except msgspec.ValidationError:
        return None


def read_members(raw: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the members of an object, or None if `raw` is another value."""
    try:
        return decode(_MEMBERS, raw)
    except msgspec.ValidationError:
        return None


def read_string(raw: bytes) -> str | None:
    """Return the text of a string, or None if `raw` is another value."""
    try:
        return decode(_STRING, raw)
    except msgspec.ValidationError:
        return None


def text_of(content: Content) -> str:
    """Return the text that signals read: of a string, or of the text parts of an array."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(part.text for part in content if part.text and part.type in {"", "text"})
    return ""


def _read_text_messages(raw: msgspec.Raw) -> list[TextMessage] | None:
    """Return the messages if one decoding can tell all of them; None if it takes a closer look."""
    try:
        return decode(_TEXT_MESSAGES, raw)
    except msgspec.ValidationError:
        return None


def _read_messages(raw: msgspec.Raw) -> tuple[list[Message], int]:
    """Decode the array; return it and the bytes of what is odd in it."""
    try:
        return decode(_MESSAGES, raw), 0
    except msgspec.ValidationError:
        pairs = [_read_message(entry) for entry in read_entries(raw) or ()]
    return [message for message, _ in pairs], sum(odd_bytes for _, odd_bytes in pairs)


def _read_message(raw: msgspec.Raw) -> tuple[Message, int]:
    """Decode one message on its own; return it and the bytes of what is odd in it."""
    try:
        return decode(_MESSAGE, raw), 0
    except msgspec.ValidationError:
        members = read_members(raw)
    if members is None:
        return Message(), 0 if raw == NULL else len(raw)
    message = Message()
    odd_bytes = 0
    for name, value in members.items():
        if name in {"content", "tool_calls", "function_call"}:
            setattr(message, name, value)
        elif name in _TEXT_MEMBERS and value != NULL:
            text = read_string(value)
            setattr(message, name, text)
            odd_bytes += len(value) if text is None else 0
    return message, odd_bytes


def _read_content(raw: msgspec.Raw) -> Content:
    if not raw:
        return None
    try:
        content = decode(_CONTENT, raw)
    except msgspec.ValidationError:
        return _read_part(raw)
    if content is None or isinstance(content, str):
        return content
    return [_read_part(entry) for entry in content]


def _read_part(raw: msgspec.Raw) -> Part:
    size_bytes = len(raw)
    try:
        part = decode(_PART, raw)
    except msgspec.ValidationError:
        return _read_odd_part(raw)
    if part.text is msgspec.UNSET:
        return Part(part.type or "", "", size_bytes, size_bytes)
    return Part(part.type or "", part.text or "", size_bytes)


def _read_odd_part(raw: msgspec.Raw) -> Part:
    members = read_members(raw)
    if members is None:
        return Part("", "", 0 if raw == NULL else len(raw))
    part = Part("", "", len(raw), len(raw))
    kind, text = members.get("type", NULL), members.get("text")
    if kind != NULL:
        part.type = read_string(kind) or "(not a string)"
    if text is not None:
        decoded = None if text == NULL else read_string(text)
        part.text = decoded or ""
        part.odd_bytes = len(text) if decoded is None and text != NULL else 0
    return part
