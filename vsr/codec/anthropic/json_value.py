"""JSON values built around parts that stay as they came: number literals, strings, schemas."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from vsr.codec.strict_json import invalid_json

JsonValue: TypeAlias = (
    "msgspec.Raw | str | int | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)

TRUE = msgspec.Raw(b"true")
FALSE = msgspec.Raw(b"false")

_QUOTE = ord('"')
_EMPTY_STRING_BYTES = 2


class UntranslatableResponse(ValueError):
    """A backend's answer is not what its protocol says; the text is ours, not the backend's."""


def encode(value: JsonValue) -> msgspec.Raw:
    """Return the value's JSON; a `Raw` in it stays byte for byte."""
    return msgspec.Raw(msgspec.json.encode(value))


def is_text(raw: msgspec.Raw | None) -> bool:
    """Return whether `raw` is a string that is not empty."""
    return raw is not None and len(raw) > _EMPTY_STRING_BYTES and memoryview(raw)[0] == _QUOTE


def joined(literals: Sequence[msgspec.Raw], separator: bytes = b"") -> msgspec.Raw:
    """Return one string of several; `separator` is written as inside a JSON string.

    Nothing is decoded, so escapes stay and a large image costs one copy.
    """
    if len(literals) == 1:
        return literals[0]
    return msgspec.Raw(b'"' + separator.join(bytes(part)[1:-1] for part in literals) + b'"')


def text_of(value: msgspec.Raw) -> str:
    """Return the JSON of a value as text, as it came.

    Raises:
        InvalidRequest: it is not UTF-8.
    """
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise invalid_json() from error
