"""`routing.decisions[]`: rules, candidates, consequences. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.algorithms import Algorithm
from vsr.config.document.decision_plugin import DecisionPlugin
from vsr.config.document.fallback import FallbackOverride
from vsr.config.document.kinds import (
    Count,
    Duration,
    NotNegative,
    PositiveDuration,
    Retries,
    StatusCode,
)
from vsr.config.document.objects import REQUIRED, DocumentObject
from vsr.config.document.output_contracts import OutputContractSpec
from vsr.config.document.rules import RuleNode


class ModelRef(DocumentObject, frozen=True):
    """`routing.decisions[].modelRefs[]`: one candidate."""

    model: str = ""
    lora_name: str | None = None
    weight: NotNegative = 0.0
    use_reasoning: bool | None = None
    reasoning_description: str | None = None
    reasoning_mode: Literal["enabled", "disabled", "adaptive"] | None = None
    reasoning_effort: str | None = None


class DecisionAction(DocumentObject, frozen=True):
    """`routing.decisions[].action`: where a matched request goes in place of the candidates."""

    type: Annotated[Literal["route"], REQUIRED] = "route"
    destination: Annotated[str, REQUIRED] = ""


class DecisionLearningAdaptationConfig(DocumentObject, frozen=True):
    """`routing.decisions[].adaptations.adaptation`."""

    mode: Literal["", "apply", "observe", "bypass"] | None = None
    candidate_set: Literal["", "decision", "tier", "global"] | None = None


class DecisionLearningProtectionConfig(DocumentObject, frozen=True):
    """`routing.decisions[].adaptations.protection`."""

    mode: Literal["", "apply", "observe", "bypass"] | None = None
    stability_weight: NotNegative | None = None
    switch_margin: NotNegative | None = None


class DecisionAdaptationsConfig(DocumentObject, frozen=True):
    """`routing.decisions[].adaptations`."""

    mode: Literal["", "apply", "observe", "bypass"] | None = None
    adaptation: DecisionLearningAdaptationConfig | None = None
    protection: DecisionLearningProtectionConfig | None = None


class CandidateIterationOutputConfig(DocumentObject, frozen=True):
    """`routing.decisions[].candidateIterations[].outputs[]`."""

    type: Literal["model"] | None = None
    value: str | None = None


class CandidateIterationConfig(DocumentObject, frozen=True):
    """`routing.decisions[].candidateIterations[]`: declarative only."""

    variable: str = ""
    source: Literal["decision.candidates", "models"] | None = None
    models: tuple[ModelRef, ...] = ()
    outputs: tuple[CandidateIterationOutputConfig, ...] = ()


class RetentionDirective(DocumentObject, frozen=True):
    """`routing.decisions[].emits[].retention`; an omitted field is not echoed."""

    drop: bool | None = None
    ttl_turns: Count | None = None
    keep_current_model: bool | None = None
    prefer_prefix_retention: bool | None = None


class EmitDirective(DocumentObject, frozen=True):
    """`routing.decisions[].emits[]`."""

    kind: Literal["retention"] | None = None
    retention: RetentionDirective | None = None


class DecisionReliability(DocumentObject, frozen=True):
    """`routing.decisions[].reliability`: timeouts and counts replace, conditions and codes add.

    Also of `entrypoints[]`, `routing` and `recipes[].routing`, where it is not in the canonical
    document. It changes what the model says, then the entrypoint, then the recipe.
    """

    total_timeout: Duration | None = None
    per_try_timeout: Duration | None = None
    idle_timeout: Duration | None = None
    first_byte_timeout: Duration | None = None
    retry_count: Retries | None = None
    retry_on: str | None = None
    retriable_status_codes: tuple[StatusCode, ...] = ()
    retry_back_off_base: PositiveDuration | None = None
    retry_back_off_max: PositiveDuration | None = None
    retry_after_max: PositiveDuration | None = None


class Decision(DocumentObject, frozen=True):
    """`routing.decisions[]`; no rules match every request."""

    name: str = ""
    description: str | None = None
    priority: int = 0
    tier: Count = 0
    output_contract: str | None = None
    output_contract_spec: OutputContractSpec | None = None
    rules: RuleNode = msgspec.field(default_factory=RuleNode)
    action: DecisionAction | None = None
    modelRefs: tuple[ModelRef, ...] = ()  # noqa: N815  # the document's spelling
    algorithm: Algorithm | None = None
    adaptations: DecisionAdaptationsConfig | None = None
    plugins: tuple[DecisionPlugin, ...] = ()
    candidateIterations: tuple[CandidateIterationConfig, ...] = ()  # noqa: N815  # the document's spelling
    emits: tuple[EmitDirective, ...] = ()
    annotations: Mapping[str, object] = msgspec.field(default_factory=dict)
    reliability: DecisionReliability | None = None
    fallback: FallbackOverride | None = None
