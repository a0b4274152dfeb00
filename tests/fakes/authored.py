"""Graphs compiled as a document's are, without the document around them."""

from collections.abc import Callable, Mapping

import attrs

from vsr.engine.recipe_graphs import unknown_model
from vsr.engine.shipped import BUILTIN
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Path
from vsr.graph.graph import GraphCompiler
from vsr.graph.worst import ModelBounds, Worst
from vsr.resources.graph import CallBudget, GraphCall, GraphLimits, GraphSource, ParamSpec
from vsr.resources.reliability import CallPolicy, RetryPolicy
from vsr.routing.budget import Price

Step = Mapping[str, object]

MODELS = {
    "small": ModelBounds(Price(0.0, 1.0), 100, CallPolicy(total_s=10)),
    "large": ModelBounds(Price(2.0, 10.0), 1_000, CallPolicy(total_s=30, retry=RetryPolicy(2))),
    "unbound": ModelBounds(),
}
"""Costs 1 or 10 dollars per million tokens of answers; `large` is retried twice."""


@attrs.define
class Compiled:
    """A graph, what is wrong with it, and its worst case."""

    graph: CompiledGraph | None
    worst: Worst | None
    problems: list[str]


@attrs.define
class Workbench:
    """Compiles graphs with models that are known here."""

    graphs: Mapping[str, GraphSource] = attrs.field(factory=dict)
    bounds_of: Callable[[str], ModelBounds | None] = MODELS.get
    problems: list[str] = attrs.field(factory=list)

    def compile(
        self,
        *steps: Step,
        specs: Mapping[str, ParamSpec] | None = None,
        given: Mapping[str, object] | None = None,
        limits: GraphLimits | None = None,
        budget: CallBudget | None = None,
    ) -> Compiled:
        """Compile steps; without `given`, with the defaults of their parameters alone."""
        source = GraphSource("it", specs or {}, limits or GraphLimits(), steps)
        find = {**self.graphs, "it": source}.get
        compiler = GraphCompiler(BUILTIN.shipped_registries(), find, unknown_model, self.bounds_of)
        graph: CompiledGraph | None
        if given is None:
            graph = compiler.with_defaults(source, self.complain)
        else:
            call = GraphCall("it", given, budget or CallBudget())
            graph = compiler.compile(call, ("algorithm",), self.complain)
        worst = None if graph is None or self.problems else compiler.worst_case(graph)
        return Compiled(graph, worst, self.problems)

    def complain(self, path: Path, what: str, why: str, mend: str) -> None:
        """Note one problem."""
        text = ", ".join(part for part in (what, why, mend) if part)
        self.problems.append(f"{'.'.join(map(str, path))}: {text}")


def worst_of(
    *steps: Step,
    specs: Mapping[str, ParamSpec] | None = None,
    given: Mapping[str, object] | None = None,
    limits: GraphLimits | None = None,
) -> Worst:
    """Return the worst case of steps that are followed by an answer."""
    end = {"type": "respond", "from": "done"}
    found = Workbench().compile(*steps, end, specs=specs, given=given, limits=limits)
    assert found.worst is not None, found.problems
    return found.worst


def faults_of(*steps: Step, specs: Mapping[str, ParamSpec] | None = None) -> list[str]:
    """Return what is wrong with steps that are followed by an answer."""
    return Workbench().compile(*steps, {"type": "respond", "from": "done"}, specs=specs).problems


def call(model: object = "small", **fields: object) -> Step:
    """Return a step that calls a model."""
    return {"type": "call", "model": model, **fields}
