"""Node type `subgraph`: run another graph of the document, as one step."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs
import trio

from vsr.errors import BudgetExhausted, DeadlineExceeded, GraphFailed
from vsr.graph.best_answer import run_or_best
from vsr.graph.bind import kind_of
from vsr.graph.block import Answer, Node, Suspension, is_flow
from vsr.graph.budget import Budget
from vsr.graph.compiled import CompiledGraph
from vsr.graph.context import NodeContext
from vsr.graph.ending import Ending
from vsr.graph.env import Bound, Constant, Env
from vsr.graph.kinds import Fit, described, fit, united
from vsr.graph.late import Expression
from vsr.graph.params import kind_of as kind_of_param
from vsr.graph.params import read_param
from vsr.graph.scope import Scope
from vsr.graph.suspend.record import Keeps
from vsr.graph.worst import NOTHING, Estimator, Paths
from vsr.registry import Extension
from vsr.resources.graph import OnExhausted, ParamType
from vsr.routing.outcome import Cause


@attrs.frozen
class SubgraphNode:
    """Runs a graph under its own limits; its value is what its `respond` answers with."""

    keeps: ClassVar[Keeps] = "failure"
    graph: CompiledGraph
    params: Mapping[str, Expression] = attrs.field(factory=dict)

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with the parameters that it gives."""
        del env
        graph, given = bound.get("graph"), bound.get("params", Constant({}))
        if not isinstance(graph, Constant) or not isinstance(graph.value, CompiledGraph):
            return
        values = given.value if isinstance(given, Constant) else {}
        names = values if isinstance(values, Mapping) else {}
        specs = graph.value.specs
        for name, expression in names.items():
            if name not in specs:
                known = ", ".join(sorted(specs)) or "none"
                yield f"{name!r} is no parameter of that graph, known: {known}"
            elif fault := _fault(graph.value, name, expression.bound):
                yield f"{name!r} {fault}"
        for name, spec in specs.items():
            if name not in names and spec.required and spec.default is None:
                yield f"{name!r}, which that graph asks for, is missing"

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return the worst case of the graph inside, under its own limits."""
        graph = bound.get("graph")
        value = graph.value if isinstance(graph, Constant) else None
        return Paths(estimator.graph(value) if isinstance(value, CompiledGraph) else NOTHING)

    async def run(self, ctx: NodeContext) -> object:
        """Return what the graph answers with.

        Raises:
            BudgetExhausted, DeadlineExceeded: of the graph as a whole.
            VsrError: one of its steps failed.
        """
        graph, outer = self.graph, ctx.run
        deadline = ctx.deadline_after(graph.timeout_s)
        ending = Ending(deadline_at=deadline.at, outer=ctx.ending)
        run = outer.narrowed(deadline, Budget(graph.limits, outer=outer.budget))
        if graph.on_exhausted is OnExhausted.FAIL:
            run.on_refusal = lambda: ending.end(Cause.BUDGET)
        names = {"params": self._given(ctx.scope), "request": ctx.inputs.request}
        with trio.CancelScope(deadline=deadline.at) as scope:
            ending.scope = scope
            inner = NodeContext(run, Scope(names), ending, ctx.path, ctx.started)
            value = await run_or_best(graph, inner)
            if ending.cause is Cause.BUDGET:
                raise BudgetExhausted  # a step went on all the same
            if isinstance(value, Answer):
                return value.value
            if isinstance(value, Suspension):
                return value
            if is_flow(value):
                raise GraphFailed("a graph inside another one cannot hand out a call")
            return value
        if ending.cause is Cause.BUDGET:
            raise BudgetExhausted
        raise DeadlineExceeded("graph")

    def _given(self, scope: Scope) -> Mapping[str, object]:
        """Return the graph's parameters.

        Raises:
            GraphFailed: one is not what the graph takes; the value itself is not shown.
        """
        given: dict[str, object] = {}
        for name, spec in self.graph.specs.items():
            value = self.params[name].value(scope) if name in self.params else None
            value = spec.default if value is None else value
            fault = "is missing" if spec.required and value is None else ""
            if value is not None and self.graph.facts is not None:
                value, fault = read_param(spec, value, self.graph.facts)
            if fault:
                raise GraphFailed(f"parameter {name!r} of the graph {self.graph.name} {fault}")
            given[name] = value
        return given


def _fault(graph: CompiledGraph, name: str, bound: Bound) -> str:
    """Return what is wrong with what is given for a parameter, as far as is known beforehand."""
    spec = graph.specs[name]
    if isinstance(bound, Constant):
        if bound.value is None or graph.facts is None:
            return ""
        return read_param(spec, bound.value, graph.facts)[1]
    kind, wanted = kind_of(bound), kind_of_param(spec)
    taken = united([wanted, str]) if spec.type is ParamType.DURATION else wanted
    if fit(kind, taken) is not Fit.NO:
        return ""
    return f"is {described(kind)}, and the graph takes {described(wanted)}"


SUBGRAPH = Extension[Node](name="subgraph", config=SubgraphNode)
