"""`routing.decisions[].algorithm`: how a candidate is chosen. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from vsr.config.document.graphs import GraphStream
from vsr.config.document.kinds import Count, Fraction, NotNegative, Percentile, Positive
from vsr.config.document.looper_algorithms import (
    ConfidenceAlgorithmConfig,
    FusionAlgorithmConfig,
    RatingsAlgorithmConfig,
    ReMoMAlgorithmConfig,
    WorkflowsAlgorithmConfig,
)
from vsr.config.document.objects import DocumentObject

AlgorithmType = Literal[
    "automix",
    "confidence",
    "fusion",
    "graph",
    "hybrid",
    "kmeans",
    "knn",
    "latency_aware",
    "mlp",
    "multi_factor",
    "prompt",
    "ratings",
    "remom",
    "router_dc",
    "static",
    "svm",
    "workflows",
]


class RouterDCSelectionConfig(DocumentObject, frozen=True):
    """`router_dc`."""

    temperature: float = 0.07
    dimension_size: int = 768
    min_similarity: float = 0.3
    use_query_contrastive: bool = False
    use_model_contrastive: bool = False
    require_descriptions: bool = False
    use_capabilities: bool = False


class HybridSelectionConfig(DocumentObject, frozen=True):
    """`hybrid`; the weights must not all be 0."""

    experience_weight: NotNegative = 0.3
    router_dc_weight: NotNegative = 0.3
    automix_weight: NotNegative = 0.2
    cost_weight: NotNegative = 0.2
    quality_gap_threshold: float = 0.1
    normalize_scores: bool = False


class LatencyAwareAlgorithmConfig(DocumentObject, frozen=True):
    """`latency_aware`: at least one percentile."""

    tpot_percentile: Percentile | None = None
    ttft_percentile: Percentile | None = None
    description: str | None = None


class MultiFactorPriorityConfig(DocumentObject, frozen=True):
    """`multi_factor.objective.priorities[]`."""

    factor: Literal["quality", "latency", "cost", "load"] | None = None
    tolerance: Fraction = 0.0


class MultiFactorObjectiveConfig(DocumentObject, frozen=True):
    """`multi_factor.objective`."""

    strategy: Literal["weighted", "lexicographic"] = "weighted"
    priorities: tuple[MultiFactorPriorityConfig, ...] = ()


class MultiFactorWeightsConfig(DocumentObject, frozen=True):
    """`multi_factor.weights`."""

    quality: NotNegative | None = None
    latency: NotNegative | None = None
    cost: NotNegative | None = None
    load: NotNegative | None = None


class MultiFactorSLOConfig(DocumentObject, frozen=True):
    """`multi_factor.slo`."""

    max_tpot_ms: NotNegative | None = None
    max_ttft_ms: NotNegative | None = None
    max_cost_per_1m: NotNegative | None = None
    max_inflight: Count | None = None


class QualityEvidenceConfig(DocumentObject, frozen=True):
    """`multi_factor.quality`."""

    index: str | None = None
    on_missing: Literal["exclude", "disable_quality"] | None = None
    min_coverage: Fraction | None = None
    min_score: float | None = None


class MultiFactorSelectionConfig(DocumentObject, frozen=True):
    """`multi_factor`."""

    objective: MultiFactorObjectiveConfig | None = None
    weights: MultiFactorWeightsConfig | None = None
    slo: MultiFactorSLOConfig | None = None
    quality: QualityEvidenceConfig | None = None
    expected_output_tokens: Positive | None = None
    latency_percentile: Percentile = 95
    latency_metric: Literal["ttft", "tpot"] | None = None
    on_no_candidates: Literal["cheapest", "first", "fail"] | None = None


class AutoMixSelectionConfig(DocumentObject, frozen=True):
    """`automix`."""

    verification_threshold: float = 0.7
    max_escalations: int = 2
    cost_aware_routing: bool = False
    cost_quality_tradeoff: float = 0.3
    discount_factor: float = 0.95
    use_logprob_verification: bool = False


class PromptSelectionConfig(DocumentObject, frozen=True):
    """`prompt`: a helper model picks."""

    model: str | None = None
    instructions: str | None = None
    timeout_seconds: Positive | None = None


class AlgorithmBudget(DocumentObject, frozen=True):
    """`algorithm.budget`: ceilings of a request that asks several models; 0 means none."""

    max_prompt_tokens: Count = 0
    max_completion_tokens: Count = 0
    max_total_tokens: Count = 0
    max_estimated_cost: NotNegative = 0.0
    max_wall_time_ms: Count = 0
    on_exhausted: Literal["fail", "respond_best", "skip"] | None = None


class Algorithm(DocumentObject, frozen=True):
    """`routing.decisions[].algorithm`: a type and at most the block of that type."""

    type: AlgorithmType = "static"
    minimum_candidates: Positive | None = None
    confidence: ConfidenceAlgorithmConfig | None = None
    ratings: RatingsAlgorithmConfig | None = None
    remom: ReMoMAlgorithmConfig | None = None
    fusion: FusionAlgorithmConfig | None = None
    workflows: WorkflowsAlgorithmConfig | None = None
    router_dc: RouterDCSelectionConfig | None = None
    automix: AutoMixSelectionConfig | None = None
    hybrid: HybridSelectionConfig | None = None
    latency_aware: LatencyAwareAlgorithmConfig | None = None
    multi_factor: MultiFactorSelectionConfig | None = None
    prompt: PromptSelectionConfig | None = None
    on_error: Literal["skip", "fail", "fallback"] | None = None
    graph: str | None = None
    params: Mapping[str, object] = msgspec.field(default_factory=dict)
    budget: AlgorithmBudget | None = None
    stream: GraphStream | None = None
