"""JSON decoding in which malformed bytes are always the one typed error."""

from typing import TypeVar

import msgspec

from vsr.errors import InvalidRequest

T = TypeVar("T")

NULL = msgspec.Raw(b"null")


def decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Decode `data`, a whole JSON value.

    Raises:
        InvalidRequest: it is not JSON, not UTF-8 where a string is read, or nested too deeply.
        msgspec.ValidationError: it is JSON of another shape; what that means is the caller's.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, RecursionError) as error:
        raise invalid_json() from error


def invalid_json() -> InvalidRequest:
    """Return the error of a body that is not a JSON object.

    Source: the reference's parity record `invalid-json-body`.
    """
    return InvalidRequest("request JSON is invalid", code="invalid_json")


def utf8_bytes(text: str) -> int:
    """Return the length of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
