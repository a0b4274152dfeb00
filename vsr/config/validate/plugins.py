"""Checks of a decision's plugins."""

from collections.abc import Iterator

from vsr.config.checks import is_header_name, is_header_value
from vsr.config.document.decision_plugin import DecisionPlugin
from vsr.config.document.plugins import (
    FastResponsePluginConfig,
    HeaderMutationPluginConfig,
    HeaderPair,
    PromptCachePluginConfig,
    RAGPluginConfig,
    ResponseCachePluginConfig,
    ShadowDispatchPluginConfig,
)
from vsr.config.document.plugins_compression import (
    ContextCompressionPluginConfig,
    ContextCompressionTargetConfig,
)
from vsr.config.document.plugins_tools import ToolSelectionPluginConfig, ToolsPluginConfig
from vsr.config.names import is_proxy_header
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.models import Models, check_model_name

_NEED_ENABLED = frozenset(
    {
        "context_compression",
        "hallucination",
        "rag",
        "response_cache",
        "response_jailbreak",
        "shadow_dispatch",
        "tool_selection",
        "tools",
    }
)
_RAG_KEYS = {
    "milvus": ("collection",),
    "qdrant": ("collection",),
    "external_api": ("endpoint", "request_format"),
    "mcp": ("server_name", "tool_name"),
    "openai": ("vector_store_id", "api_key"),
    "hybrid": ("primary",),
    "vectorstore": ("vector_store_id",),
}
_CREDENTIAL_HEADERS = frozenset(
    {"authorization", "cookie", "api-key", "x-api-key", "x-goog-api-key"}
)


def check_plugins(
    plugins: tuple[DecisionPlugin, ...], path: Path, models: Models, report: Report
) -> None:
    """Each plugin is there once and says what its type needs."""
    first: dict[str, int] = {}
    for at, plugin in enumerate(plugins):
        place = (*path, at)
        if plugin.type and first.setdefault(plugin.type, at) != at:
            why = f"plugins[{first[plugin.type]}] has it already"
            report.add((*place, "type"), f"the plugin {plugin.type!r} is taken", why, "remove one")
        _check_plugin(plugin, (*place, "configuration"), models, report)


def _check_plugin(plugin: DecisionPlugin, path: Path, models: Models, report: Report) -> None:
    config = plugin.configuration
    if plugin.type in _NEED_ENABLED and getattr(config, "enabled", None) is None:
        report.add((*path, "enabled"), "is missing", "this plugin wants it said", "add it")
    match config:
        case HeaderMutationPluginConfig():
            _check_headers(config, path, report)
        case ShadowDispatchPluginConfig():
            _check_shadow(config, path, models, report)
        case _:
            for key, what, why, mend in _faults(config):
                report.add((*path, *key), what, why, mend)


_Fault = tuple[Path, str, str, str]


def _faults(config: object) -> Iterator[_Fault]:
    match config:
        case FastResponsePluginConfig():
            if not config.message.strip():
                yield ("message",), "is missing or blank", "it is the answer", "write one"
        case ToolsPluginConfig():
            yield from _tools_faults(config)
        case ToolSelectionPluginConfig() | PromptCachePluginConfig():
            yield from _targets_faults(config)
        case RAGPluginConfig():
            yield from _rag_faults(config)
        case ResponseCachePluginConfig():
            yield from _cache_faults(config)
        case ContextCompressionPluginConfig():
            yield from _compression_faults(config)
        case _:
            pass


def _check_headers(config: HeaderMutationPluginConfig, path: Path, report: Report) -> None:
    for key in ("add", "update"):
        pairs: tuple[HeaderPair, ...] = getattr(config, key)
        for at, pair in enumerate(pairs):
            _check_pair(pair, (*path, key, at), report)
    for at, name in enumerate(config.delete):
        _check_header_name(name, (*path, "delete", at), report)


def _check_pair(pair: HeaderPair, path: Path, report: Report) -> None:
    _check_header_name(pair.name, (*path, "name"), report)
    if pair.value and not is_header_value(pair.value):
        why = "it begins or ends with a blank, or holds other than visible ASCII"
        report.add((*path, "value"), "a header line can't carry this value", why)


def _check_header_name(name: str, path: Path, report: Report) -> None:
    if not is_header_name(name.strip()):
        report.add(path, "is missing or no header name", mend="name a header")
    elif is_proxy_header(name):
        report.warn(path, "has no effect: the header controls the proxy in front", "remove it")


def _check_shadow(
    config: ShadowDispatchPluginConfig, path: Path, models: Models, report: Report
) -> None:
    if config.enabled and not config.model:
        report.add((*path, "model"), "is missing", "it gets the copies", "name a model")
    elif config.model:
        check_model_name((*path, "model"), config.model, models, report)
    for at, name in enumerate(config.forward_headers):
        lower = name.strip().lower()
        is_user_key = lower.startswith("x-user-") and lower.endswith("-key")
        if lower.startswith(":") or lower in _CREDENTIAL_HEADERS or is_user_key:
            why = "it may carry a credential or belongs to the connection"
            report.add((*path, "forward_headers", at), "can't be forwarded", why, "remove it")


def _tools_faults(config: ToolsPluginConfig) -> Iterator[_Fault]:
    has_lists = bool(config.allow_tools or config.block_tools)
    if config.mode == "filtered" and not has_lists:
        yield (), "filters by nothing", "", "give allow_tools or block_tools"
    if config.mode != "filtered" and has_lists:
        why = f"the mode is {config.mode!r}"
        yield (), "has lists that nothing reads", why, "write mode: filtered or remove them"
    if config.strip_tool_history and config.mode != "none":
        why = "only mode none strips it"
        yield ("strip_tool_history",), "is out of place", why, "remove it"
    retrieval = config.dynamic_retrieval
    looks_back = retrieval is not None and retrieval.strategy == "hybrid_history"
    if looks_back and not (retrieval and retrieval.history_window):
        place = ("dynamic_retrieval", "history_window")
        yield place, "must be at least 1", "hybrid_history looks back", ""


def _targets_faults(
    config: ToolSelectionPluginConfig | PromptCachePluginConfig,
) -> Iterator[_Fault]:
    if isinstance(config, PromptCachePluginConfig):
        if len(set(config.targets)) != len(config.targets):
            yield ("targets",), "names one twice", "", "keep one of the two"
    elif config.mode == "filter" and config.tools_db_path:
        why = "mode filter chooses from the request's own tools"
        yield ("tools_db_path",), "is out of place", why, "remove it"


def _rag_faults(config: RAGPluginConfig) -> Iterator[_Fault]:
    if config.backend is None:
        yield ("backend",), "is missing", "", f"write {', '.join(_RAG_KEYS)}"
        return
    for key in _RAG_KEYS[config.backend]:
        if config.enabled and not config.backend_config.get(key):
            why = f"the backend {config.backend!r} needs it"
            yield ("backend_config", key), "is missing", why, "add it"
    rerank = config.rerank
    if rerank is not None and config.backend != "vectorstore":
        yield ("rerank",), "is out of place", "only vectorstore is ranked again", "remove it"
    elif rerank is not None and (rerank.top_k or 0) > (config.top_k or rerank.top_k or 0):
        yield ("rerank", "top_k"), "is above top_k", "", "lower it"


def _cache_faults(config: ResponseCachePluginConfig) -> Iterator[_Fault]:
    for old, value, new, block in (
        (
            "allow_request_controls",
            config.allow_request_controls,
            "request_controls",
            config.request_controls,
        ),
        ("control_header", config.control_header, "request_controls", config.request_controls),
        ("similarity_threshold", config.similarity_threshold, "semantic", config.semantic),
    ):
        if value is not None and block is not None:
            yield (old,), f"excludes {new}", "it is the older spelling", "remove it"


def _compression_faults(config: ContextCompressionPluginConfig) -> Iterator[_Fault]:
    budget = config.budget
    if budget is not None:
        target, trigger = budget.target_tokens, budget.trigger_tokens
        if isinstance(target, int) and isinstance(trigger, int) and target >= trigger:
            why = f"that is {trigger}"
            yield ("budget", "target_tokens"), "must be below trigger_tokens", why, "lower it"
    targets = config.targets
    for key in () if targets is None else ("tool_outputs", "history", "rag", "memory"):
        part: ContextCompressionTargetConfig | None = getattr(targets, key)
        least = 0 if part is None else part.min_tokens or 0
        if part is not None and least and (part.target_tokens or 0) >= least:
            why = f"that is {least}"
            yield ("targets", key, "target_tokens"), "must be below min_tokens", why, "lower it"
    scoring = config.scoring
    if scoring is not None and scoring.method != "bm25" and not scoring.embedding_model_ref:
        why = f"the method {scoring.method!r} embeds"
        yield ("scoring", "embedding_model_ref"), "is missing", why, "name a model"
