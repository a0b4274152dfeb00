"""A graph's parameters: what is given, as typed values."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

from vsr.config.quantities import parse_duration_s
from vsr.graph.env import Complain, Known, Path, Static
from vsr.graph.kinds import Kind, conforms, described
from vsr.graph.value import ModelRef
from vsr.resources.graph import LISTS, ParamSpec, ParamType
from vsr.resources.program import ModelRef as Candidate

Facts = Callable[[Candidate], ModelRef]
"""Returns what is known of a model."""

_KINDS: Mapping[ParamType, Kind] = {
    ParamType.MODEL: str,
    ParamType.MODELS: tuple[str, ...],
    ParamType.MODEL_REFS: tuple[ModelRef, ...],
    ParamType.INTEGER: int,
    ParamType.NUMBER: float,
    ParamType.STRING: str,
    ParamType.BOOLEAN: bool,
    ParamType.DURATION: float,
    ParamType.ENUM: str,
    ParamType.RECORD: Mapping[str, object],
    ParamType.LIST: tuple[object, ...],
}


def kind_of(spec: ParamSpec) -> Kind:
    """Return the type of a parameter's value, which is never nothing."""
    if spec.type is ParamType.ENUM and spec.values:
        return Literal[spec.values]
    return _KINDS[spec.type]


def bind_params(
    specs: Mapping[str, ParamSpec],
    given: Mapping[str, object],
    facts: Facts,
    path: Path,
    complain: Complain,
) -> Mapping[str, Static]:
    """Return what is known of every parameter: its value, which is None where it has none.

    Args:
        specs: of the graph.
        given: authored values by name.
        facts: see there.
        path: of the given values in the document.
        complain: see there.
    """
    for name in given:
        if name not in specs:
            known = ", ".join(sorted(specs)) or "none"
            complain((*path, name), "is no parameter of the graph", "", f"known: {known}")
    bound: dict[str, Static] = {}
    for name, spec in specs.items():
        place = (*path, name)
        value = given.get(name, spec.default)
        if value is None:
            if spec.required and spec.default is None:
                complain(place, "is missing", "the graph asks for it", "give it")
            bound[name] = Static(type(None), None)
        else:
            found, fault = read_param(spec, value, facts)
            if fault:
                complain(place, fault, "", "")
            bound[name] = Static(kind_of(spec), found)
    return bound


def open_params(specs: Mapping[str, ParamSpec]) -> Mapping[str, Static]:
    """Return what is known of parameters before anybody gives them."""
    bound: dict[str, Static] = {}
    for name, spec in specs.items():
        is_given = spec.required and spec.default is None
        kind = kind_of(spec)
        is_there = is_given or spec.default is not None
        bound[name] = Static(
            kind if is_there else kind | None,  # type: ignore[operator]  # a type that is known only now
            known=Known(is_given=True, options=_options(spec), most=_most(spec)),
        )
    return bound


def _options(spec: ParamSpec) -> tuple[object, ...] | None:
    return spec.values if spec.type is ParamType.ENUM and spec.values else None


def _most(spec: ParamSpec) -> int | None:
    """Return the most items of a list, or the greatest whole number, if that is bounded."""
    is_counted = spec.type in LISTS or spec.type is ParamType.INTEGER
    return int(spec.max) if is_counted and spec.max is not None else None


def read_param(spec: ParamSpec, value: object, facts: Facts) -> tuple[object, str]:
    """Return what an authored value means, and what is wrong with it: empty if nothing is.

    Args:
        spec: of the parameter.
        value: not None; one that has been read before stays as it is.
        facts: see there.
    """
    found = _converted(spec, value, facts)
    if not conforms(found, kind_of(spec)):
        return None, f"is not {described(kind_of(spec))}"
    size = len(found) if isinstance(found, (str, tuple, Mapping)) else found
    if isinstance(size, (int, float)) and not isinstance(found, bool):
        if spec.min is not None and size < spec.min:
            return found, f"is less than {spec.min:g}"
        if spec.max is not None and size > spec.max:
            return found, f"is more than {spec.max:g}"
    return found, ""


def _converted(spec: ParamSpec, value: object, facts: Facts) -> object:
    if spec.type is ParamType.DURATION and isinstance(value, str):
        try:
            return parse_duration_s(value)
        except ValueError:
            return None
    if isinstance(value, (list, tuple)):
        if spec.type is ParamType.MODEL_REFS:
            return tuple(_model_ref(each, facts) for each in value)
        return tuple(value)
    return value


def _model_ref(value: object, facts: Facts) -> object:
    if isinstance(value, ModelRef):
        return value
    if isinstance(value, Candidate):
        return facts(value)
    if isinstance(value, str):
        return facts(Candidate(value))
    if isinstance(value, Mapping) and isinstance(value.get("model"), str):
        known = {name: value[name] for name in _CANDIDATE if name in value}
        says = "use_reasoning" in known
        return facts(Candidate(**cast("Mapping[str, str]", known), says_reasoning=says))  # type: ignore[arg-type]  # checked before
    return value


_CANDIDATE: Sequence[str] = ("model", "weight", "lora_name", "use_reasoning", "reasoning_effort")
