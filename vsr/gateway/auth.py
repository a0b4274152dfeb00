"""Client API keys of a listener."""

import hmac
import re
from collections.abc import Sequence

from vsr.errors import Unauthenticated
from vsr.headers import HeaderLine

_BEARER = re.compile(rb"[Bb]earer\s+(.+)", re.DOTALL)


def check_api_key(
    lines: Sequence[HeaderLine], keys: Sequence[bytes], *, is_anthropic: bool = False
) -> None:
    """Let a request pass that carries one of `keys`.

    The bearer token comes first; if it is missing or wrong, `api-key` is looked at. Every key is
    compared in constant time and none is skipped, so that timing tells nothing.

    Args:
        lines: the request's.
        keys: of the listener.
        is_anthropic: the request is for the Messages API, whose clients put their key into
            `x-api-key`; our addition.

    Raises:
        Unauthenticated: it carries none of them.

    Source: the reference's key filter, its grammar included.
    """
    bearer = _BEARER.fullmatch(_first(lines, b"authorization"))
    if bearer is not None and _is_listed(bearer[1], keys):
        return
    if _is_listed(_first(lines, b"api-key"), keys):
        return
    if is_anthropic and _is_listed(_first(lines, b"x-api-key"), keys):
        return
    raise Unauthenticated


def _first(lines: Sequence[HeaderLine], name: bytes) -> bytes:
    return next((value for key, value in lines if key == name), b"")


def _is_listed(candidate: bytes, keys: Sequence[bytes]) -> bool:
    found = False
    for key in keys:
        found |= hmac.compare_digest(candidate, key)
    return found
