"""`routing` and `recipes[].routing`: one routing profile."""

from collections.abc import Mapping
from typing import Literal

import attrs

from vsr.config.document.bindings import ModelBinding
from vsr.config.document.decisions import Decision, DecisionReliability
from vsr.config.document.fallback import FallbackPolicy
from vsr.config.document.graphs import Graph
from vsr.config.document.model_cards import ModelCard
from vsr.config.document.projections import Projections
from vsr.config.document.signals import Signals


@attrs.frozen(repr=False, unsafe_hash=False)
class CandidateRequirements:
    """`routing.candidate_requirements`."""

    capabilities: Literal["declared"] | None = None
    context: Literal["known_limits"] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class DataPolicy:
    """`routing.data_policy`; false forbids replay."""

    replay: bool | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RecipeRouting:
    """`recipes[].routing`: what a recipe observes and decides.

    `graphs` and `reliability` are not in the canonical document.
    """

    candidate_requirements: CandidateRequirements | None = None
    data_policy: DataPolicy | None = None
    model_bindings: Mapping[str, ModelBinding] = attrs.field(factory=dict)
    signals: Signals = attrs.field(factory=Signals)
    projections: Projections = attrs.field(factory=Projections)
    decisions: tuple[Decision, ...] = ()
    strategy: Literal["priority", "confidence"] | None = None
    reliability: DecisionReliability | None = None
    fallback: FallbackPolicy | None = None
    graphs: Mapping[str, Graph] = attrs.field(factory=dict)


@attrs.frozen(repr=False, unsafe_hash=False)
class Routing(RecipeRouting):
    """`routing`: the default recipe, and the model cards of all recipes."""

    modelCards: tuple[ModelCard, ...] = ()  # noqa: N815  # the document's spelling
