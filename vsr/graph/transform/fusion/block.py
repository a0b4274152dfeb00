"""The settings of fusion as written, in the configuration or by the client."""

import math
from collections.abc import Iterator
from typing import Literal, TypeVar

import msgspec

from vsr.codec.strict_json import decode
from vsr.errors import InvalidRequest

PLUGIN_IDS = ("fusion", "openrouter:fusion")
"""Of a client's plugin that changes the settings. Source: looper-algorithms 9.1."""

_COUNTS = (
    "max_concurrent",
    "max_completion_tokens",
    "round_timeout_seconds",
    "min_successful_responses",
)


class PanelOverride(msgspec.Struct, frozen=True):
    """What one member of the panel is asked with instead."""

    model: str = ""
    temperature: float | None = None
    max_completion_tokens: int | None = None


class GroundingBlock(msgspec.Struct, frozen=True):
    """`grounding`: whether and how replies are scored by local classifiers."""

    enabled: bool | None = None
    reference: Literal["hybrid", "context", "panel"] | None = None
    policy: Literal["weight", "annotate", "filter"] | None = None
    min_score: float | None = None
    min_keep: int | None = None
    nli_contradiction_penalty: float | None = None
    on_error: Literal["skip", "fail"] | None = None


class FusionBlock(msgspec.Struct, frozen=True):
    """Every setting; None, an empty text or list, and 0 for a count mean that it is not set.

    Source: looper-algorithms 9.1 and 16.
    """

    model: str | None = None
    analysis_models: tuple[str, ...] | None = None
    analysis_mode: Literal["separate", "one_call", "none"] | None = None
    analysis_overrides: tuple[PanelOverride, ...] | None = None
    max_concurrent: int | None = None
    max_completion_tokens: int | None = None
    round_timeout_seconds: int | None = None
    min_successful_responses: int | None = None
    temperature: float | None = None
    include_analysis: bool | None = None
    include_intermediate_responses: bool | None = None
    on_error: str | None = None
    quorum_failure_policy: Literal["fail", "fallback"] | None = None
    quorum_fallback_target: str | None = None
    analysis_template: str | None = None
    synthesis_template: str | None = None
    judge_prompt_version: str | None = None
    grounding: GroundingBlock | None = None


class _Entry(msgspec.Struct):
    id: str | None = None


class _Switch(msgspec.Struct):
    enabled: bool | None = None


B = TypeVar("B", FusionBlock, PanelOverride)

_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw] | None)
_ENTRY = msgspec.json.Decoder(_Entry)
_SWITCH = msgspec.json.Decoder(_Switch)
_BLOCK = msgspec.json.Decoder(FusionBlock)


def read_plugin(plugins: msgspec.Raw | None) -> FusionBlock | None:
    """Return what a client's `plugins` member changes; None if nothing.

    The first entry of a fusion plugin counts, even one that is switched off.

    Raises:
        InvalidRequest: the list, an entry up to that one, or a setting is malformed.
    """
    if plugins is None:
        return None
    try:
        for raw in decode(_ENTRIES, plugins) or ():
            if decode(_ENTRY, raw).id in PLUGIN_IDS:
                return None if decode(_SWITCH, raw).enabled is False else _read_block(raw)
    except msgspec.ValidationError as error:
        raise invalid_plugin(str(error)) from error
    return None


def invalid_plugin(why: str) -> InvalidRequest:
    """Return the error of a client's plugin that cannot be followed."""
    message = f"invalid Fusion plugin: {why}"
    return InvalidRequest(message, code="invalid_fusion_request", param="plugins")


def merge_block(block: FusionBlock, plugin: FusionBlock) -> FusionBlock:
    """Return `block` with what `plugin` sets in its place.

    Panel and grounding are replaced as a whole, overrides member by member and field by field.

    Source: looper-algorithms 9.1.
    """
    overrides = {override.model.strip(): override for override in block.analysis_overrides or ()}
    for override in plugin.analysis_overrides or ():
        name = override.model.strip()
        overrides[name] = _replaced(overrides.get(name, PanelOverride(name)), override)
    merged = _replaced(block, plugin)
    return msgspec.structs.replace(merged, analysis_overrides=tuple(overrides.values()))


def find_fault(block: FusionBlock) -> str | None:
    """Return what is wrong with the first value that no panel or judge could make right."""
    faults = (*_block_faults(block), *_override_faults(block.analysis_overrides or ()))
    return next(iter((*faults, *_grounding_faults(block.grounding or GroundingBlock()))), None)


def _read_block(raw: msgspec.Raw) -> FusionBlock:
    plugin = decode(_BLOCK, raw)
    fault = find_fault(plugin)
    if fault is not None:
        raise invalid_plugin(fault)
    return plugin


def _replaced(below: B, above: B) -> B:
    values = msgspec.structs.asdict(above)
    return msgspec.structs.replace(
        below, **{name: value for name, value in values.items() if _is_set(value)}
    )


def _is_set(value: object) -> bool:
    """Return whether `value` counts; a temperature of 0 does, and it is a float."""
    return value is not None and value not in ("", ()) and not (type(value) is int and value == 0)


def _block_faults(block: FusionBlock) -> Iterator[str]:
    for name in _COUNTS:
        yield from _count_faults(name, getattr(block, name))
    yield from _temperature_faults("temperature", block.temperature)
    if block.on_error not in {None, "", "skip", "fail"}:
        yield "on_error must be skip or fail"


def _override_faults(overrides: tuple[PanelOverride, ...]) -> Iterator[str]:
    seen = set[str]()
    for at, override in enumerate(overrides):
        place = f"analysis_overrides[{at}]"
        name = override.model.strip()
        if not name:
            yield f"{place}.model cannot be empty"
        elif name in seen:
            yield f"{place}.model {name!r} has an override already"
        seen.add(name)
        yield from _temperature_faults(f"{place}.temperature", override.temperature)
        yield from _count_faults(f"{place}.max_completion_tokens", override.max_completion_tokens)


def _grounding_faults(grounding: GroundingBlock) -> Iterator[str]:
    if not 0 <= (grounding.min_score or 0) <= 1:
        yield "grounding.min_score must be from 0 to 1"
    if (grounding.min_keep or 0) < 0:
        yield "grounding.min_keep must be >= 0"
    if not 0 <= (grounding.nli_contradiction_penalty or 0) < math.inf:
        yield "grounding.nli_contradiction_penalty must be >= 0"


def _count_faults(name: str, value: int | None) -> Iterator[str]:
    if (value or 0) < 0:
        yield f"{name} must be >= 1 when set"


def _temperature_faults(name: str, value: float | None) -> Iterator[str]:
    if not 0 <= (value or 0) < math.inf:
        yield f"{name} must be >= 0"
