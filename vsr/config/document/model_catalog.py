"""`global.model_catalog`: the models that signals and plugins use. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Literal

import attrs

from vsr.config.document.bindings import AdmissionConfig, ModelBinding, ModelDeployment
from vsr.config.document.kinds import REQUIRED, SECRET, Count, Port
from vsr.config.document.model_modules import ModelModules
from vsr.config.document.prototypes import PrototypeScoringConfig


@attrs.frozen(repr=False, unsafe_hash=False)
class EmbeddingEndpointConfig:
    """`embeddings.semantic.endpoint`."""

    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    timeout_seconds: Count | None = None
    max_retries: Count | None = None
    max_response_bytes: Count | None = None
    dimensions: Count | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class HNSWConfig:
    """`embeddings.semantic.embedding_config`."""

    full_context: bool = False
    backend: Literal["candle", "openvino", "openai_compatible"] = "candle"
    model_type: str = "mmbert"
    preload_embeddings: bool = True
    target_dimension: int = 768
    target_layer: int = 22
    enable_soft_matching: bool = True
    top_k: int = 1
    min_score_threshold: float = 0.5
    prototype_scoring: PrototypeScoringConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class EmbeddingModels:
    """`global.model_catalog.embeddings.semantic`."""

    qwen3_model_path: str | None = None
    gemma_model_path: str | None = None
    mmbert_model_path: str = "models/mmbert-embed-32k-2d-matryoshka"
    multimodal_model_path: str | None = None
    bert_model_path: str | None = None
    use_cpu: bool = True
    embedding_config: HNSWConfig | None = None
    endpoint: EmbeddingEndpointConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class EmbeddingCatalog:
    """`global.model_catalog.embeddings`."""

    semantic: EmbeddingModels | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class SystemModels:
    """`global.model_catalog.system`: the artifact of each role."""

    safety: str | None = None
    hazard: str | None = None
    prompt_guard: str | None = None
    domain_classifier: str | None = None
    pii_classifier: str | None = None
    fact_check_classifier: str | None = None
    hallucination_detector: str | None = None
    hallucination_explainer: str | None = None
    feedback_detector: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ClassifierVLLMEndpoint:
    """`external[].llm_endpoint`."""

    address: str | None = None
    port: Port | None = None
    protocol: Literal["http", "https"] | None = None
    name: str | None = None
    use_chat_template: bool = False
    prompt_template: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ExternalModelReasoningConfig:
    """`external[].reasoning`."""

    family: str = attrs.field(default="", metadata=REQUIRED)
    use_reasoning: bool = attrs.field(default=False, metadata=REQUIRED)
    reasoning_effort: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ExternalModelConfig:
    """`global.model_catalog.external[]`: a helper model behind an address."""

    name: str | None = None
    llm_provider: str | None = None
    model_role: (
        Literal[
            "guardrail",
            "classification",
            "scoring",
            "preference",
            "memory_rewrite",
            "memory_extraction",
        ]
        | None
    ) = None
    llm_endpoint: ClassifierVLLMEndpoint | None = None
    llm_model_name: str | None = None
    llm_timeout_seconds: Count | None = None
    parser_type: str = "json"
    threshold: float | None = None
    access_key: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    max_tokens: Count | None = None
    temperature: float | None = None
    reasoning: ExternalModelReasoningConfig | None = None
    max_request_bytes: Count | None = None
    max_response_bytes: Count | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class KnowledgeBaseSource:
    """`kbs[].source`."""

    path: str | None = None
    manifest: str = "labels.json"


@attrs.frozen(repr=False, unsafe_hash=False)
class KnowledgeBaseMetricConfig:
    """`kbs[].metrics[]`."""

    name: str = ""
    type: Literal["group_margin"] | None = None
    positive_group: str | None = None
    negative_group: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class KnowledgeBaseConfig:
    """`global.model_catalog.kbs[]`."""

    name: str = ""
    source: KnowledgeBaseSource | None = None
    threshold: float | None = None
    label_thresholds: Mapping[str, float] = attrs.field(factory=dict)
    groups: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    metrics: tuple[KnowledgeBaseMetricConfig, ...] = ()
    prototype_scoring: PrototypeScoringConfig | None = None


# There unless an entry of the same name takes its place. Source: the reference.
_DEFAULT_DEPLOYMENTS = {
    "hazard": {
        "artifact": "models/Vela-1.0-Encoder-307M-Hazard",
        "revision": "5dd25f2cc3c98f338e6a79b667662d60f936a28d",
        "provider": "candle",
        "device": "cpu",
        "precision": "fp32",
        "input": {"max_tokens": 32_768, "overflow": "reject"},
    }
}


@attrs.frozen(repr=False, unsafe_hash=False)
class ModelCatalog:
    """`global.model_catalog`."""

    bindings: Mapping[str, ModelBinding] = attrs.field(factory=dict)
    deployments: Mapping[str, ModelDeployment] = attrs.field(
        factory=dict, metadata={"schema_default": _DEFAULT_DEPLOYMENTS}
    )
    embeddings: EmbeddingCatalog | None = None
    system: SystemModels | None = None
    external: tuple[ExternalModelConfig, ...] = ()
    kbs: tuple[KnowledgeBaseConfig, ...] | None = None
    modules: ModelModules | None = None
    admission: Mapping[str, AdmissionConfig] = attrs.field(factory=dict)
