"""`global.model_catalog`: the models that signals and plugins use. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.bindings import AdmissionConfig, ModelBinding, ModelDeployment
from vsr.config.document.kinds import Count, Port
from vsr.config.document.model_modules import ModelModules
from vsr.config.document.objects import REQUIRED, SECRET, DocumentObject, SchemaDefault
from vsr.config.document.prototypes import PrototypeScoringConfig


class EmbeddingEndpointConfig(DocumentObject, frozen=True):
    """`embeddings.semantic.endpoint`."""

    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    timeout_seconds: Count | None = None
    max_retries: Count | None = None
    max_response_bytes: Count | None = None
    dimensions: Count | None = None


class HNSWConfig(DocumentObject, frozen=True):
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


class EmbeddingModels(DocumentObject, frozen=True):
    """`global.model_catalog.embeddings.semantic`."""

    qwen3_model_path: str | None = None
    gemma_model_path: str | None = None
    mmbert_model_path: str = "models/mmbert-embed-32k-2d-matryoshka"
    multimodal_model_path: str | None = None
    bert_model_path: str | None = None
    use_cpu: bool = True
    embedding_config: HNSWConfig | None = None
    endpoint: EmbeddingEndpointConfig | None = None


class EmbeddingCatalog(DocumentObject, frozen=True):
    """`global.model_catalog.embeddings`."""

    semantic: EmbeddingModels | None = None


class SystemModels(DocumentObject, frozen=True):
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


class ClassifierVLLMEndpoint(DocumentObject, frozen=True):
    """`external[].llm_endpoint`."""

    address: str | None = None
    port: Port | None = None
    protocol: Literal["http", "https"] | None = None
    name: str | None = None
    use_chat_template: bool = False
    prompt_template: str | None = None


class ExternalModelReasoningConfig(DocumentObject, frozen=True):
    """`external[].reasoning`."""

    family: Annotated[str, REQUIRED] = ""
    use_reasoning: Annotated[bool, REQUIRED] = False
    reasoning_effort: str | None = None


class ExternalModelConfig(DocumentObject, frozen=True):
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
    access_key: Annotated[str | None, SECRET] = None
    max_tokens: Count | None = None
    temperature: float | None = None
    reasoning: ExternalModelReasoningConfig | None = None
    max_request_bytes: Count | None = None
    max_response_bytes: Count | None = None


class KnowledgeBaseSource(DocumentObject, frozen=True):
    """`kbs[].source`."""

    path: str | None = None
    manifest: str = "labels.json"


class KnowledgeBaseMetricConfig(DocumentObject, frozen=True):
    """`kbs[].metrics[]`."""

    name: str = ""
    type: Literal["group_margin"] | None = None
    positive_group: str | None = None
    negative_group: str | None = None


class KnowledgeBaseConfig(DocumentObject, frozen=True):
    """`global.model_catalog.kbs[]`."""

    name: str = ""
    source: KnowledgeBaseSource | None = None
    threshold: float | None = None
    label_thresholds: Mapping[str, float] = msgspec.field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
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


class ModelCatalog(DocumentObject, frozen=True):
    """`global.model_catalog`."""

    bindings: Mapping[str, ModelBinding] = msgspec.field(default_factory=dict)
    deployments: Annotated[Mapping[str, ModelDeployment], SchemaDefault(_DEFAULT_DEPLOYMENTS)] = (
        msgspec.field(default_factory=dict)
    )
    embeddings: EmbeddingCatalog | None = None
    system: SystemModels | None = None
    external: tuple[ExternalModelConfig, ...] = ()
    kbs: tuple[KnowledgeBaseConfig, ...] | None = None
    modules: ModelModules | None = None
    admission: Mapping[str, AdmissionConfig] = msgspec.field(default_factory=dict)
