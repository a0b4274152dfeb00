"""The rules of `routing.signals` that need a model. Defaults are the reference's."""

from typing import Literal

import attrs

from vsr.config.document.kinds import Count, Fraction
from vsr.config.document.prototypes import PrototypeScoringConfig
from vsr.config.document.rules import RuleNode


@attrs.frozen(repr=False, unsafe_hash=False)
class EmbeddingRule:
    """`routing.signals.embeddings[]`."""

    name: str = ""
    threshold: float | None = None
    candidates: tuple[str, ...] = ()
    image_candidates: tuple[str, ...] = ()
    negative_candidates: tuple[str, ...] = ()
    negative_image_candidates: tuple[str, ...] = ()
    aggregation_method: Literal["max", "mean", "any"] = "max"
    query_modality: Literal["text", "image", "audio"] = "text"
    prototype_scoring: PrototypeScoringConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ModelScore:
    """`routing.signals.domains[].model_scores[]`."""

    model: str = ""
    score: float = 0.0
    use_reasoning: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class DomainRule:
    """`routing.signals.domains[]`."""

    name: str = ""
    description: str | None = None
    mmlu_categories: tuple[str, ...] = ()
    model_scores: tuple[ModelScore, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class FactCheckRule:
    """`routing.signals.fact_check[]`."""

    name: str = ""
    description: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class UserFeedbackRule:
    """`routing.signals.user_feedbacks[]`."""

    name: str = ""
    description: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ReaskRule:
    """`routing.signals.reasks[]`."""

    name: str = ""
    description: str | None = None
    threshold: Fraction = 0.8
    lookback_turns: Count = 1  # 0 means 1 too


@attrs.frozen(repr=False, unsafe_hash=False)
class PreferenceRule:
    """`routing.signals.preferences[]`."""

    name: str = ""
    description: str | None = None
    examples: tuple[str, ...] = ()
    threshold: float | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ComplexityCandidates:
    """`routing.signals.complexity[].hard` and `.easy`."""

    candidates: tuple[str, ...] = ()
    image_candidates: tuple[str, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class ComplexityRule:
    """`routing.signals.complexity[]`; `composer` gates it."""

    name: str = ""
    prototype_scoring: PrototypeScoringConfig | None = None
    threshold: float = 0.1
    hard: ComplexityCandidates | None = None
    easy: ComplexityCandidates | None = None
    hard_above: float | None = None
    easy_below: float | None = None
    hard_below: float | None = None
    easy_above: float | None = None
    description: str | None = None
    composer: RuleNode | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class JailbreakRule:
    """`routing.signals.jailbreak[]`; any `method` but `contrastive` asks the classifier."""

    name: str = ""
    method: str | None = None
    threshold: float | None = None
    include_history: bool = False
    description: str | None = None
    jailbreak_patterns: tuple[str, ...] = ()
    benign_patterns: tuple[str, ...] = ()
    direction: Literal["request", "response"] = "request"


@attrs.frozen(repr=False, unsafe_hash=False)
class SafetyHazardRule:
    """`routing.signals.safety[].hazard`."""

    model: str | None = None
    labels: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    threshold: float | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class SafetyRule:
    """`routing.signals.safety[]`."""

    name: str = ""
    description: str | None = None
    model: str | None = None
    labels: tuple[str, ...] = ("safe", "unsafe")
    unsafe_labels: tuple[str, ...] = ("unsafe",)
    threshold: float | None = None
    hazard: SafetyHazardRule | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class HallucinationRule:
    """`routing.signals.hallucination[]`; seen in responses only."""

    name: str = ""
    description: str | None = None
    use_nli: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class PIIRule:
    """`routing.signals.pii[]`."""

    name: str = ""
    threshold: float | None = None
    pii_types_allowed: tuple[str, ...] = ()
    include_history: bool = False
    description: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class KBSignalTarget:
    """`routing.signals.kb[].target`."""

    kind: Literal["label", "group"] | None = None
    value: str = ""


@attrs.frozen(repr=False, unsafe_hash=False)
class KBSignalRule:
    """`routing.signals.kb[]`."""

    name: str = ""
    kb: str = ""
    target: KBSignalTarget = KBSignalTarget()
    match: Literal["best", "threshold"] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ClassifierSignalRule:
    """`routing.signals.classifiers[]`."""

    name: str = ""
    description: str | None = None
    type: Literal["local", "llm", "sequence_classifier"] | None = None
    model: str | None = None
    model_path: str | None = None
    labels: tuple[str, ...] = ()
    instructions: str | None = None
    disable_rationale: bool = False
    use_cpu: bool | None = None
