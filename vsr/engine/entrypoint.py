"""From the requested model name to the recipe or the model that serves it."""

from collections.abc import Mapping

import attrs

from vsr.codec.chat import ChatRequest
from vsr.decision.evaluate import Evaluator, Verdict, compile_program
from vsr.decision.selection.selection import Selection
from vsr.engine.target import Choice, Keystone, Target, make_target
from vsr.errors import InvalidRequest, ModelNotFound
from vsr.registry import Registry
from vsr.resources.program import And, Decision, Program
from vsr.resources.snapshot import Snapshot

_NO_DEFAULT = "unable to route request: no model selected and no default model configured"


@attrs.frozen
class Route:
    """A recipe that is ready to decide."""

    recipe: str
    evaluator: Evaluator
    selections: Mapping[str, Selection]
    """Decision name to its selection algorithm."""
    targets: Mapping[tuple[str, str], Target]
    """Decision name and model to what serving it comes to."""
    fallback: Target | None
    """Serves when no decision matches or the matching one has no models."""

    def choose(self, chat: ChatRequest) -> tuple[Target, Verdict]:
        """Decide on `chat`.

        Raises:
            InvalidRequest: nothing matched and there is no default model.
        """
        verdict = self.evaluator.evaluate(chat)
        decision = verdict.decision
        selected = None
        if decision is not None:
            selected = self.selections[decision.name](decision.model_refs)
        if decision is not None and selected is not None:
            return self.targets[decision.name, selected.model], verdict
        if self.fallback is None:
            raise InvalidRequest(_NO_DEFAULT, param="model")
        return self.fallback, verdict


@attrs.frozen
class Entrypoints:
    """Every model name that clients can ask for."""

    routes: Mapping[str, Route]
    models: Mapping[str, Target]

    def choose(self, chat: ChatRequest) -> tuple[Target, Verdict | None]:
        """Return the target for `chat`, and the verdict if a recipe decided.

        Raises:
            ModelNotFound: the name is neither published nor configured.
            InvalidRequest: see `Route.choose`.
        """
        route = self.routes.get(chat.model)
        if route is not None:
            return route.choose(chat)
        target = self.models.get(chat.model)
        if target is None:
            raise ModelNotFound
        return target, None


def compile_entrypoints(
    snapshot: Snapshot, selections: Registry[Selection], keystone: Keystone
) -> Entrypoints:
    """Build everything that answers "who serves this name?" for one configuration."""
    clusters = {cluster.name: cluster for cluster in snapshot.clusters}
    default = clusters.get(snapshot.settings.default_model or "")

    def make_route(program: Program) -> Route:
        targets = {
            (decision.name, ref.model): make_target(
                clusters[ref.model], _choice(program, decision), keystone
            )
            for decision in program.decisions
            for ref in decision.model_refs
        }
        fallback = None
        if default is not None:
            fallback = make_target(default, Choice(recipe=program.name), keystone)
        return Route(
            recipe=program.name,
            evaluator=compile_program(program),
            selections={
                decision.name: selections.get(decision.algorithm.type).config()
                for decision in program.decisions
            },
            targets=targets,
            fallback=fallback,
        )

    by_program = {program.name: make_route(program) for program in snapshot.programs}
    return Entrypoints(
        routes={route.model_name: by_program[route.program] for route in snapshot.routes},
        models={name: make_target(c, Choice(), keystone) for name, c in clusters.items()},
    )


def _choice(program: Program, decision: Decision) -> Choice:
    return Choice(
        recipe=program.name,
        decision=decision.name,
        method=decision.algorithm.type,
        is_match_all=decision.rules == And(),
    )
