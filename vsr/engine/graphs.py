"""The graphs of one configuration, compiled for the decisions that they answer for."""

from collections.abc import Callable, Mapping, Sequence

import attrs
import msgspec

from vsr.engine.decision_graph import DecisionGraph
from vsr.engine.extensions import Extensions
from vsr.engine.hop import HopModel, price_of
from vsr.engine.recipe_graphs import RecipeGraphs
from vsr.engine.suspended_runs import identity_of
from vsr.engine.target import Target, Workshop
from vsr.errors import Problem
from vsr.graph.picture.nodes import nodes_of
from vsr.resources.cluster import Cluster
from vsr.resources.looper import LOOPERS
from vsr.resources.plugin import HeaderMutation, SystemPrompt
from vsr.resources.program import Decision, ModelRef, Program
from vsr.resources.snapshot import Snapshot
from vsr.routing.effect import HeaderEdit
from vsr.routing.plan import Label

_ON_HOPS = (SystemPrompt, HeaderMutation)
"""Plugins that run on every hop. Source: looper-algorithms 5.2."""


class GraphWorkshop(msgspec.Struct, frozen=True):
    """Compiles the graphs of one configuration's decisions."""

    snapshot: Snapshot
    extensions: Extensions
    workshop: Workshop
    problems: list[Problem] = msgspec.field(default_factory=list)

    def graphs_of(self, program: Program) -> RecipeGraphs:
        """Return what compiles the graphs of one of its recipes."""
        return RecipeGraphs(
            program,
            self.snapshot.clusters,
            self.extensions,
            self.workshop.layers,
            self.problems,
        )

    def targets(
        self, program: Program, candidates: Mapping[str, Sequence[Target]]
    ) -> Mapping[str, Target]:
        """Return a target for each decision that a graph answers for; see `target`.

        Args:
            program: the recipe.
            candidates: targets of each decision's models.
        """
        return {
            decision.name: target
            for decision in program.decisions
            if (target := self.target(program, decision, candidates[decision.name])) is not None
        }

    def target(
        self, program: Program, decision: Decision, candidates: Sequence[Target]
    ) -> Target | None:
        """Return a target whose graph answers for `decision`; None if one of its models does.

        Args:
            program: its recipe.
            decision: with or without candidates.
            candidates: their targets.
        """
        graph = self._decided(program, decision)
        if graph is None:
            return None
        if candidates:
            return attrs.evolve(candidates[0], graph=graph, variants=())
        base = self.workshop.fallback(self.snapshot.clusters[0], None, program.name)
        return attrs.evolve(base, graph=graph, label=graph.label, variants=())

    def _decided(self, program: Program, decision: Decision) -> DecisionGraph | None:
        if decision.algorithm.graph is None:
            return None
        graph = self.graphs_of(program).decided(decision)
        if graph is None:
            return None
        algorithm = decision.algorithm.type
        is_looper = algorithm in LOOPERS
        keystone = self.workshop.keystone
        looper = self.snapshot.settings.looper
        names = {
            b"x-vsr-selected-recipe": program.name,
            b"x-vsr-selected-decision": decision.name,
        }
        return DecisionGraph(
            graph=graph,
            algorithm=algorithm,
            is_looper=is_looper,
            label=Label(program.name, decision.name),
            models=_HopModels(self._hop_models(program, decision)).find,
            edits=(
                *keystone.edits(b"looper" if is_looper else b"graph"),
                *(HeaderEdit(name, value.encode()) for name, value in names.items()),
            ),
            failed_edits=keystone.edits(b"error"),
            identity=identity_of(graph, decision.name),
            static_headers=tuple(
                (name.lower().encode(), value.encode()) for name, value in looper.headers.items()
            ),
            max_answer_bytes=looper.max_response_bytes,
            nodes=nodes_of(graph.block),
        )

    def _hop_models(
        self, program: Program, decision: Decision
    ) -> Mapping[str, Callable[[], HopModel]]:
        """Return what makes each model that a step may name, by alias and by adapter."""
        hop = msgspec.structs.replace(
            decision,
            plugins=tuple(each for each in decision.plugins if isinstance(each, _ON_HOPS)),
        )
        refs = {ref.called_name: ref for ref in reversed(decision.model_refs)}
        refs |= {ref.model: ref for ref in reversed(decision.model_refs) if ref.model not in refs}
        makers: dict[str, Callable[[], HopModel]] = {}
        for cluster in self.snapshot.clusters:
            for name in (*reversed(cluster.loras), *cluster.external_names, cluster.name):
                adapter = name if name in cluster.loras else None
                known = refs.get(name) or refs.get(cluster.name)
                ref = _ref(cluster, adapter, known)

                def make(cluster: Cluster = cluster, ref: ModelRef = ref) -> HopModel:
                    target = self.workshop.decided(cluster, program.name, hop, ref)
                    return _hop_model(cluster, target)

                makers[name] = make
        return makers


class _HopModels(msgspec.Struct, frozen=True, eq=False):
    """Models that are made with the first call of each: a graph calls few of many."""

    makers: Mapping[str, Callable[[], HopModel]]
    made: dict[str, HopModel] = msgspec.field(default_factory=dict)

    def find(self, name: str) -> HopModel | None:
        """Return the model that is called `name`."""
        if name not in self.made and name in self.makers:
            self.made[name] = self.makers[name]()
        return self.made.get(name)


def _ref(cluster: Cluster, adapter: str | None, known: ModelRef | None) -> ModelRef:
    """Return the candidate that a hop's reasoning goes by.

    A model that is no candidate reasons if its family is known. Source: looper-algorithms 5.2.
    """
    if known is not None:
        return msgspec.structs.replace(known, model=cluster.name, lora_name=adapter)
    return ModelRef(cluster.name, lora_name=adapter, use_reasoning=cluster.reasoning is not None)


def _hop_model(cluster: Cluster, target: Target) -> HopModel:
    price = cluster.pricing
    return HopModel(
        target,
        None if price is None else price_of(price),
        cluster.max_output_tokens,
    )
