"""The blocks of algorithms that ask several models. Defaults are the reference's.

Where nothing stands for the default here, it depends on other fields: see `compile.loopers`.
"""

from typing import Literal

from vsr.config.document.kinds import Count, Fraction, NotNegative, Positive
from vsr.config.document.objects import DocumentObject


class HybridWeightsConfig(DocumentObject, frozen=True):
    """`confidence.hybrid_weights`; together 1."""

    logprob_weight: Fraction = 0.5
    margin_weight: Fraction = 0.5


class ConfidenceAlgorithmConfig(DocumentObject, frozen=True):
    """`confidence`: escalate until an answer is sure enough."""

    confidence_method: (
        Literal["avg_logprob", "margin", "hybrid", "self_verify", "automix_entailment"] | None
    ) = None
    threshold: float | None = None
    hybrid_weights: HybridWeightsConfig | None = None
    on_error: Literal["skip", "fail"] | None = None
    escalation_order: Literal["size", "small_to_large", "declared", "cost", "automix"] | None = None
    cost_quality_tradeoff: Fraction | None = None
    token_filter: Literal["all", "tool_call_args"] | None = None
    verifier_server_url: str | None = None
    verifier_timeout_seconds: Count | None = None
    max_response_bytes: Count | None = None


class RatingsAlgorithmConfig(DocumentObject, frozen=True):
    """`ratings`: ask all and return comparable choices."""

    max_concurrent: Positive | None = None
    on_error: Literal["skip", "fail"] | None = None


class ReMoMAlgorithmConfig(DocumentObject, frozen=True):
    """`remom`: rounds of parallel reasoning and a synthesis."""

    breadth_schedule: tuple[Positive, ...] = ()
    model_distribution: Literal["weighted", "equal", "round_robin", "first_only"] | None = None
    temperature: NotNegative = 0.0
    include_reasoning: bool = False
    compaction_strategy: Literal["full", "last_n_tokens"] | None = None
    compaction_tokens: Count = 1000
    synthesis_template: str | None = None
    synthesis_model: str | None = None
    max_concurrent: Count | None = None
    max_completion_tokens: Count | None = None
    round_timeout_seconds: Count | None = None
    min_successful_responses: Count | None = None
    on_error: Literal["skip", "fail"] | None = None
    shuffle_seed: int = 0
    include_intermediate_responses: bool = False
    max_responses_per_round: Count | None = None


class FusionModelOverride(DocumentObject, frozen=True):
    """`fusion.analysis_overrides[]`."""

    model: str = ""
    temperature: NotNegative | None = None
    max_completion_tokens: Count | None = None


class FusionGroundingConfig(DocumentObject, frozen=True):
    """`fusion.grounding`."""

    enabled: bool = False
    reference: Literal["hybrid", "context", "panel"] | None = None
    policy: Literal["weight", "annotate", "filter"] | None = None
    min_score: Fraction | None = None
    min_keep: Count | None = None
    nli_contradiction_penalty: NotNegative | None = None
    on_error: str | None = None


class FusionAlgorithmConfig(DocumentObject, frozen=True):
    """`fusion`: a panel answers, a judge decides."""

    model: str | None = None
    analysis_models: tuple[str, ...] = ()
    analysis_mode: Literal["separate", "one_call", "none"] | None = None
    analysis_overrides: tuple[FusionModelOverride, ...] = ()
    max_concurrent: Count | None = None
    max_completion_tokens: Count | None = None
    round_timeout_seconds: Count | None = None
    min_successful_responses: Count | None = None
    temperature: NotNegative | None = None
    include_analysis: bool | None = None
    on_error: Literal["skip", "fail"] | None = None
    quorum_failure_policy: Literal["fail", "fallback"] | None = None
    quorum_fallback_target: str | None = None
    analysis_template: str | None = None
    synthesis_template: str | None = None
    judge_prompt_version: str | None = None
    include_intermediate_responses: bool | None = None
    grounding: FusionGroundingConfig | None = None


class WorkflowRoleConfig(DocumentObject, frozen=True):
    """`workflows.roles[]`."""

    name: str = ""
    models: tuple[str, ...] = ()
    prompt: str | None = None
    access_list: tuple[str, ...] | None = None


class WorkflowFinalConfig(DocumentObject, frozen=True):
    """`workflows.final`."""

    model: str | None = None
    prompt: str | None = None


class WorkflowPlannerConfig(DocumentObject, frozen=True):
    """`workflows.planner`."""

    model: str | None = None
    max_completion_tokens: Count | None = None


class WorkflowsAlgorithmConfig(DocumentObject, frozen=True):
    """`workflows`: roles work in steps, authored or planned."""

    mode: Literal["static", "dynamic"] | None = None
    template: str | None = None
    roles: tuple[WorkflowRoleConfig, ...] = ()
    final: WorkflowFinalConfig | None = None
    planner: WorkflowPlannerConfig | None = None
    max_steps: Count = 3
    max_parallel: Count = 2
    max_completion_tokens: Count | None = None
    round_timeout_seconds: Count | None = None
    min_successful_responses: Count | None = None
    temperature: NotNegative | None = None
    include_intermediate_responses: bool | None = None
    on_error: str = "fail"
