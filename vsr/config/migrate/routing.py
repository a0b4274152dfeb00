"""Signals, decisions and cards that stood elsewhere: into `routing`."""

from ruamel.yaml.comments import CommentedSeq

from vsr.config.migrate.draft import Draft

SIGNALS = {
    "keyword_rules": "keywords",
    "embedding_rules": "embeddings",
    "categories": "domains",
    "fact_check_rules": "fact_check",
    "user_feedback_rules": "user_feedbacks",
    "reask_rules": "reasks",
    "preference_rules": "preferences",
    "language_rules": "language",
    "context_rules": "context",
    "structure_rules": "structure",
    "complexity_rules": "complexity",
    "modality_rules": "modality",
    "role_bindings": "role_bindings",
    "jailbreak": "jailbreak",
    "pii": "pii",
    "kb": "kb",
    "conversation": "conversation",
    "events": "events",
    "metadata": "metadata",
    "classifiers": "classifiers",
}
"""Top-level list of the flat layout -> its name under `routing.signals`."""


def migrate_routing(draft: Draft) -> None:
    """Move `signals`, `decisions`, the flat lists of signals and `routing.models`."""
    root = draft.root
    _merge_block(draft, "signals")
    if root.has("decisions"):
        draft.move(root, "decisions", draft.ensure(root, "routing"), "decisions")
    for old, new in SIGNALS.items():
        if isinstance(root.get(old), CommentedSeq):
            draft.move(root, old, draft.ensure(root, "routing", "signals"), new)
    routing = root.child("routing")
    if routing:
        draft.rename(routing, "models", "modelCards")


def _merge_block(draft: Draft, key: str) -> None:
    """Move a top-level mapping into `routing`, key by key if there is one already."""
    root = draft.root
    block = root.child(key)
    old = root.child("routing", key)
    if block and old and old.node:
        draft.move_all(block, old)
        draft.drop_if_empty(root, key)
    elif root.has(key):
        draft.move(root, key, draft.ensure(root, "routing"), key)
