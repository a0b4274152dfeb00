"""From the requested model name to the recipe or the model that serves it."""

from collections.abc import Mapping, Sequence

import attrs
import msgspec

from vsr.codec.chat import ChatRequest
from vsr.decision.evaluate import NO_ANSWERS, Evaluator, Verdict, compile_program
from vsr.decision.heard import Heard
from vsr.decision.selection.selection import Selection
from vsr.engine.extensions import Extensions
from vsr.engine.target import Target, Workshop
from vsr.errors import ConfigRejected, InvalidRequest, ModelNotFound, Problem
from vsr.resources.cluster import Cluster
from vsr.resources.program import Decision, Program
from vsr.resources.reliability import CallOverride
from vsr.resources.route import Route as RouteResource
from vsr.resources.snapshot import Snapshot
from vsr.slices import Sliced

_NO_DEFAULT = "unable to route request: no model selected and no default model configured"
_FAMILIES: Mapping[str, str] = {"remom": "ReMoM", "fusion": "Fusion", "workflows": "Flow"}
"""What an algorithm is called where its direct name finds no decision. Source: the reference."""


class Route(msgspec.Struct, frozen=True):
    """A recipe that is ready to decide."""

    recipe: str
    evaluator: Evaluator
    selections: Mapping[str, Selection]
    """Decision name to its selection algorithm."""
    targets: Mapping[str, Sequence[Target]]
    """Decision name to what serving each of its candidates comes to."""
    fallback: Target | None
    """Serves when no decision matches or the matching one has no models."""
    graphs: Mapping[str, Target] = msgspec.field(default_factory=dict)
    """Decision name to a target with the graph that answers for it."""
    family: str | None = None
    """The algorithm that a direct name asks for; None where any decision may answer."""
    first: Target | None = None
    """Of a direct name: the graph that answers where no decision matches."""

    def choose(
        self, chat: ChatRequest, answers: Mapping[str, bytes], heard: Heard | None
    ) -> tuple[Target, Verdict]:
        """Decide on `chat`, with what the model runtime said of it.

        Raises:
            InvalidRequest: nothing matched, and there is no default model, or the name asks for
                an algorithm that no decision has.
            SignalUnknown: see `Evaluator.evaluate`.
        """
        verdict = self.evaluator.evaluate(chat, answers, heard)
        decision = verdict.decision
        if decision is not None:
            answering = self.graphs.get(decision.name)
            if answering is not None:
                return answering, verdict
            selected = self.selections[decision.name](decision.model_refs)
            if selected is not None:
                return self.targets[decision.name][selected.index], verdict
        fallback = self.fallback if self.family is None else self.first
        if fallback is None:
            raise InvalidRequest(self._nobody(chat.model), param="model")
        return fallback, verdict

    def _nobody(self, name: str) -> str:
        if self.family is None:
            return _NO_DEFAULT
        family = _FAMILIES.get(self.family, self.family)
        return f'no eligible {family} decision matched for model "{name}"'


@attrs.frozen
class Entrypoints:
    """Every model name that clients can ask for."""

    routes: Mapping[str, Route]
    models: Mapping[str, Target]
    """Aliases, further names of the same models, and adapters."""
    is_learned: bool = attrs.field(init=False)
    """Whether `asks` may return anything."""

    @is_learned.default
    def _look_for_learned(self) -> bool:
        return any(route.evaluator.is_learned for route in self.routes.values())

    def asks(self, chat: ChatRequest, heard: Heard) -> Mapping[str, bytes]:
        """Return what the model runtime is to be asked before `choose`, which gets `heard` too."""
        route = self.routes.get(chat.model)
        return NO_ANSWERS if route is None else route.evaluator.asks(chat, heard)

    def choose(
        self,
        chat: ChatRequest,
        answers: Mapping[str, bytes] = NO_ANSWERS,
        heard: Heard | None = None,
    ) -> tuple[Target, Verdict | None]:
        """Return the target for `chat`, and the verdict if a recipe decided.

        Args:
            chat: the request.
            answers: what the model runtime said of it.
            heard: what `asks` has found out of it.

        Raises:
            ModelNotFound: the name is neither published nor configured.
            InvalidRequest, SignalUnknown: see `Route.choose`.
        """
        route = self.routes.get(chat.model)
        if route is not None:
            return route.choose(chat, answers, heard)
        target = self.models.get(chat.model)
        if target is None:
            raise ModelNotFound
        return target, None


def compile_entrypoints(
    snapshot: Snapshot, extensions: Extensions, workshop: Workshop
) -> Sliced[Entrypoints]:
    """Build everything that answers "who serves this name?" for one configuration, in slices.

    Raises:
        ConfigRejected: a graph cannot run, or a plugin can't do what it is asked for.
    """
    clusters = {cluster.name: cluster for cluster in snapshot.clusters}
    default = _default(snapshot)
    programs = {program.name: program for program in snapshot.programs}
    problems: list[Problem] = []
    built: dict[tuple[str, str | None, CallOverride | None], Route] = {}

    def route_of(resource: RouteResource) -> Route:
        key = resource.program, resource.algorithm, resource.calls
        if key not in built:
            program = _restricted(programs[resource.program], resource.algorithm)
            layers = (resource.calls, program.calls)
            site = msgspec.structs.replace(workshop, layers=layers)
            fallback = None if default is None else site.fallback(*default, program.name)
            route = _make_route(program, clusters, fallback, extensions, site)
            if any(decision.algorithm.graph is not None for decision in program.decisions):
                # What graphs are made of is a fifth of the start, and many documents have none.
                from vsr.engine.graphs import GraphWorkshop  # noqa: PLC0415

                workshop_of_graphs = GraphWorkshop(snapshot, extensions, site, problems)
                graphs = workshop_of_graphs.targets(program, route.targets)
                route = _with_graphs(route, program, graphs, extensions)
            built[key] = msgspec.structs.replace(route, family=resource.algorithm)
        return built[key]

    routes: dict[str, Route] = {}
    for route in snapshot.routes:
        routes[route.model_name] = route_of(route)
        yield
    for program in snapshot.programs:
        if program.graphs:
            from vsr.engine.recipe_graphs import RecipeGraphs  # noqa: PLC0415  # as above

            RecipeGraphs(program, snapshot.clusters, extensions, (), problems).open_unused()
    if problems:
        raise ConfigRejected(problems)
    models = yield from _models(snapshot.clusters, workshop)
    return Entrypoints(routes=routes, models=models)


def _restricted(program: Program, algorithm: str | None) -> Program:
    """Return `program` with only the decisions of `algorithm`, as a direct name asks for."""
    if algorithm is None:
        return program
    kept = tuple(it for it in program.decisions if it.algorithm.type == algorithm)
    return msgspec.structs.replace(program, decisions=kept)


def _with_graphs(
    route: Route, program: Program, graphs: Mapping[str, Target], extensions: Extensions
) -> Route:
    route = msgspec.structs.replace(route, graphs=graphs, first=_first(program, graphs))
    return _with_conditions(route, program, extensions)


def _first(program: Program, graphs: Mapping[str, Target]) -> Target | None:
    """Return what answers by the decision of the highest priority, the first of equal ones.

    Source: looper-algorithms 1.3.
    """
    able = [decision for decision in program.decisions if decision.name in graphs]
    if not able:
        return None
    return graphs[max(able, key=lambda decision: decision.priority).name]


def _make_route(
    program: Program,
    clusters: Mapping[str, Cluster],
    fallback: Target | None,
    extensions: Extensions,
    workshop: Workshop,
) -> Route:
    def targets(decision: Decision) -> list[Target]:
        fallback = workshop.fallback_of(program.name, decision)
        return [
            workshop.decided(clusters[ref.model], program.name, decision, ref, fallback)
            for ref in decision.model_refs
        ]

    return Route(
        recipe=program.name,
        evaluator=compile_program(program, extensions.signals),
        selections={
            decision.name: extensions.selections.get(_selection(decision)).config()
            for decision in program.decisions
        },
        targets={decision.name: targets(decision) for decision in program.decisions},
        fallback=fallback,
    )


def _with_conditions(route: Route, program: Program, extensions: Extensions) -> Route:
    """Return `route` with the signals that the conditions of its graphs ask."""
    trees = {
        name: target.graph.graph.signals
        for name, target in route.graphs.items()
        if target.graph is not None and target.graph.graph.signals
    }
    if not trees:
        return route
    evaluator = compile_program(program, extensions.signals, trees)
    return msgspec.structs.replace(route, evaluator=evaluator)


def _selection(decision: Decision) -> str:
    """Return how one of a decision's candidates is chosen: for a graph's it does not matter."""
    return "static" if decision.algorithm.graph is not None else decision.algorithm.type


def _default(snapshot: Snapshot) -> tuple[Cluster, str | None] | None:
    """Return the default model's cluster, and the adapter if it names one."""
    name = snapshot.settings.default_model
    for cluster in snapshot.clusters:
        if cluster.name == name:
            return cluster, None
    for cluster in snapshot.clusters:
        if name in cluster.loras:
            return cluster, name
    return None


def _models(clusters: Sequence[Cluster], workshop: Workshop) -> Sliced[dict[str, Target]]:
    """Return the models by every name; an alias goes before any other name that is the same."""
    models: dict[str, Target] = {}
    for cluster in clusters:
        target = workshop.concrete(cluster)
        for name in cluster.external_names:
            models.setdefault(name, target)
        for adapter in cluster.loras:
            models[adapter] = workshop.concrete(cluster, adapter=adapter)
        yield
    for cluster in clusters:
        models[cluster.name] = workshop.concrete(cluster)
        yield
    return models
