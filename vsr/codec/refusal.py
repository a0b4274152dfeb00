"""Whether a backend's whole answer is a refusal to answer."""

import msgspec

from vsr.codec.strict_json import decode
from vsr.errors import InvalidRequest

_FILTERED = frozenset({"content_filter", "content_policy_violation"})
"""Codes of errors, and reasons of ends. Source: OpenAI and Azure OpenAI, content filtering."""
_REFUSED = "refusal"
"""`stop_reason`. Source: Anthropic, "Handling stop reasons"."""


class _Message(msgspec.Struct):
    refusal: str | None = None


class _Choice(msgspec.Struct):
    finish_reason: str | None = None
    message: _Message | None = None


class _Error(msgspec.Struct):
    code: str | int | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] = []
    stop_reason: str | None = None
    error: _Error | None = None


_ANSWER = msgspec.json.Decoder(_Answer)


def is_refusal(body: bytes) -> bool:
    """Return whether `body`, an answer or an error of either protocol, says that it refuses.

    A choice that was filtered or carries a refusal is enough; what cannot be read is none.
    """
    try:
        answer = decode(_ANSWER, body)
    except (msgspec.ValidationError, InvalidRequest):
        return False
    if answer.error is not None and answer.error.code in _FILTERED:
        return True
    return answer.stop_reason == _REFUSED or any(
        choice.finish_reason in _FILTERED
        or (choice.message is not None and bool(choice.message.refusal))
        for choice in answer.choices
    )
