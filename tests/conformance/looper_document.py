"""The configuration document of a looper fixture."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.conformance.looper_case import Case, Fields
from vsr.config.names import OPERATOR_RATING

LISTENER_PORT = 8899
_HOST = "127.0.0.1"
_NEVER = "86400s"
"""The listener's default limit of a call, out of the way of the limits that cases are about."""
_SINGLE = frozenset({"model", "synthesis_model", "quorum_fallback_target"})
_SEVERAL = frozenset({"models", "analysis_models"})
_NOT_CALLED = frozenset({"analysis_overrides"})
_SHARED = (
    ("model-a", "fake-a"),
    ("model-b", "fake-b"),
    ("model-c", "fake-c"),
    ("judge", "fake-judge"),
)
"""Models and the names of their backends in the document that all cases at the backend share."""


def document_of(case: Case, backend_port: int, verifier_port: int) -> bytes:
    """Return the document, as YAML, with every model on one backend."""
    maker = _shared if case.is_seen_at_backend else _own
    document = maker(case, f"{_HOST}:{backend_port}")
    filled = _with_verifier(document, f"http://{_HOST}:{verifier_port}")
    return yaml.safe_dump(filled, sort_keys=False, allow_unicode=True).encode()


def native_names(case: Case) -> Mapping[str, str]:
    """Return the model by the name under which the backend knows it, where the two differ."""
    names = {}
    for model, facts in _facts(case).items():
        native = (facts.get("external_model_ids") or {}).get("vllm")
        if native:
            names[native] = model
    return {} if case.is_seen_at_backend else names


def called_models(case: Case) -> list[str]:
    """Return every model that the case names, in order, adapters left out."""
    adapters = {name for names in _adapters(case).values() for name in names}
    named = [*_facts(case), *_named_in(case.decision)]
    named += [name for turn in case.turns for name in turn.backend]
    return [name for name in dict.fromkeys(map(str.strip, named)) if name not in adapters]


def _facts(case: Case) -> Mapping[str, Fields]:
    facts: Mapping[str, Fields | None] = case.config.get("models") or {}
    return {name: each or {} for name, each in facts.items()}


def _adapters(case: Case) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for ref in case.decision.get("modelRefs") or ():
        if ref.get("lora_name"):
            found.setdefault(ref["model"], []).append(ref["lora_name"])
    return found


def _named_in(value: Any) -> Iterator[str]:  # noqa: ANN401  # JSON
    if isinstance(value, list):
        for each in value:
            yield from _named_in(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in _SINGLE and isinstance(each, str):
                yield each
            elif key in _SEVERAL and isinstance(each, list):
                yield from (name for name in each if isinstance(name, str))
            elif key not in _NOT_CALLED:
                yield from _named_in(each)


def _own(case: Case, backend: str) -> dict[str, Any]:
    models, facts, adapters = called_models(case), _facts(case), _adapters(case)
    cards = [
        _card(name, facts.get(name, {}), adapters.get(name, []))
        for name in models
        if name in facts or name in adapters
    ]
    document = _frame(
        [_model(name, facts.get(name), backend) for name in models], cards, case, _NEVER
    )
    records = [
        {"model": name, "benchmark": OPERATOR_RATING, "metrics": {"score": each["quality_score"]}}
        for name, each in facts.items()
        if "quality_score" in each
    ]
    if records:
        document["evaluation"] = {"records": records}
    return document


def _shared(case: Case, backend: str) -> dict[str, Any]:
    models = [_named_model(name, ref, backend) for name, ref in _SHARED]
    models[0]["reasoning"] = {"family": "qwen3"}
    return _frame(
        models, [{"name": name} for name, _ in _SHARED], case, "30s", {"timeout_seconds": 30}
    )


def _frame(
    models: list[dict[str, Any]],
    cards: list[dict[str, Any]],
    case: Case,
    timeout: str,
    looper: Fields | None = None,
) -> dict[str, Any]:
    listener = {"name": f"http-{LISTENER_PORT}", "address": "0.0.0.0", "port": LISTENER_PORT}
    decision = {
        "name": "looper_route",
        "priority": 10,
        "rules": {"operator": "AND", "conditions": []},
        **case.decision,
    }
    document: dict[str, Any] = {
        "version": "v0.3",
        "listeners": [{**listener, "timeout": timeout}],
        "providers": {"defaults": {"model": models[0]["name"]}, "models": models},
        "routing": {"modelCards": cards, "decisions": [decision]},
    }
    settings = {**(looper or {}), **_state(case), **(case.config.get("looper") or {})}
    if settings:
        document["global"] = {"integrations": {"looper": settings}}
    return document


def _state(case: Case) -> Fields:
    """Keep what a flow leaves behind in memory, where the case does not say otherwise."""
    is_flow = (case.decision.get("algorithm") or {}).get("type") == "workflows"
    return {"flow": {"state": {"store_backend": "memory"}}} if is_flow else {}


def _named_model(name: str, ref: str, backend: str) -> dict[str, Any]:
    backend_ref = {"name": ref, "endpoint": backend, "protocol": "http", "provider": "vllm"}
    return {
        "name": name,
        "provider_model_id": name,
        "api_format": "openai",
        "backend_refs": [backend_ref],
    }


def _model(name: str, facts: Fields | None, backend: str) -> dict[str, Any]:
    """Return a provider model; one without facts is callable and otherwise unknown.

    A known model has a price, 0 unless stated, and a card; an unknown one has neither.
    """
    model = _named_model(name, f"fake-{name}", backend)
    if facts is None:
        return model
    model["pricing"] = {"prompt_per_1m": 0, "completion_per_1m": 0, **(facts.get("pricing") or {})}
    if facts.get("access_key"):
        model["backend_refs"][0]["api_key"] = facts["access_key"]
    if facts.get("reasoning_family"):
        model["reasoning"] = {"family": facts["reasoning_family"]}
    if facts.get("external_model_ids"):
        model["external_model_ids"] = facts["external_model_ids"]
    return model


def _card(name: str, facts: Fields, adapters: list[str]) -> dict[str, Any]:
    card: dict[str, Any] = {"name": name}
    if facts.get("param_size"):
        card["param_size"] = str(facts["param_size"])
    if adapters:
        card["loras"] = [{"name": adapter} for adapter in dict.fromkeys(adapters)]
    return card


def _with_verifier(value: Any, url: str) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        return {key: _with_verifier(each, url) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_verifier(each, url) for each in value]
    return value.replace("{{verifier}}", url) if isinstance(value, str) else value
