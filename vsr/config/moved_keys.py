"""Keys that the document used to have, by class of the document, and what became of them."""

from collections.abc import Mapping

_RULES = {
    "categories": "domains",
    "complexity_rules": "complexity",
    "context_rules": "context",
    "embedding_rules": "embeddings",
    "fact_check_rules": "fact_check",
    "jailbreak": "jailbreak",
    "keyword_rules": "keywords",
    "language_rules": "language",
    "modality_rules": "modality",
    "pii": "pii",
    "preference_rules": "preferences",
    "reask_rules": "reasks",
    "role_bindings": "role_bindings",
    "structure_rules": "structure",
    "user_feedback_rules": "user_feedbacks",
}
_SETTINGS = {
    "api": "services.api",
    "authz": "services.authz",
    "auto_model_name": "router.auto_model_name",
    "auto_model_names": "router.auto_model_names",
    "bert_model": "model_catalog.embeddings.semantic.bert_model_path",
    "classifier": "model_catalog.modules.classifier",
    "clear_route_cache": "router.clear_route_cache",
    "embedding_models": "model_catalog.embeddings.semantic",
    "external_models": "model_catalog.external",
    "hallucination_mitigation": "model_catalog.modules.hallucination_mitigation",
    "looper": "integrations.looper",
    "max_streamed_body_bytes": "router.streamed_body.max_bytes",
    "memory": "stores.memory",
    "model_selection": "router.model_selection",
    "modules": "model_catalog.modules",
    "observability": "services.observability",
    "prompt_guard": "model_catalog.modules.prompt_guard",
    "ratelimit": "services.ratelimit",
    "response_api": "services.response_api",
    "response_cache": "stores.response_cache",
    "router_replay": "services.router_replay",
    "semantic_cache": "stores.response_cache",
    "strategy": "router.strategy",
    "streamed_body_mode": "router.streamed_body.enabled",
    "streamed_body_timeout_sec": "router.streamed_body.timeout_sec",
    "system_models": "model_catalog.system",
    "tools": "integrations.tools",
    "vector_store": "stores.vector_store",
}
_PROVIDER_DEFAULTS = {
    "default_model": "`model`",
    "default_reasoning_effort": "`reasoning_effort`",
    "reasoning_families": "`reasoning` of each of providers.models",
}
_PROVIDERS = {
    "default_model": "`providers.defaults.model`",
    "default_reasoning_effort": "`providers.defaults.reasoning_effort`",
    "reasoning_families": "`reasoning` of each of providers.models",
}
_MODELS = {
    "auth_profiles": "`providers.models`",
    "backends": "`providers.models`",
    "model_config": "`providers.models`",
    "model_targets": "`providers.models`",
    "provider_profiles": "`providers.models`",
    "vllm_endpoints": "`providers.models`",
}
_PROFILE = {"models": "`modelCards` of the top-level routing"}

MOVED: Mapping[str, Mapping[str, str]] = {
    "BackendRef": {"type": "`provider`"},
    "Document": {
        **{key: f"`routing.signals.{name}`" for key, name in _RULES.items()},
        **{key: f"`global.{name}`" for key, name in _SETTINGS.items()},
        **_PROVIDERS,
        **_MODELS,
        "decisions": "`routing.decisions`",
        "evaluation_catalog": "`evaluation`",
        "signals": "`routing.signals`",
    },
    "Global": {
        **{key: f"`{name}`" for key, name in _SETTINGS.items()},
        "models": "`model_catalog`",
        "runtime": "`router`, `services` and the other blocks",
    },
    "ModelCard": {
        "evaluations": "`evaluation.records`",
        "quality_score": "a record of `evaluation.records`",
    },
    "PromptGuardModule": {"protocol": "`backend`"},
    "ProviderDefaults": _PROVIDER_DEFAULTS,
    "ProviderModel": {
        "access_key": "`api_key` of a backend",
        "endpoints": "`backend_refs`",
        "preferred_endpoints": "`backend_refs`",
        "reasoning_family": "`reasoning`",
    },
    "Providers": {**_PROVIDERS, **_MODELS},
    "RecipeRouting": _PROFILE,
    "Routing": _PROFILE,
}
"""What `vllm-sr config migrate` rewrites; the words say where it goes."""

_UNUSED = "nothing reads it"
_TOOLS = "the plugin `tools` took its place"

REMOVED: Mapping[str, Mapping[str, str]] = {
    "BackendLogging": {"enable_metrics": _UNUSED, "enable_query_log": _UNUSED},
    "Decision": {"allow_tools": _TOOLS, "block_tools": _TOOLS, "tool_scope": _TOOLS},
    "EmbeddingRule": {"model": "the embedding model is set once, in global.model_catalog"},
    "HallucinationDetector": {"on_hallucination_detected": "the plugin `hallucination` says it"},
    "HallucinationModule": {"on_hallucination_detected": "the plugin `hallucination` says it"},
    "LooperConfig": {"retry_count": "retries are `reliability` of a model"},
    "MemoryConfig": {"extraction_batch_size": _UNUSED, "quality_scoring": _UNUSED},
    "MilvusConfig": {"data_management": _UNUSED, "performance": _UNUSED},
    "MilvusDevelopment": {"verbose_errors": _UNUSED},
    "ModalityDetectorConfig": {"prompt_prefixes": _UNUSED},
    "ModelCatalog": {"classifiers": "routing.signals.classifiers took their place"},
    "ModelSelectionConfig": {"momentum": _UNUSED},
    "RecipeRouting": {"modelCards": "model cards are shared and stand under `routing`"},
    "RedisDevelopment": {"verbose_errors": _UNUSED},
    "RouterDCSelectionConfig": {"momentum": _UNUSED},
    "Signals": {
        "category_kb": "`kb` took its place",
        "taxonomy": "`kb` took its place",
    },
    "StructureFeature": {"normalize_by": "write a feature of type `density`"},
    "ToolsConfig": {"model_type": _UNUSED, "target_dim": _UNUSED},
    "WindowedMetricsConfig": {"model_metrics": _UNUSED, "queue_depth_estimation": _UNUSED},
}
"""What is gone, and why; no tool can rewrite it."""

ALIASES: Mapping[str, Mapping[str, str]] = {
    "Stores": {"semantic_cache": "response_cache"},
}
"""Older spellings that are still read."""

_LEARNING = "global.router.learning took its place"

RETIRED_WORDS: Mapping[str, str] = {
    "bandit": _LEARNING,
    "elo": _LEARNING,
    "gmtrouter": _LEARNING,
    "image_gen": "images are no longer made by a plugin",
    "lookup_tables": _LEARNING,
    "personalization": _LEARNING,
    "rl_driven": _LEARNING,
    "session_aware": _LEARNING,
}
"""Words of closed sets that are gone: types of algorithms and plugins."""
