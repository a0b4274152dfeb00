"""Plugins of a decision, each with its configuration; what is switched off is not here."""

from enum import StrEnum
from typing import Literal

import attrs
import msgspec


class SystemPromptMode(StrEnum):
    """What becomes of a system message that the request has."""

    INSERT = "insert"
    """It stays, after the prompt."""
    REPLACE = "replace"


class SystemPrompt(msgspec.Struct, frozen=True):
    """Plugin `system_prompt`."""

    prompt: str
    mode: SystemPromptMode = SystemPromptMode.INSERT


@attrs.frozen
class HeaderMutation:
    """Plugin `header_mutation`: lines of the request to the backend."""

    sets: tuple[tuple[bytes, bytes], ...] = attrs.field(default=(), repr=False)
    """`add`, then `update`, in authored order and spelling; each replaces what is there."""
    removals: tuple[bytes, ...] = ()


class RequestParams(msgspec.Struct, frozen=True):
    """Plugin `request_params`: limits on members of the request."""

    blocked: tuple[str, ...] = ()
    default_max_tokens: int | Literal["auto"] | None = None
    """`auto` is the model's known output limit."""
    max_tokens_limit: int | None = None
    max_n: int | None = None
    strip_unknown: bool = False


class FastResponse(msgspec.Struct, frozen=True):
    """Plugin `fast_response`: answers without a backend."""

    message: str


Plugin = SystemPrompt | HeaderMutation | RequestParams | FastResponse
