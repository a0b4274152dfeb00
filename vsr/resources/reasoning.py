"""How a model's reasoning is controlled: the behaviour of its family and its way on the wire."""

from collections.abc import Mapping
from enum import StrEnum

import attrs


class ReasoningKind(StrEnum):
    """What the control of a family is."""

    CHAT_TEMPLATE_KWARGS = "chat_template_kwargs"
    """A boolean argument of the chat template."""
    REASONING_EFFORT = "reasoning_effort"
    """A level."""
    REASONING_MODE = "reasoning_mode"
    """A mode word."""
    TOP_LEVEL_REASONING_EFFORT = "top_level_reasoning_effort"
    """A level that is always a member of the request itself."""


class ReasoningMode(StrEnum):
    """Whether a model reasons."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    ADAPTIVE = "adaptive"
    """The model decides."""


class ReasoningTransport(StrEnum):
    """Where a provider expects the control."""

    CHAT_TEMPLATE_KWARGS = "chat_template_kwargs"
    TOP_LEVEL_EFFORT = "top_level_effort"
    REASONING_OBJECT = "reasoning_object"
    THINKING_OBJECT = "thinking_object"
    OUTPUT_CONFIG_EFFORT = "output_config_effort"
    DEEPSEEK_THINKING = "deepseek_thinking"


@attrs.frozen
class ReasoningFamily:
    """The reasoning behaviour that some models share."""

    kind: ReasoningKind
    parameter: str
    """Request field or template argument."""
    levels: tuple[str, ...] = ()
    default_level: str | None = None
    modes: tuple[ReasoningMode, ...] = ()
    default_mode: ReasoningMode | None = None
    activation_parameter: str | None = None
    """A boolean switch beside the level."""
    effort_flags: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    """By level, one more boolean argument that stands for it."""
    disabled_level: str | None = None
    """The level that turns reasoning off."""

    @property
    def may_disable(self) -> bool:
        """Return whether reasoning can be turned off at all."""
        return (
            ReasoningMode.DISABLED in self.modes
            or self.activation_parameter is not None
            or self.disabled_level is not None
        )

    @property
    def has_levels(self) -> bool:
        """Return whether an effort may be asked for."""
        return self.kind in {
            ReasoningKind.REASONING_EFFORT,
            ReasoningKind.TOP_LEVEL_REASONING_EFFORT,
        }
