"""`providers.defaults`, and the reasoning families that were defined there."""

from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.draft import Draft, Place
from vsr.config.migrate.round_trip import copied

_RENAMED = {"default_model": "model", "default_reasoning_effort": "reasoning_effort"}
_FAMILIES = "reasoning_families"


def migrate_defaults(draft: Draft) -> None:
    """Rename the defaults, wherever they stood, and give each model its own `reasoning`."""
    root = draft.root
    homes = [root.child("providers", "defaults"), root, root.child("providers")]
    for home in homes:
        for old, new in _RENAMED.items():
            if home and home.has(old):
                draft.move(home, old, draft.ensure(root, "providers", "defaults"), new)
    _inline_families(draft, [home for home in homes if home and home.has(_FAMILIES)])
    providers = root.child("providers")
    if providers:
        draft.drop_if_empty(providers, "defaults")


def _inline_families(draft: Draft, homes: list[Place]) -> None:
    families: dict[str, tuple[Place, object]] = {}
    for home in homes:
        definitions = home.child(_FAMILIES)
        for name, definition in (definitions.node if definitions else {}).items():
            if definitions and isinstance(definition, CommentedMap):
                # The innermost home comes first, and wins.
                families.setdefault(name, (definitions, definition))
    used = _inline_into_models(draft, families)
    for home in homes:
        definitions = home.child(_FAMILIES)
        unused = [name for name in (definitions.node if definitions else {}) if name not in used]
        rest = f"; no model uses {', '.join(unused)}" if unused else ""
        draft.remove(
            home, _FAMILIES, f"removed, each model has its own reasoning{rest}", heir="providers"
        )


def _inline_into_models(draft: Draft, families: dict[str, tuple[Place, object]]) -> set[str]:
    used: set[str] = set()
    providers = draft.root.child("providers")
    for model in providers.items("models") if providers else ():
        name = model.text("reasoning_family")
        if name and model.says("reasoning"):
            draft.remove(model, "reasoning_family", "removed, the model has its own reasoning")
            continue
        draft.rename(model, "reasoning_family", "reasoning")
        if not name:
            continue
        if name in families:
            definitions, definition = families[name]
            model.node["reasoning"] = copied(definition)
            draft.comments.hand_down(definitions.node, name, model.node, "reasoning")
            used.add(name)
        else:
            family = model.node["reasoning"]
            model.node["reasoning"] = CommentedMap({"family": family})
            path = (*model.path, "reasoning", "family")
            draft.note(path, "is not defined in the document, so it is the built-in one")
    return used
