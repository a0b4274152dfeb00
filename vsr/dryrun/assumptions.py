"""What a dry run takes for granted where nobody says: parameters and models of a graph."""

import re
from collections.abc import Iterator, Mapping, Sequence

from vsr.resources.graph import GraphSource, ParamSpec, ParamType
from vsr.resources.program import ModelRef

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_USUAL_COUNT = 3
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|_env:\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)")
"""What a document takes from the environment."""
_ANY_VALUE = "dry-run"
_LOOPER: Mapping[str, object] = {"timeout_seconds": 1200.0, "max_response_bytes": 33_554_432}
"""As a document has it that does not say. Source: the reference's defaults."""
_LISTS = (ParamType.MODELS, ParamType.MODEL_REFS)


def assume_params(
    source: GraphSource, given: Mapping[str, object], models: Sequence[str]
) -> dict[str, object]:
    """Return models for the parameters that need some and have none.

    Args:
        source: the graph.
        given: its parameters so far.
        models: to choose from; empty: made up.
    """
    made_up: dict[str, object] = {}
    used: list[str] = [name for value in given.values() for name in _names_in(value)]
    for name, spec in source.params.items():
        if not spec.required or spec.default is not None or given.get(name) is not None:
            continue
        if spec.type in _LISTS:
            chosen = _choose(_count(spec), used, models)
            made_up[name] = tuple(chosen)
        elif spec.type is ParamType.MODEL:
            chosen = _choose(1, used, models)
            made_up[name] = chosen[0]
        else:
            continue
        used += chosen
    return made_up


def assume_secrets(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a word for each variable that a document needs and the environment has not.

    A dry run calls nobody, so the keys of its backends need not be at hand.

    Args:
        text: of the document; references with a default of their own need nothing.
        environ: as it is.
    """
    names = {name for found in _VARIABLE.findall(text) for name in found if name}
    return {name: _ANY_VALUE for name in sorted(names) if not environ.get(name)}


def usual_params(source: GraphSource) -> Mapping[str, object]:
    """Return what the graphs that stand for the reference's algorithms get from any document."""
    looper = source.params.get("looper")
    is_asked = looper is not None and looper.type is ParamType.RECORD and looper.default is None
    return {"looper": _LOOPER} if is_asked else {}


def named_models(source: GraphSource, given: Mapping[str, object]) -> list[str]:
    """Return the models that a graph's parameters and steps name, each once, in order."""
    found: list[str] = []
    for name, spec in source.params.items():
        if spec.type in {ParamType.MODEL, *_LISTS}:
            value = given.get(name, spec.default)
            found += [value] if isinstance(value, str) else _names_in(value)
    for step in source.steps:
        found += _literal_models(step)
    return list(dict.fromkeys(found))


def _count(spec: ParamSpec) -> int:
    least = int(spec.min or 0)
    most = int(spec.max) if spec.max is not None else max(least, _USUAL_COUNT)
    return max(min(max(least, _USUAL_COUNT), most), 1)


def _choose(count: int, used: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return `count` models, those first that are not used yet."""
    if not models:
        fresh = (f"model-{letter}" for letter in _LETTERS)
        free = [name for name in fresh if name not in used]
        return free[:count]
    ordered = [name for name in models if name not in used]
    ordered += [name for name in models if name in used]
    return ordered[:count]


def _names_in(value: object) -> list[str]:
    """Return the models in the value of a parameter that is a list of them."""
    names: list[str] = []
    if not isinstance(value, list | tuple):
        return names
    for item in value:
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, ModelRef):
            names.append(item.model)
        elif isinstance(item, Mapping) and isinstance(item.get("model"), str):
            names.append(str(item["model"]))
    return names


def _literal_models(value: object) -> Iterator[str]:
    """Yield what the call steps inside `value` name, references left out."""
    if isinstance(value, Mapping):
        model = value.get("model")
        if value.get("type") == "call" and isinstance(model, str) and not model.startswith("$"):
            yield model
        for inner in value.values():
            yield from _literal_models(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _literal_models(inner)
