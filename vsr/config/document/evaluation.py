"""`evaluation`: benchmarks, indices, measurements. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from vsr.config.document.kinds import Fraction, Pair
from vsr.config.document.objects import DocumentObject


class NormalizationPoint(DocumentObject, frozen=True):
    """One point of a `piecewise_linear` normalization."""

    input: float = 0.0
    output: float = 0.0


class Normalization(DocumentObject, frozen=True):
    """How a metric becomes a number from 0 to 1."""

    type: Literal[
        "identity", "one_minus", "linear_clamp", "piecewise_linear", "logistic", "lookup"
    ] = "identity"
    min: float | None = None
    max: float | None = None
    k: float | None = None
    x0: float | None = None
    points: tuple[NormalizationPoint, ...] = ()
    values: Mapping[str, float] = msgspec.field(default_factory=dict)


class BenchmarkProfile(DocumentObject, frozen=True):
    """`evaluation.benchmarks[].profiles[]`."""

    id: str = ""
    display_name: str | None = None
    description: str | None = None


class BenchmarkMetric(DocumentObject, frozen=True):
    """`evaluation.benchmarks[].metrics[]`."""

    id: str = ""
    unit: str | None = None
    direction: Literal["higher_is_better", "lower_is_better"] | None = None
    range: Pair | None = None
    normalization: Normalization | None = None


class BenchmarkDefinition(DocumentObject, frozen=True):
    """`evaluation.benchmarks[]`."""

    id: str = ""
    display_name: str | None = None
    domain: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    default_profile: str | None = None
    profiles: tuple[BenchmarkProfile, ...] = ()
    metrics: tuple[BenchmarkMetric, ...] = ()


class MissingPolicy(DocumentObject, frozen=True):
    """`evaluation.indices[].missing`."""

    policy: Literal["require_all", "reported_only", "require_coverage"] | None = None
    minimum: Fraction | None = None


class IndexComponent(DocumentObject, frozen=True):
    """`evaluation.indices[].components[]`: a metric or another index."""

    benchmark: str | None = None
    metric: str | None = None
    benchmark_profile: str | None = None
    benchmark_profiles: tuple[str, ...] = ()
    index: str | None = None
    weight: float | None = None
    normalization: Normalization | None = None


class IndexDefinition(DocumentObject, frozen=True):
    """`evaluation.indices[]`."""

    id: str = ""
    display_name: str | None = None
    description: str | None = None
    methodology: str | None = None
    aggregation: Literal["weighted_mean"] | None = None
    scale: Pair | None = None
    missing: MissingPolicy | None = None
    domains: Mapping[str, float] = msgspec.field(default_factory=dict)
    components: tuple[IndexComponent, ...] = ()


class EvaluationRecord(DocumentObject, frozen=True):
    """`evaluation.records[]`."""

    model: str = ""
    benchmark: str = ""
    benchmark_profile: str | None = None
    reasoning_effort: str | None = None
    metrics: Mapping[str, float] = msgspec.field(default_factory=dict)
    source: str | None = None
    measured_at: str | None = None
    metadata: Mapping[str, object] = msgspec.field(default_factory=dict)


class Evaluation(DocumentObject, frozen=True):
    """`evaluation`."""

    benchmarks: tuple[BenchmarkDefinition, ...] = ()
    indices: tuple[IndexDefinition, ...] = ()
    records: tuple[EvaluationRecord, ...] = ()
