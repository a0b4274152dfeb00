"""`routing` and `recipes[].routing`: one routing profile."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from vsr.config.document.bindings import ModelBinding
from vsr.config.document.decisions import Decision, DecisionReliability
from vsr.config.document.fallback import FallbackPolicy
from vsr.config.document.graphs import Graph
from vsr.config.document.model_cards import ModelCard
from vsr.config.document.objects import DocumentObject
from vsr.config.document.projections import Projections
from vsr.config.document.signals import Signals


class CandidateRequirements(DocumentObject, frozen=True):
    """`routing.candidate_requirements`."""

    capabilities: Literal["declared"] | None = None
    context: Literal["known_limits"] | None = None


class DataPolicy(DocumentObject, frozen=True):
    """`routing.data_policy`; false forbids replay."""

    replay: bool | None = None


class RecipeRouting(DocumentObject, frozen=True):
    """`recipes[].routing`: what a recipe observes and decides.

    `graphs` and `reliability` are not in the canonical document.
    """

    candidate_requirements: CandidateRequirements | None = None
    data_policy: DataPolicy | None = None
    model_bindings: Mapping[str, ModelBinding] = msgspec.field(default_factory=dict)
    signals: Signals = msgspec.field(default_factory=Signals)
    projections: Projections = msgspec.field(default_factory=Projections)
    decisions: tuple[Decision, ...] = ()
    strategy: Literal["priority", "confidence"] | None = None
    reliability: DecisionReliability | None = None
    fallback: FallbackPolicy | None = None
    graphs: Mapping[str, Graph] = msgspec.field(default_factory=dict)


class Routing(RecipeRouting, frozen=True):
    """`routing`: the default recipe, and the model cards of all recipes."""

    modelCards: tuple[ModelCard, ...] = ()  # noqa: N815  # the document's spelling
