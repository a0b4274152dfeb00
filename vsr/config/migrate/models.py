"""Provider models: one flat mapping each, with their backends."""

from collections.abc import Iterator

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from vsr.config.migrate.draft import Draft, Place
from vsr.config.position import dotted

CARD_FIELDS = (
    "param_size",
    "context_window_size",
    "description",
    "capabilities",
    "loras",
    "quality_score",
    "modality",
    "tags",
)
"""What a model itself said of its abilities, now said by its card."""


def models(draft: Draft) -> Iterator[Place]:
    """Yield the provider models."""
    providers = draft.root.child("providers")
    return providers.items("models") if providers else iter(())


def migrate_models(draft: Draft) -> None:
    """Flatten `access`, turn `endpoints` into backends, move what belongs on cards."""
    for model in models(draft):
        access = model.child("access")
        if access:
            draft.move_all(access, model)
            draft.drop_if_empty(model, "access")
        _migrate_endpoints(draft, model)
        give_access_key(draft, model)
        move_to_card(draft, model, model.text("name"))


def migrate_backends(draft: Draft) -> None:
    """Rename a backend's `type`, and name the provider that `api_format` once implied."""
    for model in models(draft):
        for backend in model.items("backend_refs"):
            if backend.says("provider") and backend.says("type"):
                draft.remove(backend, "type", "removed, provider says it")
            else:
                draft.rename(backend, "type", "provider")
        if _needs_anthropic(draft, model):
            draft.sequence(model, "backend_refs").append(CommentedMap({"provider": "anthropic"}))
            draft.note((*model.path, "backend_refs"), "added, api_format alone is no backend")


def move_to_card(draft: Draft, model: Place, name: str) -> None:
    """Move what `model` says of its abilities to the card of that name."""
    fields = [field for field in CARD_FIELDS if model.has(field)]
    if not name or not fields:
        return
    routing = draft.ensure(draft.root, "routing")
    card = next((card for card in routing.items("modelCards") if card.text("name") == name), None)
    if card is None:
        cards = draft.sequence(routing, "modelCards")
        cards.append(CommentedMap({"name": model.node.get("name", name)}))
        card = Place(cards[-1], (*routing.path, "modelCards", len(cards) - 1))
    for field in fields:
        draft.move(model, field, card, field)


def give_access_key(draft: Draft, model: Place) -> None:
    """Hand the key of a model to each of its backends that has none."""
    if not model.says("access_key"):
        if model.has("access_key"):
            draft.remove(model, "access_key", "removed, it was empty")
        return
    backends = list(model.items("backend_refs"))
    if not backends:
        mend = "give the model backend_refs, or remove the key"
        draft.refuse(model, "access_key", "has no backend that it could belong to", mend)
        return
    key = model.node["access_key"]
    for backend in backends:
        if not (backend.says("api_key") or backend.says("api_key_env")):
            backend.node["api_key"] = key
    draft.comments.move((model.node, "access_key"), (backends[0].node, "api_key"))
    draft.remove(model, "access_key", "is now api_key of each backend that had no key")


def _migrate_endpoints(draft: Draft, model: Place) -> None:
    if model.says("endpoints") and not isinstance(model.get("endpoints"), CommentedSeq):
        draft.refuse(model, "endpoints", "must be a list", "write it as a list of backends")
        return
    for index, endpoint in enumerate(model.items("endpoints")):
        for key in [key for key in endpoint.node if not endpoint.says(key)]:
            draft.remove(endpoint, key, "removed, it was empty")
        if index == 0 and not endpoint.has("name"):
            # Names are unique in a model, so only the first can have the name of old.
            endpoint.node.insert(0, "name", "primary")
    draft.rename(model, "endpoints", "backend_refs")


def _needs_anthropic(draft: Draft, model: Place) -> bool:
    listeners = draft.root.get("listeners")
    owns_transport = not isinstance(listeners, CommentedSeq) or bool(listeners)
    return (
        owns_transport
        and model.text("api_format") == "anthropic"
        and not model.says("backend_refs")
    )


def add_model(draft: Draft, source: Place, name: str) -> Place:
    """Make an entry of a mapping by model name an item of the provider models; return it."""
    providers = draft.ensure(draft.root, "providers")
    entry = source.node[name]
    entry.insert(0, "name", next(key for key in source.node if key == name))
    items = draft.sequence(providers, "models")
    items.append(entry)
    model = Place(entry, (*providers.path, "models", len(items) - 1))
    draft.comments.move_to_item((source.node, name), entry)
    del source.node[name]
    draft.note((*source.path, name), f"is now {dotted(model.path)}")
    return model
