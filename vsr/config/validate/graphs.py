"""Checks of request graphs, as far as they need no registry of node types."""

import re
from collections.abc import Mapping

from vsr.config.document.graphs import Graph, GraphParam, GraphStream
from vsr.config.graph_params import (
    BOUNDED,
    param_spec,
    read_bound,
    read_model_ref,
    read_param,
)
from vsr.config.names import BUILT_IN
from vsr.config.position import Path
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report
from vsr.config.validate.candidates import check_model_ref
from vsr.config.validate.models import Models, check_model_name
from vsr.resources.graph import CANDIDATES, LISTS, ParamSpec, ParamType

_GRAPH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEAST_SILENCE_S = 1.0
"""Ours: proxies and clients give up after tens of seconds."""
_RESERVED = frozenset({"params", "request"})


def check_graphs(graphs: Mapping[str, Graph], path: Path, models: Models, report: Report) -> None:
    """Report every fault of a recipe's graphs but those inside of their steps."""
    for name, graph in graphs.items():
        place = (*path, name)
        if not _GRAPH_NAME.fullmatch(name):
            why = f"{name!r} holds other than letters, digits, `_`, `.` and `-`"
            report.add(place, "is no name for a graph", why, "rename it")
        if report.is_broken(place):
            continue
        if graph.file is not None:
            why = "a graph names a file, or says itself what it does"
            report.add((*place, "file"), "is out of place", why, "keep one of the two")
        if graph.name is not None and graph.name != name:
            why = f"the document calls it {name!r}"
            report.add((*place, "name"), "is not the graph's name", why, "write that or remove it")
        for key, param in graph.params.items():
            _check_param(key, param, (*place, "params", key), models, report)
        check_stream(graph.stream, (*place, "stream"), report)
        _check_steps(graph, place, report)


def check_stream(stream: GraphStream | None, path: Path, report: Report) -> None:
    """The silence of `stream` is long enough; 0 is none."""
    place = (*path, "keep_alive_after")
    after = None if stream is None else stream.keep_alive_after
    if after is None or report.is_broken(place):
        return
    if 0 < parse_duration_s(after) < _LEAST_SILENCE_S:
        why = "nobody gives up on a stream that soon"
        report.add(place, "is less than 1s", why, "write 1s or more, or 0s for none")


def _check_steps(graph: Graph, path: Path, report: Report) -> None:
    if not graph.steps:
        report.add((*path, "steps"), "is missing or empty", "a graph does something", "add a step")
    for at, step in enumerate(graph.steps):
        place = (*path, "steps", at)
        kind = step.get("type")
        if kind is None:
            report.add((*place, "type"), "is missing", "it says which node this is", "add it")
        elif not isinstance(kind, str) or not kind:
            report.add((*place, "type"), "must be the name of a node type")
        if "id" in step:
            _check_id(step["id"], (*place, "id"), report)


def _check_id(name: object, path: Path, report: Report) -> None:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        why = "it takes letters, digits and `_`, and begins with no digit"
        report.add(path, "is no identifier", why)
    elif name in _RESERVED:
        report.add(path, f"{name!r} is reserved", f"${name} means another thing", "rename the step")


def _check_param(name: str, param: GraphParam, path: Path, models: Models, report: Report) -> None:
    if not _IDENTIFIER.fullmatch(name):
        why = f"{name!r} holds other than letters, digits and `_`, or begins with a digit"
        report.add(path, "is no name for a parameter", why, "rename it")
    if report.is_broken((*path, "type")):
        return
    spec = param_spec(param)
    _check_bounds(param, spec, path, report)
    _check_values(param, spec, path, report)
    if param.default is None:
        return
    if param.required:
        why = "it has a default, so it need not be given"
        report.add((*path, "required"), "is out of place", why, "keep one of the two")
    check_param(spec, (*path, "default"), models, report)


def _check_bounds(param: GraphParam, spec: ParamSpec, path: Path, report: Report) -> None:
    for key in ("min", "max"):
        written = getattr(param, key)
        if written is None:
            continue
        if spec.type not in BOUNDED:
            what = f"is out of place for {param.type!r}"
            report.add((*path, key), what, mend="remove it")
        elif read_bound(spec.type, written) is None:
            report.add((*path, key), f"must be {_wanted_bound(spec.type)}")
    if spec.min is not None and spec.max is not None and spec.min > spec.max:
        report.add((*path, "min"), "is above max", mend="exchange the two")


def _wanted_bound(kind: ParamType) -> str:
    if kind is ParamType.DURATION:
        return "a duration such as 30s"
    if kind is ParamType.NUMBER:
        return "a finite number"
    counted = {ParamType.INTEGER: "", ParamType.STRING: " of characters"}
    return f"a whole number{counted.get(kind, ' of items')}"


def _check_values(param: GraphParam, spec: ParamSpec, path: Path, report: Report) -> None:
    place = (*path, "values")
    if spec.type is not ParamType.ENUM:
        if param.values:
            report.add(place, f"is out of place for {param.type!r}", mend="remove it")
        return
    if not param.values:
        report.add(place, "is missing or empty", "an enum is one of some words", "list them")
    elif len(set(param.values)) != len(param.values):
        report.add(place, "names one twice", mend="keep one of the two")


def check_params(
    graph: Graph, given: Mapping[str, object], path: Path, models: Models, report: Report
) -> None:
    """The values that a decision gives at `path` are those that `graph` takes.

    The parameter `models` need not be given: it is the decision's candidates then.
    """
    for name in given:
        if name not in graph.params:
            known = ", ".join(sorted(graph.params)) or "none"
            what = "is not a parameter of the graph"
            report.add((*path, name), what, f"known are {known}", "remove it")
    for name, param in graph.params.items():
        spec = param_spec(param)
        if given.get(name) is not None:
            check_param(spec, (*path, name), models, report)
        elif spec.required and not is_candidates(name, spec):
            what = f"does not give {name!r}"
            report.add(path, what, "the graph can't run without it", "add it")


def is_candidates(name: str, spec: ParamSpec) -> bool:
    """Return whether a parameter is a decision's candidates where the decision does not give it."""
    return name == CANDIDATES and spec.type is ParamType.MODEL_REFS


def check_param(spec: ParamSpec, path: Path, models: Models, report: Report) -> None:
    """The value that was written at `path` fits `spec`, and the models it names are there."""
    written = report.lines.value(path)
    read_param(spec, written, path, report)
    if report.is_broken(path):
        return
    if spec.type is ParamType.MODEL:
        check_model_name(path, str(written), models, report)
    elif spec.type in LISTS and isinstance(written, list):
        for at, item in enumerate(written):
            place = (*path, at)
            if report.is_broken(place) or spec.type is ParamType.LIST:
                continue
            if isinstance(item, str):
                check_model_name(place, str(item), models, report)
            else:
                check_model_ref(read_model_ref(item, place, report), place, models, report)


def is_built_in(name: str) -> bool:
    """Return whether `name` is one of the graphs that ship with the Router."""
    return name.startswith(BUILT_IN)
