"""Scoring against prototypes, shared by several rules and models."""

from typing import Annotated

from vsr.config.document.kinds import Bounds
from vsr.config.document.objects import DocumentObject


class PrototypeScoringConfig(DocumentObject, frozen=True):
    """`prototype_scoring`. Defaults are the reference's."""

    enabled: bool = True
    cluster_similarity_threshold: float = 0.9
    max_prototypes: int = 8
    best_weight: Annotated[float, Bounds(0, 1)] = 0.75
    top_m: int = 2
    margin_threshold: float = 0.0
