"""The graphs of one recipe: compiled for its decisions, looked through where nobody runs them."""

from collections.abc import Mapping, Sequence

import attrs
import msgspec

from vsr.config.step_rules import RecipeSignals
from vsr.engine.extensions import Extensions
from vsr.engine.target import layered
from vsr.errors import Problem
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Complain, Path
from vsr.graph.graph import GraphCompiler
from vsr.graph.value import ModelRef as GraphModel
from vsr.graph.worst import ModelBounds, Worst
from vsr.resources.cluster import Cluster
from vsr.resources.graph import CANDIDATES, GraphSource, Written
from vsr.resources.program import Decision, ModelRef, Program
from vsr.resources.reliability import CallOverride
from vsr.routing.budget import Price


class RecipeGraphs(msgspec.Struct, frozen=True):
    """Compiles the graphs of one recipe; what is wrong with them is in `problems`."""

    program: Program
    clusters: Sequence[Cluster]
    extensions: Extensions
    layers: Sequence[CallOverride | None] = ()
    """What is changed of the models' timeouts and retries before a decision changes them."""
    problems: list[Problem] = msgspec.field(default_factory=list)

    def decided(self, decision: Decision) -> CompiledGraph | None:
        """Return the graph that answers for `decision`; None without one, or if it is faulty."""
        call = decision.algorithm.graph
        if call is None:
            return None
        before = len(self.problems)
        path = call.written.path or ("decisions", decision.name, "algorithm")
        complain = self._complaining(call.written)
        source, refs = self.find(call.graph), decision.model_refs
        if source is not None and CANDIDATES in source.params and refs:
            call = attrs.evolve(call, params={CANDIDATES: refs, **call.params})
        graph = self.compiler(decision).compile(call, path, complain)
        return graph if len(self.problems) == before else None

    def worst_case(self, decision: Decision, graph: CompiledGraph) -> Worst:
        """Return the worst case of the graph that answers for `decision`."""
        return self.compiler(decision).worst_case(graph)

    def opened(self, source: GraphSource) -> tuple[CompiledGraph, Worst]:
        """Return a graph as it is with its defaults alone, and its worst case so."""
        compiler = self.compiler(Decision(""))
        graph = compiler.with_defaults(source, self._complaining(Written()))
        return graph, compiler.worst_case(graph)

    def open_unused(self) -> None:
        """Look through the graphs that no decision runs; those of decisions were compiled."""
        calls = [decision.algorithm.graph for decision in self.program.decisions]
        used = {call.graph for call in calls if call is not None}
        for source in self.program.graphs:
            if source.name not in used:
                self.opened(source)

    def find(self, name: str) -> GraphSource | None:
        """Return a graph of the recipe or one that ships."""
        own = {source.name: source for source in self.program.graphs}
        return own.get(name) or self.extensions.find_graph(name)

    def compiler(self, decision: Decision) -> GraphCompiler:
        """Return what compiles the graphs of `decision`."""
        return GraphCompiler(
            self.extensions.graph_registries(),
            self.find,
            self._facts,
            _Bounds(self._called(), (*self.layers, decision.calls)).of,
            lambda source, _: self._complaining(Written(source.file, source.path, source.lines)),
            RecipeSignals(self.program.declared, self.extensions.signals.names()).read,
        )

    def _complaining(self, written: Written) -> Complain:
        def complain(path: Path, what: str, why: str, mend: str) -> None:
            problem = placed(written, path, (what, why, mend))
            if problem not in self.problems:
                self.problems.append(problem)

        return complain

    def _called(self) -> Mapping[str, Cluster]:
        """Return the models by every name that a step may call them."""
        return {
            name: cluster
            for cluster in self.clusters
            for name in (*cluster.loras, *cluster.external_names, cluster.name)
        }

    def _facts(self, ref: ModelRef) -> GraphModel:
        """Return what is known of a candidate."""
        cluster = next((each for each in self.clusters if each.name == ref.model), None)
        if cluster is None:
            return unknown_model(ref)
        price = cluster.pricing
        return GraphModel(
            ref.model,
            ref.called_name,
            ref.weight,
            ref.use_reasoning if ref.says_reasoning else None,
            ref.reasoning_effort,
            cluster.reasoning_family,
            cluster.param_size,
            None if price is None else price.prompt_per_1m,
            None if price is None else price.completion_per_1m,
            cluster.quality_score,
            cluster.is_described,
        )


class _Bounds(msgspec.Struct, frozen=True, eq=False):
    """What is known of the models that the steps of one decision's graph may call."""

    clusters: Mapping[str, Cluster]
    layers: Sequence[CallOverride | None]

    def of(self, name: str) -> ModelBounds | None:
        """Return what is known of one; None: nothing."""
        cluster = self.clusters.get(name)
        if cluster is None:
            return None
        price = cluster.pricing
        return ModelBounds(
            None if price is None else Price(price.prompt_per_1m, price.completion_per_1m),
            cluster.max_output_tokens,
            layered(cluster.calls, self.layers),
        )


def check_graphs(
    programs: Sequence[Program], clusters: Sequence[Cluster], extensions: Extensions
) -> tuple[Problem, ...]:
    """Return what is wrong with the graphs of all recipes, whether a decision runs them or not.

    Args:
        programs: all recipes.
        clusters: all models; without any, only what needs none of them is checked.
        extensions: what graphs may ask for by name.

    Raises:
        ConfigRejected: an installed extension cannot be used.
    """
    problems: list[Problem] = []
    for program in programs:
        graphs = RecipeGraphs(program, clusters, extensions, (program.calls,), problems)
        for decision in program.decisions:
            graphs.decided(decision)
        graphs.open_unused()
    return tuple(problems)


def unknown_model(ref: ModelRef) -> GraphModel:
    """Return a model of which nothing is known but its name."""
    return GraphModel(ref.model, ref.called_name, is_known=False)


def placed(written: Written, path: Path, text: tuple[str, str, str]) -> Problem:
    """Return a problem where its author finds it."""
    inner = path[len(written.path) :] if path[: len(written.path)] == written.path else ()
    line = 0
    while not line and written.lines:
        line = written.lines.get(inner, 0)
        if not inner:
            break
        inner = inner[:-1]
    what, why, mend = text
    return Problem(dotted(path), what, why, mend, written.file, line)


def dotted(path: Path) -> str:
    """Return a path as authors write it."""
    found = ""
    for key in path:
        found += f"[{key}]" if isinstance(key, int) else f".{key}" if found else str(key)
    return found
