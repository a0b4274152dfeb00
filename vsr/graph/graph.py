"""From authored graphs to compiled ones, for the parameters that a decision gives them."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from math import ceil

import attrs

from vsr.graph.block import Block, ends
from vsr.graph.budget import DEFAULT_OUTPUT_TOKENS, UNLIMITED, Budget, Limits
from vsr.graph.compile import REQUEST, Registries, StepCompiler
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Complain, Constant, Env, Path, Static
from vsr.graph.nodes.call import CallNode
from vsr.graph.params import Facts, bind_params, open_params
from vsr.graph.run import PlainTail
from vsr.graph.signal_trees import ReadTree, SignalTrees, no_signals
from vsr.graph.strict import Faults, Spot, check_limits, limit_spots
from vsr.graph.suspend.check import hash_inputs, may_suspend, unkept
from vsr.graph.worst import Estimator, ModelBounds, Worst
from vsr.resources.graph import (
    CallBudget,
    GraphCall,
    GraphLimits,
    GraphSource,
    ParamSpec,
    ParamType,
)
from vsr.resources.reliability import CallOverride

_NANO = 1e9


@attrs.frozen
class GraphCompiler:
    """Compiles graphs with what one configuration has."""

    registries: Registries
    find: Callable[[str], GraphSource | None]
    """Returns a graph by its name, the built-in ones too."""
    facts: Facts
    bounds_of: Callable[[str], ModelBounds | None] = lambda _: None
    """Returns what is known of the model that is called so, for the worst case."""
    placing: Callable[[GraphSource, Complain], Complain] = lambda _, complain: complain
    """Returns what gets the faults inside of a graph."""
    read_signals: ReadTree = no_signals
    """Reads the rule trees of conditions."""
    _signals: SignalTrees | None = None
    """Of the graph that the one being compiled runs inside of."""
    _inside: tuple[str, ...] = ()
    """Names of the graphs that the one being compiled runs inside of."""
    _may_suspend: bool = True
    """Whether a call of it may wait for the client's tools where it runs."""

    def compile(self, call: GraphCall, path: Path, complain: Complain) -> CompiledGraph | None:
        """Return a decision's graph for the parameters that it gives.

        Args:
            call: what the decision says.
            path: of its algorithm in the document.
            complain: gets faults of the parameters under `path`, and those of the graph under the
                graph's own path unless `placing` has them go elsewhere.
        """
        source = self.find(call.graph)
        if source is None:
            mend = "declare it under graphs, or name a built-in one"
            complain((*path, "graph"), f"is no graph: {call.graph!r}", "", mend)
            return None
        faults, inside = Faults(complain), Faults(self.placing(source, complain))
        given = (*path, "params")
        params = bind_params(source.params, call.params, self.facts, given, faults.note)
        signals = SignalTrees(self.read_signals)
        block = self.block(source, params, inside.note, signals)
        limits = _limits(source.limits, call.budget)
        timeout_s = call.budget.max_wall_time_s or source.limits.timeout_s
        graph = CompiledGraph(
            source.name,
            block,
            {name: static.value for name, static in params.items()},
            source.params,
            timeout_s=timeout_s,
            limits=limits,
            on_exhausted=call.budget.on_exhausted or source.limits.on_exhausted,
            is_strict=source.limits.strict,
            hash=_hash(source, block),
            may_suspend=self._suspends(source, block, inside.note),
            stream=call.stream.over(source.stream),
            signals=signals.found,
        )
        if not faults.count and not inside.count:
            spots = limit_spots(source, inside.note, call.budget, (path, faults.note))
            self._check_strict(graph, spots)
        return graph

    def worst_case(self, graph: CompiledGraph) -> Worst:
        """Return the worst case of `graph`, its own limits not yet looked at."""
        return self._estimator(graph.limits).block(graph.block).whole()

    def _check_strict(self, graph: CompiledGraph, spots: Mapping[str, Spot]) -> None:
        if graph.is_strict:
            check_limits(graph.limits, self.worst_case(graph), spots)

    def _estimator(self, limits: Limits) -> Estimator:
        # A budget that counts tokens writes the longest answer into each request.
        default = DEFAULT_OUTPUT_TOKENS if Budget(limits).needs_bounds else None
        return Estimator(self.bounds_of, default)

    def open(self, source: GraphSource, complain: Complain) -> CompiledGraph:
        """Return a graph whose parameters only a run will give."""
        return self._opened(source, open_params(source.params), complain)

    def with_defaults(self, source: GraphSource, complain: Complain) -> CompiledGraph:
        """Return a graph as it is before anybody gives the parameters that have no default.

        It cannot be run; it shows what is wrong with it, and its worst case as far as that goes.
        """
        given = [name for name, spec in source.params.items() if spec.required]
        specs = {name: spec for name, spec in source.params.items() if name not in given}
        inside = self.placing(source, complain)
        params = bind_params(specs, {}, self.facts, (*source.path, "params"), inside)
        missing = open_params({name: source.params[name] for name in given})
        return self._opened(source, {**params, **missing}, complain)

    def _opened(
        self, source: GraphSource, params: Mapping[str, Static], complain: Complain
    ) -> CompiledGraph:
        faults = Faults(self.placing(source, complain))
        signals = self._signals or SignalTrees(self.read_signals)
        block = self.block(source, params, faults.note, signals)
        graph = CompiledGraph(
            source.name,
            block,
            {},
            source.params,
            source.limits.timeout_s,
            _limits(source.limits, CallBudget()),
            source.limits.on_exhausted,
            source.limits.strict,
            _hash(source, block),
            may_suspend(block),
            _plain_tail(block),
            facts=self.facts,
            signals=signals.found,
        )
        if not faults.count:
            self._check_strict(graph, limit_spots(source, faults.note))
        return graph

    def nested(self, name: str, path: Path, complain: Complain) -> CompiledGraph | None:
        """Return a graph that a step runs, for parameters that only a run will give."""
        source = self.find(name)
        if source is None:
            mend = "declare it under graphs, or name a built-in one"
            complain(path, f"is no graph: {name!r}", "", mend)
            return None
        if source.name in self._inside:
            around = " in ".join((source.name, *reversed(self._inside)))
            complain(path, "runs inside itself", around, "let it end somewhere")
            return None
        return self.open(source, complain)

    def block(
        self,
        source: GraphSource,
        params: Mapping[str, Static],
        complain: Complain,
        signals: SignalTrees,
    ) -> Block:
        """Compile the steps of `source`; `signals` gets the rule trees of their conditions."""
        env = Env({"request": REQUEST}, params, may_suspend=self._may_suspend)
        path = (*source.path, "steps")
        compiler = attrs.evolve(self, inside=(*self._inside, source.name), signals=signals)

        def open_graph(name: str, at: Path, env: Env) -> CompiledGraph | None:
            inner = attrs.evolve(compiler, may_suspend=env.may_suspend)
            return inner.nested(name, at, complain)

        is_nested = bool(self._inside)
        steps = StepCompiler(self.registries, complain, open_graph, signals, is_nested=is_nested)
        block = steps.compile(source.steps, path, env)
        if block.steps and not ends(block):
            mend = "let every way through it end with a respond step"
            complain(path, "may come to its end without an answer", "", mend)
        return block

    def _suspends(self, source: GraphSource, block: Block, complain: Complain) -> bool:
        """Return whether the graph may wait for the client's tools; complain where it cannot."""
        found = may_suspend(block)
        for fault in unkept(block) if found else ():
            complain((*source.path, "steps"), fault, "", "let it bring plain values")
        return found


def _hash(source: GraphSource, block: Block) -> str:
    return sha256(hash_inputs(source, block)).hexdigest()


def _plain_tail(block: Block) -> PlainTail | None:
    """Return the one call of a graph that has no other step and says nothing of its request."""
    step = block.steps[0] if len(block.steps) == 2 else None  # noqa: PLR2004  # call and respond
    if step is None or step.node.cls is not CallNode:
        return None
    bound = step.node.bound
    stream = bound.get("stream")
    if not isinstance(stream, Constant) or stream.value != "tail":
        return None
    if not set(bound) <= {"model", "stream", "reliability"} or isinstance(bound["model"], Constant):
        return None
    reliability = bound.get("reliability")
    value = reliability.value if isinstance(reliability, Constant) else None
    return PlainTail(value if isinstance(value, CallOverride) else None)


def _limits(own: GraphLimits, budget: CallBudget) -> Limits:
    costs = [each for each in (own.max_cost, budget.max_cost) if each is not None]
    tokens = [each for each in (own.max_tokens, budget.max_total_tokens) if each is not None]
    limits = Limits(
        own.max_hops,
        min(tokens) if tokens else None,
        budget.max_prompt_tokens,
        budget.max_completion_tokens,
        ceil(min(costs) * _NANO) if costs else None,
    )
    return UNLIMITED if limits == UNLIMITED else limits


PLAIN = GraphSource(
    "builtin/plain",
    {"model": ParamSpec(ParamType.MODEL)},
    steps=(
        {"id": "answer", "type": "call", "model": "$params.model", "stream": "tail"},
        {"type": "respond", "from": "$answer"},
    ),
)
"""The graph of a plain request: one call, handed out, and its answer."""
