"""The response cache, once called semantic cache: its store and its plugin."""

from collections.abc import Iterator

from vsr.config.migrate.draft import Draft, Place

_NEW = "response_cache"
_OLD_PLUGINS = frozenset({"semantic-cache", "semantic_cache", "response-cache"})


def migrate_response_cache(draft: Draft) -> None:
    """Rename the store and the plugin; two of either in one place are refused."""
    stores = draft.root.child("global", "stores")
    if stores and stores.has("semantic_cache"):
        draft.rename(stores, "semantic_cache", _NEW)
    for decision in _decisions(draft.root):
        _rename_plugins(draft, decision)


def _decisions(root: Place) -> Iterator[Place]:
    for profile in (root, *root.items("recipes")):
        routing = profile.child("routing")
        if routing:
            yield from routing.items("decisions")


def _rename_plugins(draft: Draft, decision: Place) -> None:
    caches = [
        plugin
        for plugin in decision.items("plugins")
        if plugin.text("type") in {_NEW, *_OLD_PLUGINS}
    ]
    old = [plugin for plugin in caches if plugin.text("type") != _NEW]
    for plugin in caches[1:] if old else ():
        what = f"is a second plugin {_NEW} of this decision"
        draft.refuse(plugin, "type", what, "keep one of them")
    for plugin in old:
        draft.note((*plugin.path, "type"), f"{plugin.text('type')} is now {_NEW}")
        plugin.node["type"] = _NEW
