"""The layout with `model_targets`, `backends` and `auth_profiles`: models with backends."""

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from vsr.config.migrate.draft import Draft, Place
from vsr.config.migrate.models import add_model, models
from vsr.config.migrate.round_trip import copied
from vsr.config.migrate.spots import ITEM

_TARGETS = "model_targets"
_PARTS = ("backends", "auth_profiles")


def migrate_targets(draft: Draft) -> None:
    """Turn each target into a provider model."""
    providers = draft.root.child("providers")
    if not providers:
        return
    targets = providers.child(_TARGETS)
    for name in list(targets.node) if targets else ():
        target = targets.child(name) if targets else None
        if not targets or not target:
            continue
        if any(model.text("name") == name.strip() for model in models(draft)):
            mend = "keep one of the two"
            draft.refuse(targets, name, "is the name of one of providers.models too", mend)
            continue
        _resolve(draft, providers, target)
        add_model(draft, targets, name)
    draft.drop_if_empty(providers, _TARGETS, heir="models")
    for key in _PARTS:
        if providers.has(key) and not providers.has(_TARGETS):
            draft.remove(
                providers, key, "removed, the models have what they use of it", heir="models"
            )


def _resolve(draft: Draft, providers: Place, target: Place) -> None:
    """Replace the references of a target by what they name."""
    refs = target.get("backend_refs")
    found = [
        _backend(draft, providers, target, ref)
        for ref in (refs if isinstance(refs, CommentedSeq) else ())
    ]
    backends = [backend for backend in found if backend is not None]
    profile = _profile(draft, providers, target)
    for backend in backends:
        for key, value in (profile.node if profile else {}).items():
            backend.setdefault(key, copied(value))
    if isinstance(refs, CommentedSeq) and backends:
        draft.comments.hand_down(refs, ITEM, target.node, "backend_refs")
        target.node["backend_refs"] = CommentedSeq(backends)
    if target.has("auth_ref"):
        draft.remove(
            target, "auth_ref", "is now the credential of each backend", heir="backend_refs"
        )


def _profile(draft: Draft, providers: Place, target: Place) -> Place | None:
    name = target.text("auth_ref")
    profile = providers.child("auth_profiles", name) if name else None
    if name and profile is None:
        mend = "declare it there, or remove the reference"
        draft.refuse(target, "auth_ref", "is not declared under providers.auth_profiles", mend)
    return profile


def _backend(draft: Draft, providers: Place, target: Place, ref: object) -> CommentedMap | None:
    if isinstance(ref, CommentedMap):
        return ref
    backend = providers.child("backends", str(ref).strip())
    if backend is None:
        mend = "declare it there, or remove the reference"
        what = "names a backend that is not declared under providers.backends"
        draft.refuse(target, "backend_refs", what, mend)
        return None
    copy = copied(backend.node)
    if isinstance(copy, CommentedMap) and "name" not in copy:
        copy.insert(0, "name", ref)
        draft.comments.hand_down(backend.node, ITEM, copy, "name")
    return copy if isinstance(copy, CommentedMap) else None
