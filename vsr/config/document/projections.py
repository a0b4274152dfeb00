"""`routing.projections`: what is computed from signals. Defaults are the reference's."""

from typing import Literal

from vsr.config.document.objects import DocumentObject

ProjectionInputType = Literal[
    "keyword",
    "embedding",
    "domain",
    "fact_check",
    "user_feedback",
    "reask",
    "preference",
    "language",
    "context",
    "structure",
    "complexity",
    "modality",
    "authz",
    "jailbreak",
    "safety",
    "pii",
    "kb",
    "conversation",
    "event",
    "input_modality",
    "kb_metric",
    "projection",
]


class ProjectionPartition(DocumentObject, frozen=True):
    """`routing.projections.partitions[]`."""

    name: str = ""
    semantics: Literal["exclusive", "softmax_exclusive"] | None = None
    temperature: float | None = None
    members: tuple[str, ...] = ()
    default: str | None = None


class ProjectionScoreInput(DocumentObject, frozen=True):
    """`routing.projections.scores[].inputs[]`."""

    type: ProjectionInputType | None = None
    name: str | None = None
    kb: str | None = None
    metric: str | None = None
    weight: float = 0.0
    value_source: Literal["binary", "confidence", "raw", "score"] | None = None
    match: float = 1.0  # 0 means 1 too
    miss: float = 0.0


class ProjectionScore(DocumentObject, frozen=True):
    """`routing.projections.scores[]`."""

    name: str = ""
    method: Literal["weighted_sum"] | None = None
    inputs: tuple[ProjectionScoreInput, ...] = ()


class ProjectionMappingCalibration(DocumentObject, frozen=True):
    """`routing.projections.mappings[].calibration`."""

    method: Literal["sigmoid_distance"] | None = None
    slope: float = 12.0


class ProjectionMappingOutput(DocumentObject, frozen=True):
    """`routing.projections.mappings[].outputs[]`."""

    name: str = ""
    lt: float | None = None
    lte: float | None = None
    gt: float | None = None
    gte: float | None = None


class ProjectionMapping(DocumentObject, frozen=True):
    """`routing.projections.mappings[]`."""

    name: str = ""
    source: str = ""
    method: Literal["threshold_bands", "multi_emit"] = "threshold_bands"
    calibration: ProjectionMappingCalibration | None = None
    outputs: tuple[ProjectionMappingOutput, ...] = ()


class Projections(DocumentObject, frozen=True):
    """`routing.projections`."""

    partitions: tuple[ProjectionPartition, ...] = ()
    scores: tuple[ProjectionScore, ...] = ()
    mappings: tuple[ProjectionMapping, ...] = ()
