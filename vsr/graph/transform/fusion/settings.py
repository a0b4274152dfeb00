"""Transformer `fusion_settings`: panel, judge and rules of one run of fusion."""

from collections.abc import Mapping
from typing import Literal

import attrs
import msgspec

from vsr.errors import GraphFailed
from vsr.graph.transform.fusion.block import (
    FusionBlock,
    GroundingBlock,
    PanelOverride,
    find_fault,
    invalid_plugin,
    merge_block,
    read_plugin,
)
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, ModelRef
from vsr.registry import Extension

PROMPT_VERSION = "fusion-v1"
"""Source: looper-algorithms 9.1, default of `judge_prompt_version`."""

DEFAULT_SLUGS = ("vllm-sr/fusion",)
"""Source: looper-algorithms 1.3."""

_CALLS_OF_JUDGE = {"separate": 2, "one_call": 1, "none": 1}


class PanelMember(msgspec.Struct, frozen=True):
    """A model of the panel and what it is asked with; None leaves what the client says."""

    model: str
    temperature: float | None = None
    max_completion_tokens: int | None = None


class GroundingSettings(msgspec.Struct, frozen=True):
    """How replies are scored, and what comes of it.

    Source of the defaults: looper-algorithms 10.
    """

    reference: Literal["hybrid", "context", "panel"] = "hybrid"
    policy: Literal["weight", "annotate", "filter"] = "weight"
    min_score: float = 0.0
    min_keep: int = 1
    penalty: float = 1.0
    """What a contradiction takes, where an entailment gives 1."""
    on_error: Literal["skip", "fail"] = "skip"


class FusionSettings(msgspec.Struct, frozen=True):
    """One run's settings, with every default filled in."""

    judge: str
    panel: tuple[PanelMember, ...]
    models: tuple[str, ...]
    """Of the panel, in order."""
    max_concurrent: int
    quorum: int
    """At least 1, at most the panel."""
    models_used: tuple[str, ...]
    """Panel, then judge, each once."""
    iterations: int
    round_timeout_s: float | None = None
    temperature: float | None = None
    max_completion_tokens: int | None = None
    on_error: Literal["skip", "fail"] = "skip"
    analysis_mode: Literal["separate", "one_call", "none"] = "separate"
    on_quorum_failure: Literal["fail", "fallback"] = "fail"
    fallback_model: str | None = None
    include_analysis: bool = True
    include_responses: bool = True
    analysis_template: str | None = None
    synthesis_template: str | None = None
    prompt_version: str = PROMPT_VERSION
    grounding: GroundingSettings | None = None
    """None where grounding is off."""


@attrs.frozen
class ResolveFusion:
    """Fills in the settings of fusion, with those of the client's `fusion` plugin above its own.

    The fields are those of `algorithm.fusion`, but for `on_failure`; what is None, empty or a count
    of 0 has its default.

    Source: looper-algorithms 9.1, 9.2 step 1, 16.
    """

    refs: tuple[ModelRef, ...] = ()
    """The panel where none is named."""
    model: str | None = None
    analysis_models: tuple[str, ...] = ()
    analysis_mode: Literal["separate", "one_call", "none"] | None = None
    analysis_overrides: tuple[Mapping[str, object], ...] = ()
    """Of `model`, `temperature`, `max_completion_tokens` each."""
    max_concurrent: int | None = None
    max_completion_tokens: int | None = None
    round_timeout_seconds: int | None = None
    min_successful_responses: int | None = None
    temperature: float | None = None
    include_analysis: bool | None = None
    include_intermediate_responses: bool | None = None
    on_failure: str | None = None
    """`on_error` of the block, a name that every step has for itself."""
    quorum_failure_policy: Literal["fail", "fallback"] | None = None
    quorum_fallback_target: str | None = None
    analysis_template: str | None = None
    synthesis_template: str | None = None
    judge_prompt_version: str | None = None
    grounding: Mapping[str, object] | None = None
    reads_plugin: bool = True
    """Whether a client may change the settings."""
    slugs: tuple[str, ...] | None = None
    """Names under which fusion itself is called, None for the default one; no model of a run may be
    one of them."""

    def __call__(self, inputs: Inputs, /) -> FusionSettings:
        """Return the settings.

        Raises:
            InvalidRequest: the client's plugin is malformed, or does not fit the rest.
            GraphFailed: there is no panel, a model is fusion itself, or its own settings are off.
        """
        own = self._block()
        plugin = read_plugin(inputs.request.members.get("plugins")) if self.reads_plugin else None
        block = own if plugin is None else merge_block(own, plugin)
        models = self._panel(block)
        if not models:
            raise GraphFailed("fusion analysis_models cannot be empty")
        conflict = _find_conflict(block, models)
        if conflict is not None:
            if plugin is None or conflict == _find_conflict(own, self._panel(own)):
                raise GraphFailed(f"fusion {conflict}")
            raise invalid_plugin(conflict)
        settings = resolve(block, models)
        self._refuse_recursion(settings)
        return settings

    def _block(self) -> FusionBlock:
        fields = attrs.asdict(self, recurse=False)
        fields["on_error"] = self.on_failure
        own = {name: fields[name] for name in FusionBlock.__struct_fields__}
        try:
            block = msgspec.convert(own, FusionBlock)
        except msgspec.ValidationError as error:
            raise GraphFailed(f"fusion settings are malformed: {error}") from error
        fault = find_fault(block)
        if fault is not None:
            raise GraphFailed(f"fusion {fault}")
        return block

    def _panel(self, block: FusionBlock) -> tuple[str, ...]:
        named = block.analysis_models or tuple(ref.called_name for ref in self.refs)
        trimmed = (name.strip() for name in named)
        return tuple(dict.fromkeys(name for name in trimmed if name))

    def _refuse_recursion(self, settings: FusionSettings) -> None:
        slugs = DEFAULT_SLUGS if self.slugs is None else self.slugs
        for model in (settings.judge, *settings.models, settings.fallback_model):
            if model in slugs:
                what = "cannot be used as a judge or analysis model"
                raise GraphFailed(f'fusion model "{model}" {what}')


def resolve(block: FusionBlock, models: tuple[str, ...]) -> FusionSettings:
    """Return the settings of a run; `models` are the panel's, at least one, and fit `block`."""
    judge = (block.model or "").strip() or models[0]
    mode = block.analysis_mode or "separate"
    overrides = {override.model.strip(): override for override in block.analysis_overrides or ()}
    target = (block.quorum_fallback_target or "").strip() or None
    seconds = block.round_timeout_seconds
    return FusionSettings(
        judge=judge,
        panel=tuple(_member(name, block, overrides.get(name)) for name in models),
        models=models,
        max_concurrent=min(block.max_concurrent or len(models), len(models)),
        quorum=block.min_successful_responses or len(models),
        models_used=tuple(dict.fromkeys((*models, judge))),
        iterations=len(models) + _CALLS_OF_JUDGE[mode],
        round_timeout_s=float(seconds) if seconds else None,
        temperature=block.temperature,
        max_completion_tokens=block.max_completion_tokens or None,
        on_error="fail" if block.on_error == "fail" else "skip",
        analysis_mode=mode,
        on_quorum_failure=block.quorum_failure_policy or "fail",
        fallback_model=target,
        include_analysis=block.include_analysis is not False,
        include_responses=block.include_intermediate_responses is not False,
        analysis_template=block.analysis_template or None,
        synthesis_template=block.synthesis_template or None,
        prompt_version=block.judge_prompt_version or PROMPT_VERSION,
        grounding=_grounding(block),
    )


def _find_conflict(block: FusionBlock, models: tuple[str, ...]) -> str | None:
    """Return which settings do not go together. Source: looper-algorithms 16."""
    target = (block.quorum_fallback_target or "").strip()
    if (block.min_successful_responses or 0) > len(models):
        return f"min_successful_responses is more than the panel has ({len(models)})"
    if block.analysis_template and block.analysis_mode in {"one_call", "none"}:
        return f"analysis_template has no use in analysis_mode {block.analysis_mode}"
    if block.quorum_failure_policy == "fallback" and not target:
        return "quorum_fallback_target is required by quorum_failure_policy fallback"
    if target and block.quorum_failure_policy != "fallback":
        return "quorum_fallback_target needs quorum_failure_policy fallback"
    if target in models:
        return "quorum_fallback_target is a member of the panel"
    return None


def _member(name: str, block: FusionBlock, override: PanelOverride | None) -> PanelMember:
    override = override or PanelOverride()
    temperature = block.temperature if override.temperature is None else override.temperature
    tokens = override.max_completion_tokens or block.max_completion_tokens or None
    return PanelMember(name, temperature, tokens)


def _grounding(block: FusionBlock) -> GroundingSettings | None:
    written = block.grounding or GroundingBlock()
    if not written.enabled:
        return None
    return GroundingSettings(
        reference=written.reference or "hybrid",
        policy=written.policy or "weight",
        min_score=written.min_score or 0.0,
        min_keep=written.min_keep or 1,
        penalty=written.nli_contradiction_penalty or 1.0,
        on_error=written.on_error or ("fail" if block.on_error == "fail" else "skip"),
    )


FUSION_SETTINGS = Extension[Transformer](name="fusion_settings", config=ResolveFusion)
