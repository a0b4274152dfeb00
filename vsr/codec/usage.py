"""Token usage as a backend reports it."""

from typing import Annotated

import msgspec

_Tokens = Annotated[int, msgspec.Meta(ge=0)]


class TokenUsage(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one completion."""

    prompt_tokens: _Tokens
    completion_tokens: _Tokens


class _Completion(msgspec.Struct, gc=False):
    usage: TokenUsage


_COMPLETION = msgspec.json.Decoder(_Completion)


def read_usage(body: bytes) -> TokenUsage | None:
    """Return the usage of a buffered chat completion; None when any of it is not known."""
    try:
        return _COMPLETION.decode(body).usage
    except (msgspec.DecodeError, RecursionError):
        return None
