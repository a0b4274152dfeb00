"""Graphs of recipes, and what decisions say of the graphs they run."""

from collections.abc import Iterator, Mapping

import msgspec

from vsr.config.document.algorithms import Algorithm, AlgorithmBudget
from vsr.config.document.graphs import Graph, GraphLimits, GraphStream
from vsr.config.document.root import Document
from vsr.config.graph_params import param_spec, read_param
from vsr.config.names import recipe_routings
from vsr.config.position import LineIndex, Path, Value
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report
from vsr.config.scalars import read_any
from vsr.resources import graph as resources
from vsr.resources.graph import CallBudget, GraphSource, OnExhausted, ParamSpec, Written
from vsr.resources.stream_comments import NO_COMMENTS, StreamComments


class CompiledGraphs(msgspec.Struct, frozen=True):
    """What the compilation of recipes must know beyond the document's classes."""

    sources: Mapping[Path, tuple[GraphSource, ...]] = msgspec.field(default_factory=dict)
    """By the path of a recipe's routing."""
    params: Mapping[Path, Mapping[str, object]] = msgspec.field(default_factory=dict)
    """By the path of a decision: what it gives its graph."""
    written: Mapping[Path, Written] = msgspec.field(default_factory=dict)
    """By the path of a decision: where its algorithm stands."""


NO_GRAPHS = CompiledGraphs()


def compile_graphs(document: Document, report: Report) -> CompiledGraphs:
    """Return the graphs of all recipes of a valid document; `report` knows what was written."""
    sources: dict[Path, tuple[GraphSource, ...]] = {}
    params: dict[Path, Mapping[str, object]] = {}
    written: dict[Path, Written] = {}
    for path, routing in recipe_routings(document):
        sources[path] = tuple(
            graph_source(name, graph, (*path, "graphs", name), report)
            for name, graph in routing.graphs.items()
        )
        for at, decision in enumerate(routing.decisions):
            algorithm, place = decision.algorithm, (*path, "decisions", at)
            if algorithm is not None:
                written[place] = _written((*place, "algorithm"), report)
            if algorithm is not None and algorithm.type == "graph":
                graph = routing.graphs.get((algorithm.graph or "").strip())
                params[place] = _given(algorithm, graph, (*place, "algorithm", "params"), report)
    return CompiledGraphs(sources, params, written)


def _written(path: Path, report: Report) -> Written:
    file, inner = report.origin(path)
    value = report.lines.value(path)
    return Written(file, inner, dict(_lines(value, path, report.lines)))


def graph_source(name: str, graph: Graph, path: Path, report: Report) -> GraphSource:
    """Return the resource of one valid graph.

    Args:
        name: within its recipe.
        graph: as authored.
        path: of it in the document.
        report: knows what was written, and where.
    """
    written = report.lines.value(path)
    authored = read_any(written, path, report)
    file, inner = report.origin(path)
    return GraphSource(
        name=name,
        params={
            key: _with_default(param_spec(param), (*path, "params", key, "default"), report)
            for key, param in graph.params.items()
        },
        limits=_limits(graph.limits),
        stream=stream_comments(graph.stream),
        steps=graph.steps,
        description=graph.description or "",
        authored=authored if isinstance(authored, dict) else {},
        file=file,
        path=inner,
        lines=dict(_lines(written, path, report.lines)),
    )


def call_budget(budget: AlgorithmBudget | None) -> CallBudget:
    """Return the ceilings of `algorithm.budget`; 0 is none."""
    if budget is None:
        return CallBudget()
    wall_ms = budget.max_wall_time_ms
    return CallBudget(
        max_prompt_tokens=budget.max_prompt_tokens or None,
        max_completion_tokens=budget.max_completion_tokens or None,
        max_total_tokens=budget.max_total_tokens or None,
        max_cost=budget.max_estimated_cost or None,
        max_wall_time_s=wall_ms / 1_000 if wall_ms else None,
        on_exhausted=None if budget.on_exhausted is None else OnExhausted(budget.on_exhausted),
    )


def stream_comments(stream: GraphStream | None) -> StreamComments:
    """Return what `stream` says of a graph or of a decision's algorithm."""
    if stream is None:
        return NO_COMMENTS
    after = stream.keep_alive_after
    return StreamComments(stream.progress, None if after is None else parse_duration_s(after))


def _given(
    algorithm: Algorithm, graph: Graph | None, path: Path, report: Report
) -> Mapping[str, object]:
    """Return what a decision gives its graph: in the types of one whose parameters are known."""
    specs = {} if graph is None else {key: param_spec(each) for key, each in graph.params.items()}
    return {
        name: _typed(specs.get(name), (*path, name), report)
        for name, value in algorithm.params.items()
        if value is not None
    }


def _with_default(spec: ParamSpec, path: Path, report: Report) -> ParamSpec:
    if spec.default is None:
        return spec
    return msgspec.structs.replace(spec, default=_typed(spec, path, report))


def _typed(spec: ParamSpec | None, path: Path, report: Report) -> object:
    written = report.lines.value(path)
    if spec is None:
        return read_any(written, path, report)
    return read_param(spec, written, path, report)


def _limits(limits: GraphLimits) -> resources.GraphLimits:
    return resources.GraphLimits(
        timeout_s=None if limits.timeout is None else parse_duration_s(limits.timeout),
        max_hops=limits.max_hops,
        max_tokens=limits.max_tokens,
        max_cost=limits.max_cost,
        on_exhausted=OnExhausted(limits.on_exhausted),
        strict=limits.strict,
    )


def _lines(value: Value, path: Path, lines: LineIndex) -> Iterator[tuple[Path, int]]:
    """Yield the line of every value of a graph, by its path within it."""
    pending: list[tuple[Path, Value]] = [((), value)]
    yield (), lines.line(path)
    while pending:
        inner, each = pending.pop()
        marks = lines.marks.get(id(each), {})
        items = (
            each.items()
            if isinstance(each, dict)
            else enumerate(each if isinstance(each, list) else ())
        )
        for key, item in items:
            place = (*inner, key)
            yield place, marks[key]
            pending.append((place, item))
