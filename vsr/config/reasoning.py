"""The reasoning behaviour of a model as authored: a built-in family, or its own words."""

from vsr.config.document.providers import Reasoning
from vsr.config.reasoning_families import REASONING_FAMILIES
from vsr.resources.reasoning import ReasoningFamily, ReasoningKind, ReasoningMode


def family_of(reasoning: Reasoning | None) -> ReasoningFamily | None:
    """Return the family of a valid block; None without one, or for an unknown name."""
    if reasoning is None:
        return None
    if reasoning.family is not None:
        return REASONING_FAMILIES.get(reasoning.family)
    if reasoning.type is None:
        return None
    mode = reasoning.default_mode
    return ReasoningFamily(
        ReasoningKind(reasoning.type),
        reasoning.parameter or "",
        levels=reasoning.levels,
        default_level=reasoning.default,
        modes=tuple(ReasoningMode(each) for each in reasoning.modes),
        default_mode=None if mode is None else ReasoningMode(mode),
        activation_parameter=reasoning.activation_parameter,
        effort_flags=reasoning.effort_flags,
        disabled_level=reasoning.disabled,
    )
