"""The plugins of `routing.decisions[].plugins[]` about tools. Defaults are the reference's."""

from typing import Literal

from vsr.config.document.kinds import Count, Fraction, NotNegative
from vsr.config.document.objects import DocumentObject


class DynamicRetrievalWeights(DocumentObject, frozen=True):
    """`dynamic_retrieval.weights` of plugin `tools`."""

    semantic: NotNegative | None = None
    history: NotNegative | None = None
    decision_prior: NotNegative | None = None
    repetition_penalty: NotNegative | None = None


class DynamicRetrievalConfig(DocumentObject, frozen=True):
    """`dynamic_retrieval` of plugin `tools`."""

    enabled: bool = False
    strategy: Literal["semantic_only", "hybrid_history"] | None = None
    history_window: Count | None = None
    weights: DynamicRetrievalWeights | None = None
    min_history_confidence: Fraction | None = None
    fallback_on_low_confidence: bool = False


class ToolsPluginConfig(DocumentObject, frozen=True):
    """Plugin `tools`."""

    enabled: bool | None = None
    mode: Literal["passthrough", "none", "filtered"] = "passthrough"
    semantic_selection: bool | None = None
    allow_tools: tuple[str, ...] = ()
    block_tools: tuple[str, ...] = ()
    strip_tool_history: bool = False
    strategy: str | None = None
    dynamic_retrieval: DynamicRetrievalConfig | None = None


class ToolFilteringWeights(DocumentObject, frozen=True):
    """`advanced_filtering.weights`."""

    embed: float | None = None
    lexical: float | None = None
    tag: float | None = None
    name: float | None = None
    category: float | None = None


class HybridHistoryToolRetrievalConfig(DocumentObject, frozen=True):
    """`advanced_filtering.hybrid_history`."""

    history_horizon: int = 8
    min_history_steps: int | None = None
    history_confidence_threshold: float | None = None
    weight_semantic: float | None = None
    weight_history_transition: float | None = None
    weight_decision_prior: float | None = None
    repetition_penalty_strength: float | None = None


class AdvancedToolFilteringConfig(DocumentObject, frozen=True):
    """`advanced_filtering` of plugin `tool_selection` and of `global.integrations.tools`."""

    enabled: bool = False
    retrieval_strategy: Literal["weighted", "hybrid_history"] | None = None
    candidate_pool_size: Count | None = None
    min_lexical_overlap: Count | None = None
    min_combined_score: Fraction | None = None
    weights: ToolFilteringWeights | None = None
    use_category_filter: bool | None = None
    category_confidence_threshold: Fraction | None = None
    allow_tools: tuple[str, ...] = ()
    block_tools: tuple[str, ...] = ()
    hybrid_history: HybridHistoryToolRetrievalConfig | None = None


class ToolSelectionPluginConfig(DocumentObject, frozen=True):
    """Plugin `tool_selection`."""

    enabled: bool | None = None
    mode: Literal["add", "filter"] = "add"
    tools_db_path: str | None = None
    top_k: Count | None = None
    similarity_threshold: float | None = None
    advanced_filtering: AdvancedToolFilteringConfig | None = None
    strategy: str | None = None
    fallback_to_empty: bool | None = None
    relevance_threshold: Fraction | None = None
    preserve_count: Count | None = None
