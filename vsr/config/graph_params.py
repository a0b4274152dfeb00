"""Parameters of request graphs: what is declared, and the values that are given for them."""

import math
from collections.abc import Mapping, Sequence

from vsr.config.document.decisions import ModelRef
from vsr.config.document.graphs import GraphParam
from vsr.config.position import Path, Value
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report
from vsr.config.scalars import SCALARS, check_duration, read_any, wrong_type
from vsr.config.structure import read_class
from vsr.resources.graph import LISTS, ParamSpec, ParamType

_SCALARS: Mapping[ParamType, type] = {
    ParamType.MODEL: str,
    ParamType.INTEGER: int,
    ParamType.NUMBER: float,
    ParamType.STRING: str,
    ParamType.BOOLEAN: bool,
    ParamType.DURATION: str,
    ParamType.ENUM: str,
}
BOUNDED = LISTS | {ParamType.INTEGER, ParamType.NUMBER, ParamType.STRING, ParamType.DURATION}
"""Types that may have a least and a greatest value."""


def param_spec(param: GraphParam) -> ParamSpec:
    """Return the resource of a parameter; a bound that is none counts as omitted."""
    kind = ParamType(param.type)
    has_default = param.default is not None
    return ParamSpec(
        type=kind,
        required=not has_default if param.required is None else param.required,
        default=param.default,
        min=read_bound(kind, param.min),
        max=read_bound(kind, param.max),
        values=param.values,
        description=param.description or "",
    )


def read_bound(kind: ParamType, written: object) -> float | None:
    """Return a bound as a number, seconds for a duration; None for what can't be one."""
    if kind is ParamType.DURATION:
        try:
            return parse_duration_s(written) if isinstance(written, str) else None
        except ValueError:
            return None
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    if not is_number or not math.isfinite(float(written)):  # type: ignore[arg-type]  # a number
        return None
    is_count = kind is not ParamType.NUMBER
    return None if is_count and not isinstance(written, int) else written  # type: ignore[return-value]  # a number


def read_param(spec: ParamSpec, written: Value, path: Path, report: Report) -> object:
    """Return the value of a parameter in its type; a duration stays text.

    Args:
        spec: what is declared.
        written: the value, with its references to the environment.
        path: of it.
        report: gets its faults; names of models are not looked at.
    """
    if spec.type in _SCALARS:
        value = SCALARS[_SCALARS[spec.type]](written, path, report)
        if spec.type is ParamType.NUMBER and type(written) is int:
            value = written
    elif spec.type is ParamType.RECORD:
        value = _read_collection(dict, "a mapping", written, path, report)
    else:
        value = _read_collection(list, "a list", written, path, report)
    if not report.is_broken(path):
        _check_items(spec, written, path, report)
        _check_range(spec, value, path, report)
    return value


def _read_collection(kind: type, wanted: str, written: Value, path: Path, report: Report) -> object:
    if not isinstance(written, kind):
        wrong_type(wanted, written, path, report)
    return read_any(written, path, report)


def _check_items(spec: ParamSpec, written: Value, path: Path, report: Report) -> None:
    """Look at what is in a list, and at the words of an enum and a duration."""
    if spec.type is ParamType.DURATION:
        check_duration(path, str(written), report)
    elif spec.type is ParamType.ENUM and str(written) not in spec.values:
        known = ", ".join(spec.values)
        report.add_broken(path, f"{report.quote(path)} is unknown", f"known are {known}")
    elif spec.type is ParamType.MODELS and isinstance(written, list):
        for at, item in enumerate(written):
            SCALARS[str](item, (*path, at), report)
    elif spec.type is ParamType.MODEL_REFS and isinstance(written, list):
        for at, item in enumerate(written):
            read_model_ref(item, (*path, at), report)


def read_model_ref(written: Value, path: Path, report: Report) -> ModelRef:
    """Return a candidate: an alias alone, or a mapping as in `modelRefs`."""
    if isinstance(written, str):
        return ModelRef(model=str(written))
    if not isinstance(written, dict):
        wrong_type("an alias or a mapping with a model", written, path, report)
        return ModelRef()
    return read_class(ModelRef, written, path, report)


def _check_range(spec: ParamSpec, value: object, path: Path, report: Report) -> None:
    size, unit = _size_of(spec, value)
    if size is None or report.is_broken(path):
        return
    if spec.min is not None and size < spec.min:
        report.add_broken(path, f"must be at least {spec.min:g}{unit}")
    elif spec.max is not None and size > spec.max:
        report.add_broken(path, f"must be at most {spec.max:g}{unit}")


def _size_of(spec: ParamSpec, value: object) -> tuple[float | None, str]:
    """Return what the bounds of a parameter are about, and its unit in words."""
    if spec.type is ParamType.DURATION:
        return read_bound(spec.type, value), " seconds"
    if isinstance(value, int | float):
        return value, ""
    if spec.type is ParamType.STRING and isinstance(value, str):
        return len(value), " characters long"
    if spec.type in LISTS and isinstance(value, Sequence):
        return len(value), " items long"
    return None, ""
