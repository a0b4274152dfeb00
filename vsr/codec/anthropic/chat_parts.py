"""Content of chat messages as Anthropic content blocks."""

from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.json_value import JsonValue, encode, is_text, joined
from vsr.codec.anthropic.protocol_warning import Reason, WarningLog
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

Members = Mapping[str, msgspec.Raw]

_NO_ARGUMENTS = msgspec.Raw(b"{}")
_SPACE = b" "
_DATA_URI = b'"data:'
_FILE_ID = b'"file_id:'
_TEXT_MEMBERS = {None: "text", "text": "text", "refusal": "refusal"}
"""Where a part of each type has its text; one without a type is a text."""


def text_block(literal: msgspec.Raw) -> JsonValue:
    """Return a text block, its members in the order of the reference's parity records."""
    return {"text": literal, "type": "text"}


def text_literals(content: msgspec.Raw, field: str, log: WarningLog) -> list[msgspec.Raw]:
    """Return the texts of a message's content that are not empty, and note what is none."""
    if is_text(content):
        return [content]
    literals = []
    for at, part in enumerate(read_entries(content) or ()):
        members = read_members(part) or {}
        text = _text_of(members)
        if text is None:
            log.lossy(Reason.UNSUPPORTED_BLOCK_TYPE, f"{field}[{at}].type")
        elif is_text(text):
            literals.append(text)
    return literals


def user_blocks(content: msgspec.Raw, field: str, log: WarningLog) -> list[JsonValue]:
    """Return text and image blocks; texts that follow one another become one, with a space."""
    if is_text(content):
        return [text_block(content)]
    blocks: list[JsonValue] = []
    texts: list[msgspec.Raw] = []
    for at, part in enumerate(read_entries(content) or ()):
        members = read_members(part) or {}
        text = _text_of(members)
        if text is not None:
            texts += [text] if is_text(text) else []
            continue
        image = _image(members)
        if image is None:
            log.lossy(Reason.UNSUPPORTED_BLOCK_TYPE, f"{field}[{at}].type")
            continue
        blocks += [text_block(joined(texts, _SPACE))] if texts else []
        texts = []
        blocks.append(image)
    return [*blocks, text_block(joined(texts, _SPACE))] if texts else blocks


def argument_object(arguments: msgspec.Raw) -> msgspec.Raw | None:
    """Return the JSON object in a tool call's arguments as it stands there; None if it is none."""
    text = "" if arguments == NULL else read_string(arguments)
    if text is None:
        return None
    if not text.strip():
        return _NO_ARGUMENTS
    given = msgspec.Raw(text.strip().encode())
    try:
        return None if read_members(given) is None else given
    except InvalidRequest:  # the inner text, of which the message should tell more
        return None


def _text_of(members: Members) -> msgspec.Raw | None:
    """Return the text of a text part, NULL if it lacks one; None for a part of another type."""
    kind = members.get("type", NULL)
    name = _TEXT_MEMBERS.get(None if kind == NULL else read_string(kind) or "")
    return None if name is None else members.get(name, NULL)


def _image(members: Members) -> JsonValue:
    url = (read_members(members.get("image_url", NULL)) or {}).get("url", NULL)
    if read_string(members.get("type", NULL)) != "image_url" or not is_text(url):
        return None
    source = _image_source(url)
    return None if source is None else {"type": "image", "source": source}


def _image_source(url: msgspec.Raw) -> JsonValue:
    """Return the source that a URL stands for; a data URI is cut, not decoded."""
    literal = bytes(url)
    if b"\\" in literal:  # so that neither prefix nor commas can hide in escapes
        literal = bytes(encode(read_string(url)))
    if literal[: len(_DATA_URI)].lower() == _DATA_URI:
        head, _, rest = literal.partition(b",")
        data = msgspec.Raw(b'"' + rest)
        media_type, *parameters = head[len(_DATA_URI) :].split(b";")
        if not media_type or not is_text(data) or parameters[-1:] != [b"base64"]:
            return None
        return {"type": "base64", "media_type": media_type.decode(), "data": data}
    if literal.startswith(_FILE_ID):
        return {"type": "file", "file_id": msgspec.Raw(b'"' + literal[len(_FILE_ID) :])}
    return {"type": "url", "url": url}
