"""A backend's error body, whatever its form, as the members that clients read.

Source: the reference's parity records `upstream-503` and `upstream-429`.
"""

import msgspec

from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

MAX_MESSAGE_CHARACTERS = 4096
"""Longer ones are cut; a provider's longest messages quote a schema of some hundred characters."""
_MAX_BODY_BYTES = 1 << 20
"""A longer body is not looked into."""
_MAX_SCALAR_BYTES = 256
_ELLIPSIS = "…"
_FIRST_OF_NUMBER = frozenset(b"-0123456789")
_QUOTE = ord('"')

Scalar = msgspec.Raw
"""A string, a number or null as the backend wrote it."""


class BackendError(msgspec.Struct, frozen=True):
    """What a backend says of its failure."""

    message: str
    """The backend's text; where it has none that can be shown, the status in our words."""
    type: Scalar = NULL
    code: Scalar = NULL
    param: Scalar = NULL
    is_anthropic: bool = False
    """It came in the envelope of the Messages API, and has its types."""


def openai_backend_error(status: int, body: bytes) -> bytes:
    """Return a backend's error as OpenAI clients read it: four members, null where unknown."""
    error = read_backend_error(status, body)
    members = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
        "param": error.param,
    }
    return msgspec.json.encode({"error": members})


def read_backend_error(status: int, body: bytes) -> BackendError:
    """Read the error of the OpenAI or Anthropic form, a server framework's, or a plain text."""
    if len(body) > _MAX_BODY_BYTES:
        return _unsaid(status)
    try:
        error = _read_json(status, body)
    except InvalidRequest:  # not JSON at all
        return _read_text(status, body)
    return error or _unsaid(status)


def _read_json(status: int, body: bytes) -> BackendError | None:
    """Read a JSON body; None if nothing in it tells what is wrong."""
    entries = read_entries(body)
    members = read_members(entries[0] if entries else body)  # Google's endpoints answer a list
    if members is None:
        text = read_string(body)
        return BackendError(_bounded(text)) if text else None
    stated = members.get("error", NULL)
    inner = read_members(stated)
    if inner is not None:
        is_anthropic = members.get("type") == msgspec.Raw(b'"error"')
        return _from_members(status, inner, is_anthropic=is_anthropic)
    for found in (stated, members.get("message", NULL), members.get("detail", NULL)):
        text = _text_of(found)
        if text:
            return msgspec.structs.replace(_from_members(status, members), message=text)
    return None


def _from_members(
    status: int, members: dict[str, msgspec.Raw], *, is_anthropic: bool = False
) -> BackendError:
    return BackendError(
        _text_of(members.get("message", NULL)) or _unsaid(status).message,
        _scalar(members, "type"),
        _scalar(members, "code"),
        _scalar(members, "param"),
        is_anthropic=is_anthropic,
    )


def _read_text(status: int, body: bytes) -> BackendError:
    """Take a text as the message, unless it is a page for a browser or no text."""
    try:
        text = body.decode().strip()
    except UnicodeDecodeError:
        return _unsaid(status)
    is_shown = all(character.isprintable() or character.isspace() for character in text)
    if not text or text.startswith("<") or not is_shown:
        return _unsaid(status)
    return BackendError(_bounded(text))


def _unsaid(status: int) -> BackendError:
    return BackendError(f"The backend answered with status {status}.")


def _text_of(value: msgspec.Raw) -> str:
    """Return a string's text, and any other value's JSON; a member that is not there is empty."""
    if value == NULL:
        return ""
    text = read_string(value)
    return _bounded(bytes(value).decode("utf-8", "replace") if text is None else text)


def _bounded(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    return text[: MAX_MESSAGE_CHARACTERS - len(_ELLIPSIS)] + _ELLIPSIS


def _scalar(members: dict[str, msgspec.Raw], name: str) -> Scalar:
    value = members.get(name, NULL)
    first = memoryview(value)[0]
    is_scalar = first == _QUOTE or first in _FIRST_OF_NUMBER
    if not is_scalar or len(value) > _MAX_SCALAR_BYTES:
        return NULL
    return msgspec.Raw(bytes(value))
