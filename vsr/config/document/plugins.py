"""`routing.decisions[].plugins[]` but for the tool plugins. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.kinds import AutoOrPositive, Bounds, Count, Fraction, Positive
from vsr.config.document.objects import SECRET, DocumentObject


class SystemPromptPluginConfig(DocumentObject, frozen=True):
    """Plugin `system_prompt`; it is on when it has a text."""

    enabled: bool | None = None
    system_prompt: str = ""
    mode: Literal["replace", "insert"] = "insert"


class HeaderPair(DocumentObject, frozen=True):
    """A header that `header_mutation` sets."""

    name: str = ""
    value: Annotated[str, SECRET] = ""


class HeaderMutationPluginConfig(DocumentObject, frozen=True):
    """Plugin `header_mutation`."""

    add: tuple[HeaderPair, ...] = ()
    update: tuple[HeaderPair, ...] = ()
    delete: tuple[str, ...] = ()


class RequestParamsPluginConfig(DocumentObject, frozen=True):
    """Plugin `request_params`."""

    default_max_tokens: AutoOrPositive | None = None
    blocked_params: tuple[str, ...] = ()
    max_tokens_limit: Positive | None = None
    max_n: Positive | None = None
    strip_unknown: bool = False


class FastResponsePluginConfig(DocumentObject, frozen=True):
    """Plugin `fast_response`."""

    message: str = ""


class ResponseCacheSemanticConfig(DocumentObject, frozen=True):
    """`semantic` of plugin `response_cache`."""

    similarity_threshold: Fraction | None = None


class ResponseCacheRequestControlsConfig(DocumentObject, frozen=True):
    """`request_controls` of plugin `response_cache`."""

    enabled: bool = False
    header: str | None = None
    allowed: tuple[Literal["no-cache", "no-store", "bypass", "max-age", "ttl"], ...] = ()
    max_ttl_seconds: Count | None = None


class ResponseCachePersonalizedConfig(DocumentObject, frozen=True):
    """`personalized` of plugin `response_cache`."""

    mode: Literal["disabled", "exact"] | None = None


class ResponseCacheRevisionConfig(DocumentObject, frozen=True):
    """`revision` of plugin `response_cache`."""

    cache_epoch: str | None = None
    model_revision: str | None = None
    prompt_revision: str | None = None
    policy_revision: str | None = None


class ResponseCachePluginConfig(DocumentObject, frozen=True):
    """Plugin `response_cache`."""

    enabled: bool | None = None
    mode: Literal["semantic", "exact", "exact_then_semantic"] | None = None
    scope: Literal["user", "team", "tenant", "global"] | None = None
    semantic: ResponseCacheSemanticConfig | None = None
    request_controls: ResponseCacheRequestControlsConfig | None = None
    personalized: ResponseCachePersonalizedConfig | None = None
    revision: ResponseCacheRevisionConfig | None = None
    allow_request_controls: bool | None = None
    control_header: str | None = None
    similarity_threshold: Fraction | None = None
    ttl_seconds: Count | None = None


class PromptCachePluginConfig(DocumentObject, frozen=True):
    """Plugin `prompt_cache`."""

    enabled: bool = False
    ttl: Literal["5m", "1h"] | None = None
    targets: tuple[Literal["instructions", "tools"], ...] = ()
    on_unsupported: Literal["skip", "reject"] | None = None


class MemoryReflectionConfig(DocumentObject, frozen=True):
    """`reflection` of plugin `memory` and of `global.stores.memory`."""

    enabled: bool | None = None
    algorithm: str | None = None
    max_inject_tokens: int | None = None
    recency_decay_days: int | None = None
    dedup_threshold: float | None = None
    block_patterns: tuple[str, ...] = ()


class MemoryPluginConfig(DocumentObject, frozen=True):
    """Plugin `memory`."""

    enabled: bool = True
    retrieval_limit: Positive | None = None
    similarity_threshold: Fraction | None = None
    auto_store: bool | None = None
    hybrid_search: bool | None = None
    hybrid_mode: str | None = None
    reflection: MemoryReflectionConfig | None = None


class HallucinationPluginConfig(DocumentObject, frozen=True):
    """Plugin `hallucination`."""

    enabled: bool | None = None
    use_nli: bool = False
    hallucination_action: Literal["header", "body", "none"] | None = None
    unverified_factual_action: Literal["header", "body", "none"] | None = None
    include_hallucination_details: bool = False


class ResponseJailbreakPluginConfig(DocumentObject, frozen=True):
    """Plugin `response_jailbreak`."""

    enabled: bool | None = None
    threshold: Fraction | None = None
    action: Literal["header", "block", "none"] | None = None


class RAGRerankConfig(DocumentObject, frozen=True):
    """`rerank` of plugin `rag`."""

    top_k: Positive | None = None


class RAGPluginConfig(DocumentObject, frozen=True):
    """Plugin `rag`."""

    enabled: bool | None = None
    backend: (
        Literal["milvus", "qdrant", "external_api", "mcp", "openai", "hybrid", "vectorstore"] | None
    ) = None
    similarity_threshold: Fraction | None = None
    top_k: Positive | None = None
    max_context_length: Positive | None = None
    injection_mode: Literal["tool_role", "system_prompt"] = "tool_role"
    rerank: RAGRerankConfig | None = None
    backend_config: Annotated[Mapping[str, object], SECRET] = msgspec.field(default_factory=dict)
    on_failure: Literal["skip", "block", "warn"] | None = None
    cache_results: bool = False
    cache_ttl_seconds: Count | None = None
    min_confidence_threshold: Fraction | None = None


class RouterReplayPluginConfig(DocumentObject, frozen=True):
    """Plugin `router_replay`."""

    enabled: bool = True
    max_records: Positive = 10_000
    capture_request_body: bool = True
    capture_response_body: bool = True
    max_body_bytes: Positive = 4_096
    max_tool_trace_bytes: Count | None = None
    max_tool_trace_steps: Count = 100


class ShadowDispatchPluginConfig(DocumentObject, frozen=True):
    """Plugin `shadow_dispatch`."""

    enabled: bool | None = None
    model: str | None = None
    sample_rate: Fraction | None = None
    max_concurrency: Positive = 2
    max_queue_depth: Count = 8
    timeout_seconds: Positive = 30
    max_response_bytes: Positive = 1_048_576
    max_retries: Annotated[int, Bounds(0, 3)] | None = None
    capture_response_body: bool = False
    max_capture_bytes: Count = 4_096
    tls_skip_verify: bool = False
    forward_headers: tuple[str, ...] = ()
