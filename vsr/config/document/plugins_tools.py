"""The plugins of `routing.decisions[].plugins[]` about tools. Defaults are the reference's."""

from typing import Literal

import attrs

from vsr.config.document.kinds import Count, Fraction, NotNegative


@attrs.frozen(repr=False, unsafe_hash=False)
class DynamicRetrievalWeights:
    """`dynamic_retrieval.weights` of plugin `tools`."""

    semantic: NotNegative | None = None
    history: NotNegative | None = None
    decision_prior: NotNegative | None = None
    repetition_penalty: NotNegative | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class DynamicRetrievalConfig:
    """`dynamic_retrieval` of plugin `tools`."""

    enabled: bool = False
    strategy: Literal["semantic_only", "hybrid_history"] | None = None
    history_window: Count | None = None
    weights: DynamicRetrievalWeights | None = None
    min_history_confidence: Fraction | None = None
    fallback_on_low_confidence: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class ToolsPluginConfig:
    """Plugin `tools`."""

    enabled: bool | None = None
    mode: Literal["passthrough", "none", "filtered"] = "passthrough"
    semantic_selection: bool | None = None
    allow_tools: tuple[str, ...] = ()
    block_tools: tuple[str, ...] = ()
    strip_tool_history: bool = False
    strategy: str | None = None
    dynamic_retrieval: DynamicRetrievalConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ToolFilteringWeights:
    """`advanced_filtering.weights`."""

    embed: float | None = None
    lexical: float | None = None
    tag: float | None = None
    name: float | None = None
    category: float | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class HybridHistoryToolRetrievalConfig:
    """`advanced_filtering.hybrid_history`."""

    history_horizon: int = 8
    min_history_steps: int | None = None
    history_confidence_threshold: float | None = None
    weight_semantic: float | None = None
    weight_history_transition: float | None = None
    weight_decision_prior: float | None = None
    repetition_penalty_strength: float | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class AdvancedToolFilteringConfig:
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


@attrs.frozen(repr=False, unsafe_hash=False)
class ToolSelectionPluginConfig:
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
