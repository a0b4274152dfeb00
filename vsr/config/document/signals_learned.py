"""The rules of `routing.signals` that need a model. Defaults are the reference's."""

from typing import Literal

from vsr.config.document.kinds import Count, Fraction
from vsr.config.document.objects import DocumentObject
from vsr.config.document.prototypes import PrototypeScoringConfig
from vsr.config.document.rules import RuleNode


class EmbeddingRule(DocumentObject, frozen=True):
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


class ModelScore(DocumentObject, frozen=True):
    """`routing.signals.domains[].model_scores[]`."""

    model: str = ""
    score: float = 0.0
    use_reasoning: bool = False


class DomainRule(DocumentObject, frozen=True):
    """`routing.signals.domains[]`."""

    name: str = ""
    description: str | None = None
    mmlu_categories: tuple[str, ...] = ()
    model_scores: tuple[ModelScore, ...] = ()


class FactCheckRule(DocumentObject, frozen=True):
    """`routing.signals.fact_check[]`."""

    name: str = ""
    description: str | None = None


class UserFeedbackRule(DocumentObject, frozen=True):
    """`routing.signals.user_feedbacks[]`."""

    name: str = ""
    description: str | None = None


class ReaskRule(DocumentObject, frozen=True):
    """`routing.signals.reasks[]`."""

    name: str = ""
    description: str | None = None
    threshold: Fraction = 0.8
    lookback_turns: Count = 1  # 0 means 1 too


class PreferenceRule(DocumentObject, frozen=True):
    """`routing.signals.preferences[]`."""

    name: str = ""
    description: str | None = None
    examples: tuple[str, ...] = ()
    threshold: float | None = None


class ComplexityCandidates(DocumentObject, frozen=True):
    """`routing.signals.complexity[].hard` and `.easy`."""

    candidates: tuple[str, ...] = ()
    image_candidates: tuple[str, ...] = ()


class ComplexityRule(DocumentObject, frozen=True):
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


class JailbreakRule(DocumentObject, frozen=True):
    """`routing.signals.jailbreak[]`; any `method` but `contrastive` asks the classifier."""

    name: str = ""
    method: str | None = None
    threshold: float | None = None
    include_history: bool = False
    description: str | None = None
    jailbreak_patterns: tuple[str, ...] = ()
    benign_patterns: tuple[str, ...] = ()
    direction: Literal["request", "response"] = "request"


class SafetyHazardRule(DocumentObject, frozen=True):
    """`routing.signals.safety[].hazard`."""

    model: str | None = None
    labels: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    threshold: float | None = None


class SafetyRule(DocumentObject, frozen=True):
    """`routing.signals.safety[]`."""

    name: str = ""
    description: str | None = None
    model: str | None = None
    labels: tuple[str, ...] = ("safe", "unsafe")
    unsafe_labels: tuple[str, ...] = ("unsafe",)
    threshold: float | None = None
    hazard: SafetyHazardRule | None = None


class HallucinationRule(DocumentObject, frozen=True):
    """`routing.signals.hallucination[]`; seen in responses only."""

    name: str = ""
    description: str | None = None
    use_nli: bool = False


class PIIRule(DocumentObject, frozen=True):
    """`routing.signals.pii[]`."""

    name: str = ""
    threshold: float | None = None
    pii_types_allowed: tuple[str, ...] = ()
    include_history: bool = False
    description: str | None = None


class KBSignalTarget(DocumentObject, frozen=True):
    """`routing.signals.kb[].target`."""

    kind: Literal["label", "group"] | None = None
    value: str = ""


class KBSignalRule(DocumentObject, frozen=True):
    """`routing.signals.kb[]`."""

    name: str = ""
    kb: str = ""
    target: KBSignalTarget = KBSignalTarget()
    match: Literal["best", "threshold"] | None = None


class ClassifierSignalRule(DocumentObject, frozen=True):
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
