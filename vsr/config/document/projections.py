"""`routing.projections`: what is computed from signals. Defaults are the reference's."""

from typing import Literal

import attrs

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


@attrs.frozen(repr=False, unsafe_hash=False)
class ProjectionPartition:
    """`routing.projections.partitions[]`."""

    name: str = ""
    semantics: Literal["exclusive", "softmax_exclusive"] | None = None
    temperature: float | None = None
    members: tuple[str, ...] = ()
    default: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ProjectionScoreInput:
    """`routing.projections.scores[].inputs[]`."""

    type: ProjectionInputType | None = None
    name: str | None = None
    kb: str | None = None
    metric: str | None = None
    weight: float = 0.0
    value_source: Literal["binary", "confidence", "raw", "score"] | None = None
    match: float = 1.0  # 0 means 1 too
    miss: float = 0.0


@attrs.frozen(repr=False, unsafe_hash=False)
class ProjectionScore:
    """`routing.projections.scores[]`."""

    name: str = ""
    method: Literal["weighted_sum"] | None = None
    inputs: tuple[ProjectionScoreInput, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class ProjectionMappingCalibration:
    """`routing.projections.mappings[].calibration`."""

    method: Literal["sigmoid_distance"] | None = None
    slope: float = 12.0


@attrs.frozen(repr=False, unsafe_hash=False)
class ProjectionMappingOutput:
    """`routing.projections.mappings[].outputs[]`."""

    name: str = ""
    lt: float | None = None
    lte: float | None = None
    gt: float | None = None
    gte: float | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ProjectionMapping:
    """`routing.projections.mappings[]`."""

    name: str = ""
    source: str = ""
    method: Literal["threshold_bands", "multi_emit"] = "threshold_bands"
    calibration: ProjectionMappingCalibration | None = None
    outputs: tuple[ProjectionMappingOutput, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class Projections:
    """`routing.projections`."""

    partitions: tuple[ProjectionPartition, ...] = ()
    scores: tuple[ProjectionScore, ...] = ()
    mappings: tuple[ProjectionMapping, ...] = ()
