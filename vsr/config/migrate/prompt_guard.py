"""`prompt_guard.protocol`, replaced by a backend that names its model and its contract."""

from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.draft import Draft, Place

_CONTRACTS = {"http_chat": "label_decision.v1", "http_classify": "label_distribution.v1"}
_UNNAMED = "guardrail_classifier"


def migrate_prompt_guard(draft: Draft) -> None:
    """Point the guard at the one external model with the role `guardrail`."""
    guard = draft.root.child("global", "model_catalog", "modules", "prompt_guard")
    if not guard or not guard.has("protocol"):
        return
    if not guard.says("protocol"):
        draft.remove(guard, "protocol", "removed, it was empty")
        return
    contract = _CONTRACTS.get(guard.text("protocol"))
    model = _guardrail(draft, guard)
    if contract is None:
        known = " or ".join(_CONTRACTS)
        draft.refuse(guard, "protocol", "is not a protocol of old", f"write {known}")
    elif guard.says("backend") or guard.says("variant"):
        mend = "keep one of the two"
        draft.refuse(guard, "protocol", "stands beside backend or variant", mend)
    elif model is not None:
        backend = CommentedMap({"protocol": guard.node["protocol"], "contract": contract})
        backend["model"] = model
        draft.comments.move((guard.node, "protocol"), (backend, "protocol"))
        draft.rename(guard, "protocol", "backend")
        guard.node["backend"] = backend


def _guardrail(draft: Draft, guard: Place) -> object:
    """Return the name of the model that serves the guard; None if that is not clear."""
    catalog = draft.root.child("global", "model_catalog")
    external = list(catalog.items("external")) if catalog else []
    served = [model for model in external if model.text("model_role") == "guardrail"]
    if len(served) != 1:
        what = f"needs one external model with the role guardrail, there are {len(served)}"
        draft.refuse(guard, "protocol", what, "name the model in backend instead of protocol")
        return None
    name = served[0].get("name") if served[0].says("name") else _UNNAMED
    if any(model.get("name") == name for model in external if model.path != served[0].path):
        mend = "give each external model a name of its own"
        draft.refuse(guard, "protocol", f"finds two external models named {name!r}", mend)
        return None
    served[0].node["name"] = name
    return name
