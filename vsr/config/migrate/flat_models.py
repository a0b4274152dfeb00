"""The flat layout: `model_config`, `vllm_endpoints` and `provider_profiles`."""

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from vsr.config.migrate.draft import Draft, Place
from vsr.config.migrate.models import add_model, models
from vsr.config.migrate.round_trip import copied, is_empty
from vsr.config.migrate.spots import ITEM
from vsr.config.position import dotted

_CONFIG = "model_config"
_ENDPOINTS = "vllm_endpoints"
_PROFILES = "provider_profiles"


def migrate_flat_models(draft: Draft) -> None:
    """Turn each entry of `model_config` into a provider model with the backends it prefers."""
    root = draft.root
    endpoints = {
        place.text("name") or dotted(place.path): place for place in root.items(_ENDPOINTS)
    }
    for endpoint in endpoints.values():
        # In the layout before `preferred_endpoints`, a model could do without an entry.
        for name in _served(endpoint):
            draft.ensure(root, _CONFIG).node.setdefault(name, None)
    config = root.child(_CONFIG)
    used: set[str] = set()
    for name in list(config.node) if config else ():
        entry = config.child(name) if config else None
        if config and not entry and is_empty(config.get(name)):
            # A model without settings was written as `name:`.
            config.node[name] = CommentedMap()
            entry = config.child(name)
        if config and entry:
            used.update(_resolve(draft, entry, name, endpoints))
            _join(draft, config, entry, name)
    _remove_parts(draft, [name for name in endpoints if name not in used])


def _join(draft: Draft, config: Place, entry: Place, name: str) -> None:
    """Make an entry a provider model, or part of the one that has its name."""
    model = next((model for model in models(draft) if model.text("name") == name.strip()), None)
    if model is None:
        add_model(draft, config, name)
    else:
        draft.move_all(entry, model)
        draft.drop_if_empty(config, name)


def _resolve(draft: Draft, entry: Place, name: str, endpoints: dict[str, Place]) -> set[str]:
    """Replace the endpoints that an entry names by backends; return their names."""
    draft.rename(entry, "model_id", "provider_model_id")
    preferred = entry.get("preferred_endpoints")
    if isinstance(preferred, CommentedSeq):
        names = [str(item).strip() for item in preferred]
    else:
        names = [key for key, endpoint in endpoints.items() if name in _served(endpoint)]
    known = [endpoint for endpoint in names if endpoint in endpoints]
    if len(known) < len(names):
        mend = "declare it there, or remove the name"
        what = f"names an endpoint that is not declared under {_ENDPOINTS}"
        draft.refuse(entry, "preferred_endpoints", what, mend)
    if isinstance(preferred, CommentedSeq):
        draft.comments.hand_down(preferred, ITEM, entry.node, "preferred_endpoints")
    if known:
        backends = CommentedSeq([_backend(draft, endpoints[endpoint]) for endpoint in known])
        if entry.has("preferred_endpoints"):
            draft.rename(entry, "preferred_endpoints", "backend_refs")
        entry.node["backend_refs"] = backends
    elif entry.has("preferred_endpoints"):
        draft.remove(entry, "preferred_endpoints", "removed, it was empty")
    return set(known)


def _served(endpoint: Place) -> list[str]:
    served = endpoint.get("models")
    names = served if isinstance(served, CommentedSeq) else ()
    return [name for name in names if isinstance(name, str)]


def _backend(draft: Draft, endpoint: Place) -> CommentedMap:
    """Return the backend that an endpoint and its profile make; the first one has its comments."""
    backend = CommentedMap()
    draft.comments.hand_down(endpoint.node, ITEM, backend, "name")
    fields = {key: copied(value) for key, value in endpoint.node.items() if not is_empty(value)}
    profile = _profile(draft, endpoint)
    for key in ("address", "port", "provider_profile", "models"):
        fields.pop(key, None)
    if "name" in fields:
        backend["name"] = fields.pop("name")
    for key, value in (profile.node if profile else {}).items():
        if not is_empty(value):
            backend["provider" if key == "type" else key] = copied(value)
    if "base_url" not in backend and endpoint.text("address"):
        backend["endpoint"] = _authority(endpoint.text("address"), endpoint.text("port"))
    if "provider" in backend:
        fields.pop("type", None)
    backend.update({key: value for key, value in fields.items() if key not in backend})
    return backend


def _profile(draft: Draft, endpoint: Place) -> Place | None:
    name = endpoint.text("provider_profile")
    profile = draft.root.child(_PROFILES, name) if name else None
    if name and profile is None:
        mend = "declare it there, or remove the reference"
        draft.refuse(endpoint, "provider_profile", f"is not declared under {_PROFILES}", mend)
    return profile


def _authority(address: str, port: str) -> str:
    if not port:
        return address
    host = f"[{address}]" if ":" in address and not address.startswith("[") else address
    return f"{host}:{port}"


def _remove_parts(draft: Draft, unused: list[str]) -> None:
    root = draft.root
    heir = "providers"
    draft.drop_if_empty(root, _CONFIG, heir=heir)
    rest = f"; no model names {', '.join(unused)}" if unused else ""
    if root.has(_ENDPOINTS):
        draft.remove(root, _ENDPOINTS, f"removed, each model has its own backends{rest}", heir=heir)
    if root.has(_PROFILES):
        draft.remove(root, _PROFILES, "removed, the backends have what they use of it", heir=heir)
