"""What a migrated document has beyond its own settings, so that it equals the reference's."""

import re

from ruamel.yaml.comments import CommentedSeq

from vsr.config.migrate.draft import Draft
from vsr.config.migrate.models import models

VERSION = "v0.3"
_OLDER = re.compile(r"v?0\.[0-3](?:\.[0-9]+)?")
_BLOCKS = (
    ("router",),
    ("services",),
    ("stores",),
    ("integrations",),
    ("model_catalog", "embeddings"),
    ("model_catalog", "modules", "classifier"),
    ("model_catalog", "modules", "hallucination_mitigation"),
)
"""Below `global`. The reference's own migration leaves them behind, empty where unused."""


def migrate_version(draft: Draft) -> None:
    """Replace the version of an older document."""
    version = draft.root.text("version")
    if version and not _OLDER.fullmatch(version):
        mend = f"write {VERSION} if the document is older than that"
        draft.refuse(draft.root, "version", "is not one that can be migrated", mend)
    elif version and version != VERSION:
        draft.root.node["version"] = VERSION
        draft.note(("version",), f"is now {VERSION}")


def complete(draft: Draft) -> None:
    """Fill in what old documents left out; a canonical document may leave it out as well."""
    root = draft.root
    if not root.has("version"):
        root.node.insert(0, "version", VERSION)
        draft.note(("version",), f"added, {VERSION}")
    for model in models(draft):
        for backend in model.items("backend_refs"):
            if not backend.says("provider"):
                backend.node["provider"] = "vllm"
                draft.note((*backend.path, "provider"), "added, vllm")
    _drop_bare_cards(draft)
    draft.ensure(root, "routing", "signals")
    if root.has("global"):
        for blocks in _BLOCKS:
            draft.ensure(root, "global", *blocks)


def _drop_bare_cards(draft: Draft) -> None:
    """Remove the cards that say no more than a name, which a model has without a card."""
    routing = draft.root.child("routing")
    if not routing:
        return
    cards = routing.node.get("modelCards")
    for card in list(routing.items("modelCards")):
        if isinstance(cards, CommentedSeq) and set(card.node) == {"name"}:
            draft.remove_item(cards, card.node, routing, "modelCards")
            draft.note(("routing", "modelCards"), f"{card.text('name')} removed, only a name")
    draft.drop_if_empty(routing, "modelCards")
