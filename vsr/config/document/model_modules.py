"""`global.model_catalog.modules`: how each role uses its model. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.kinds import Count, Fraction
from vsr.config.document.objects import SECRET, DocumentObject
from vsr.config.document.prototypes import PrototypeScoringConfig


class SequenceHeadWindowConfig(DocumentObject, frozen=True):
    """`window`."""

    size: Count | None = None
    overlap: Count | None = None


class RemoteClassifierBackend(DocumentObject, frozen=True):
    """`backend`: a classifier behind an address."""

    protocol: str | None = None
    contract: str | None = None
    model: str | None = None
    deadline_ms: Count | None = None


class SequenceHeadModelConfig(DocumentObject, frozen=True):
    """`modules.safety.safety` and `.hazard`."""

    model_id: str | None = None
    model_ref: str | None = None
    use_cpu: bool | None = None
    max_sequence_length: Count | None = None
    window: SequenceHeadWindowConfig | None = None


class SafetyModelsConfig(DocumentObject, frozen=True):
    """`modules.safety`."""

    safety: SequenceHeadModelConfig | None = None
    hazard: SequenceHeadModelConfig | None = None


class PromptCompressionConfig(DocumentObject, frozen=True):
    """`modules.prompt_compression`."""

    enabled: bool = False
    profile: Literal["default", "coding", "medical", "security", "multi_turn"] | None = None
    max_tokens: int | None = None
    min_length: int | None = None
    skip_signals: tuple[str, ...] = ()
    textrank_weight: float | None = None
    position_weight: float | None = None
    tfidf_weight: float | None = None
    novelty_weight: float | None = None
    position_depth: float | None = None
    preserve_first_n: int | None = None
    preserve_last_n: int | None = None


class PromptGuardModule(DocumentObject, frozen=True):
    """`modules.prompt_guard`."""

    max_sequence_length: Count | None = None
    backend: RemoteClassifierBackend | None = None
    window: SequenceHeadWindowConfig | None = None
    enabled: bool = True
    model_id: str | None = None
    threshold: float = 0.7
    use_cpu: bool = False
    jailbreak_mapping_path: str | None = None
    positive_labels: tuple[str, ...] = ()
    variant: str | None = None
    on_error: str | None = None
    model_ref: str | None = None


class CategoryModule(DocumentObject, frozen=True):
    """`modules.classifier.domain`."""

    max_sequence_length: Count | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float = 0.5
    use_cpu: bool = False
    use_modernbert: bool = False
    use_mmbert_32k: bool = False
    variant: str | None = None
    backend: RemoteClassifierBackend | None = None
    category_mapping_path: str | None = None
    fallback_category: str | None = None
    model_ref: str | None = None


class PIIModule(DocumentObject, frozen=True):
    """`modules.classifier.pii`."""

    window: SequenceHeadWindowConfig | None = None
    max_sequence_length: Count | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float = 0.9
    use_cpu: bool = False
    use_mmbert_32k: bool = False
    pii_mapping_path: str | None = None
    backend: RemoteClassifierBackend | None = None
    on_error: str | None = None
    model_ref: str | None = None


class MCPCategoryModel(DocumentObject, frozen=True):
    """`modules.classifier.mcp`."""

    enabled: bool = False
    transport_type: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Annotated[Mapping[str, str], SECRET] = msgspec.field(default_factory=dict)
    url: str | None = None
    tool_name: str | None = None
    threshold: float | None = None
    timeout_seconds: Count | None = None
    max_response_bytes: Count | None = None


class PreferenceModelConfig(DocumentObject, frozen=True):
    """`modules.classifier.preference`."""

    use_contrastive: bool | None = None
    embedding_model: str | None = None
    prototype_scoring: PrototypeScoringConfig | None = None


class ClassifierModule(DocumentObject, frozen=True):
    """`modules.classifier`."""

    domain: CategoryModule | None = None
    mcp: MCPCategoryModel | None = None
    pii: PIIModule | None = None
    preference: PreferenceModelConfig | None = None


class ComplexityModelConfig(DocumentObject, frozen=True):
    """`modules.complexity`."""

    prototype_scoring: PrototypeScoringConfig | None = None
    backend: RemoteClassifierBackend | None = None


class FactCheckModule(DocumentObject, frozen=True):
    """`modules.hallucination_mitigation.fact_check`."""

    max_sequence_length: Count | None = None
    model_id: str | None = None
    threshold: float = 0.6
    use_cpu: bool = False
    use_mmbert_32k: bool = False
    model_ref: str | None = None


class HallucinationDetector(DocumentObject, frozen=True):
    """`modules.hallucination_mitigation.detector`."""

    backend: str | None = None
    endpoint: str | None = None
    include_explanation: bool = False
    model_id: str | None = None
    threshold: float = 0.8
    use_cpu: bool = False
    min_span_length: int | None = None
    min_span_confidence: float | None = None
    context_window_size: int | None = None
    enable_nli_filtering: bool = False
    nli_entailment_threshold: float | None = None
    model_ref: str | None = None


class ExplainerModule(DocumentObject, frozen=True):
    """`modules.hallucination_mitigation.explainer`."""

    model_id: str | None = None
    threshold: float = 0.9
    use_cpu: bool = False
    model_ref: str | None = None


class HallucinationModule(DocumentObject, frozen=True):
    """`modules.hallucination_mitigation`."""

    enabled: bool = False
    fact_check: FactCheckModule | None = None
    detector: HallucinationDetector | None = None
    explainer: ExplainerModule | None = None


class FeedbackDetectorModule(DocumentObject, frozen=True):
    """`modules.feedback_detector`."""

    max_sequence_length: Count | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float = 0.7
    use_cpu: bool = False
    use_modernbert: bool = False
    use_mmbert_32k: bool = False
    feedback_mapping_path: str | None = None
    model_ref: str | None = None


class ModalityClassifierConfig(DocumentObject, frozen=True):
    """`modules.modality_detector.classifier`."""

    max_sequence_length: Count | None = None
    model_path: str | None = None
    use_cpu: bool = False


class ModalityDetectorConfig(DocumentObject, frozen=True):
    """`modules.modality_detector`."""

    enabled: bool = False
    method: str | None = None
    classifier: ModalityClassifierConfig | None = None
    keywords: tuple[str, ...] = ()
    both_keywords: tuple[str, ...] = ()
    confidence_threshold: Fraction | None = None
    lower_threshold_ratio: Fraction | None = None


class ModelModules(DocumentObject, frozen=True):
    """`global.model_catalog.modules`."""

    safety: SafetyModelsConfig | None = None
    prompt_compression: PromptCompressionConfig | None = None
    prompt_guard: PromptGuardModule | None = None
    classifier: ClassifierModule | None = None
    complexity: ComplexityModelConfig | None = None
    hallucination_mitigation: HallucinationModule | None = None
    feedback_detector: FeedbackDetectorModule | None = None
    modality_detector: ModalityDetectorConfig | None = None
