"""The body of `GET /v1/models`, made once per configuration."""

import msgspec

from vsr.resources.snapshot import Snapshot

_OWNER = "vllm-semantic-router"


def render_model_list(snapshot: Snapshot, *, created: int) -> bytes:
    """Return the list as JSON.

    Args:
        snapshot: automatic names and entrypoints come first, in authored order, then the
            configured models if the document asks for them.
        created: Unix seconds shown for every entry.

    Source: the reference's parity record `models-list`.
    """
    entries: dict[str, dict[str, object]] = {}
    for route in snapshot.routes:
        if not route.is_listed:
            continue
        routing: dict[str, object] = {
            "api": "chat",
            "source": "builtin" if route.is_builtin else "explicit",
            "resolution": "virtual",
            "selectable": True,
        }
        if route.is_builtin:
            routing["default_route"] = True
        routing["recipe"] = route.program
        description = route.description or f"Entrypoint for the {route.program} routing recipe"
        entry = _entry(route.model_name, created, _OWNER)
        entries.setdefault(
            route.model_name, entry | {"description": description, "routing": routing}
        )
    if snapshot.settings.list_configured_models:
        for cluster in snapshot.clusters:
            routing = {"resolution": "passthrough", "selectable": False}
            entry = _entry(cluster.name, created, "upstream-endpoint")
            entries.setdefault(cluster.name, entry | {"routing": routing})
    return msgspec.json.encode({"object": "list", "data": list(entries.values())})


def _entry(model_name: str, created: int, owner: str) -> dict[str, object]:
    return {"id": model_name, "object": "model", "created": created, "owned_by": owner}
