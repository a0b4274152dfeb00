"""Plugin `context_compression`. Defaults are the reference's."""

from typing import Literal

from vsr.config.document.kinds import AutoOrCount, Count
from vsr.config.document.objects import DocumentObject


class ContextCompressionBudgetConfig(DocumentObject, frozen=True):
    """`budget`."""

    trigger_tokens: AutoOrCount | None = None
    target_tokens: AutoOrCount | None = None
    reserve_output_tokens: AutoOrCount | None = None


class ContextCompressionCurrentUserConfig(DocumentObject, frozen=True):
    """`targets.current_user`."""

    mode: Literal["preserve", "truncate"] | None = None


class ContextCompressionTargetConfig(DocumentObject, frozen=True):
    """One of the other `targets`."""

    mode: Literal["preserve", "extractive", "recoverable"] | None = None
    min_tokens: Count | None = None
    target_tokens: Count | None = None


class ContextCompressionTargetsConfig(DocumentObject, frozen=True):
    """`targets`."""

    current_user: ContextCompressionCurrentUserConfig | None = None
    tool_outputs: ContextCompressionTargetConfig | None = None
    history: ContextCompressionTargetConfig | None = None
    rag: ContextCompressionTargetConfig | None = None
    memory: ContextCompressionTargetConfig | None = None


class ContextCompressionScoringConfig(DocumentObject, frozen=True):
    """`scoring`."""

    method: Literal["bm25", "embedding", "hybrid"] = "bm25"
    embedding_model_ref: str | None = None


class ContextCompressionRecoveryConfig(DocumentObject, frozen=True):
    """`recovery`."""

    enabled: bool = False
    store: Literal["redis", "valkey", "response_cache"] | None = None
    ttl_seconds: Count = 900
    max_bytes_per_request: Count = 10_485_760
    max_total_bytes: Count = 268_435_456
    max_retrievals: Count = 8


class ContextCompressionRequestControlsConfig(DocumentObject, frozen=True):
    """`request_controls`."""

    enabled: bool = False
    header: str | None = None
    allowed: tuple[Literal["bypass", "target"], ...] = ()
    max_target_tokens: Count = 16_000


class ContextCompressionPluginConfig(DocumentObject, frozen=True):
    """Plugin `context_compression`."""

    enabled: bool | None = None
    mode: Literal["auto", "always"] | None = None
    budget: ContextCompressionBudgetConfig | None = None
    targets: ContextCompressionTargetsConfig | None = None
    scoring: ContextCompressionScoringConfig | None = None
    recovery: ContextCompressionRecoveryConfig | None = None
    request_controls: ContextCompressionRequestControlsConfig | None = None
    failure_mode: Literal["fail_open", "fail_closed"] | None = None
