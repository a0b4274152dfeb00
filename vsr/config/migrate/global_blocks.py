"""Settings of the whole Router that stood elsewhere: into the blocks of `global`."""

from ruamel.yaml.comments import CommentedSeq

from vsr.config.migrate.draft import Draft, Place

_ROUTER = (
    "auto_model_name",
    "auto_model_names",
    "clear_route_cache",
    "config_source",
    "include_config_models_in_list",
    "model_selection",
    "skip_processing",
    "strategy",
)
_SERVICES = ("api", "authz", "observability", "ratelimit", "response_api", "router_replay")
_STORES = ("memory", "response_cache", "semantic_cache", "vector_store")
_MODULES = ("feedback_detector", "modality_detector", "prompt_compression", "prompt_guard")

TARGETS: dict[str, tuple[str, ...]] = {
    **{key: ("router", key) for key in _ROUTER},
    **{key: ("services", key) for key in _SERVICES},
    **{key: ("stores", key) for key in _STORES},
    **{key: ("integrations", key) for key in ("looper", "tools")},
    **{key: ("model_catalog", "modules", key) for key in _MODULES},
    "streamed_body_mode": ("router", "streamed_body", "enabled"),
    "max_streamed_body_bytes": ("router", "streamed_body", "max_bytes"),
    "streamed_body_timeout_sec": ("router", "streamed_body", "timeout_sec"),
    "system_models": ("model_catalog", "system"),
    "external_models": ("model_catalog", "external"),
    "embedding_models": ("model_catalog", "embeddings", "semantic"),
    "classifier": ("model_catalog", "modules", "classifier"),
    "hallucination_mitigation": ("model_catalog", "modules", "hallucination_mitigation"),
}
"""Key of the flat layout -> its path below `global`."""

_MODULE_PARTS: dict[str, dict[str, tuple[str, str]]] = {
    "classifier": {
        "category_model": ("domain", "domain_classifier"),
        "pii_model": ("pii", "pii_classifier"),
        "mcp_category_model": ("mcp", ""),
        "preference_model": ("preference", ""),
    },
    "hallucination_mitigation": {
        "fact_check_model": ("fact_check", "fact_check_classifier"),
        "hallucination_model": ("detector", "hallucination_detector"),
        "nli_model": ("explainer", "hallucination_explainer"),
    },
}
"""Module -> old name of a part -> its new name, and the `model_ref` that its `model_id` implied."""

_BERT: dict[str, tuple[str, ...]] = {
    "model_id": ("bert_model_path",),
    "use_cpu": ("use_cpu",),
    "threshold": ("embedding_config", "min_score_threshold"),
}


_GROUPS = ("runtime", "models", "modules")
"""Mappings that `global` once had."""
_RENAMED = {
    ("models", "system"): "system_models",
    ("models", "external"): "external_models",
}


def migrate_global(draft: Draft) -> None:
    """Move every setting to its block: from `global` itself, from the root, from `providers`."""
    root = draft.root
    _move_router(draft)
    _move_semantic(draft)
    _move_groups(draft)
    for home in (root.child("global"), root):
        if home:
            _move_bert_model(draft, home)
            for key in [key for key in home.node if key in TARGETS]:
                _move_setting(draft, home, key)
    providers = root.child("providers")
    if providers and providers.has("external_models"):
        _move_setting(draft, providers, "external_models")


def _move_router(draft: Draft) -> None:
    """Empty `global.runtime.router`."""
    router = draft.root.child("global", "runtime", "router")
    for key in list(router.node) if router else ():
        if router and key in TARGETS:
            _move_setting(draft, router, key)
        elif router:
            draft.move(router, key, draft.ensure(draft.root, "global", "router"), key)
    runtime = draft.root.child("global", "runtime")
    if runtime and router and not router.node:
        target = draft.ensure(draft.root, "global")
        draft.comments.move((runtime.node, "router"), (target.node, "router"))


def _move_semantic(draft: Draft) -> None:
    """Empty `global.models.embeddings`."""
    embeddings = draft.root.child("global", "models", "embeddings")
    if embeddings and embeddings.has("semantic"):
        _move_setting(draft, embeddings, "semantic", "embedding_models")


def _move_groups(draft: Draft) -> None:
    """Empty the groups of `global`, and drop them."""
    top = draft.root.child("global")
    if not top:
        return
    for group in _GROUPS:
        home = top.child(group)
        for key in list(home.node) if home else ():
            name = _RENAMED.get((group, key), key)
            if home and name in TARGETS:
                _move_setting(draft, home, key, name)
            elif home:
                draft.drop_if_empty(home, key)
        draft.drop_if_empty(top, group)


def _move_setting(draft: Draft, home: Place, key: str, name: str = "") -> None:
    name = name or key
    *blocks, new = TARGETS[name]
    _rename_parts(draft, home, key, name)
    target = draft.ensure(draft.root, "global", *blocks)
    old = home.child(key)
    there = target.child(new)
    names = home.get(key)
    if name == "auto_model_names" and isinstance(names, CommentedSeq) and not target.has(new):
        # Unlike elsewhere, an empty list says something here: no automatic names.
        draft.move_even_empty(home, key, target, new)
    elif old and there and there.node and name in _MODULE_PARTS:
        draft.move_all(old, there)
        draft.drop_if_empty(home, key)
    else:
        draft.move(home, key, target, new)


def _rename_parts(draft: Draft, home: Place, key: str, name: str) -> None:
    """Rename the parts of a module of the flat layout, and say which model each refers to."""
    module = home.child(key)
    if not module:
        return
    if name in {"prompt_guard", "feedback_detector"}:
        _refer(module, name)
    for old, (new, model_ref) in _MODULE_PARTS.get(name, {}).items():
        draft.rename(module, old, new)
        part = module.child(new)
        if part and model_ref:
            _refer(part, model_ref)


def _refer(part: Place, model_ref: str) -> None:
    if part.has("model_id") and not part.has("model_ref"):
        part.node["model_ref"] = model_ref


def _move_bert_model(draft: Draft, home: Place) -> None:
    bert = home.child("bert_model")
    if bert:
        semantic = draft.ensure(draft.root, "global", "model_catalog", "embeddings", "semantic")
        draft.comments.move((home.node, "bert_model"), (semantic.node, _BERT["model_id"][0]))
        for old, (*blocks, new) in _BERT.items():
            if bert.has(old):
                draft.move(bert, old, draft.ensure(semantic, *blocks), new)
    if home.has("bert_model"):
        draft.drop_if_empty(home, "bert_model")
