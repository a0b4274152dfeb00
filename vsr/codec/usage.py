"""Token usage as a backend reports it."""

from typing import Annotated

import attrs
import msgspec

_Tokens = Annotated[int, msgspec.Meta(ge=0)]


@attrs.frozen
class TokenUsage:
    """Tokens of one completion."""

    prompt_tokens: int
    completion_tokens: int


class _Usage(msgspec.Struct):
    prompt_tokens: _Tokens
    completion_tokens: _Tokens


class _Completion(msgspec.Struct):
    usage: _Usage


_COMPLETION = msgspec.json.Decoder(_Completion)


def read_usage(body: bytes) -> TokenUsage | None:
    """Return the usage of a buffered chat completion; None when any of it is not known."""
    try:
        usage = _COMPLETION.decode(body).usage
    except (msgspec.DecodeError, RecursionError):
        return None
    return TokenUsage(usage.prompt_tokens, usage.completion_tokens)
