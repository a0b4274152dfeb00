"""`evaluation`: benchmarks, indices, measurements. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Literal

import attrs

from vsr.config.document.kinds import Fraction, Pair


@attrs.frozen(repr=False, unsafe_hash=False)
class NormalizationPoint:
    """One point of a `piecewise_linear` normalization."""

    input: float = 0.0
    output: float = 0.0


@attrs.frozen(repr=False, unsafe_hash=False)
class Normalization:
    """How a metric becomes a number from 0 to 1."""

    type: Literal[
        "identity", "one_minus", "linear_clamp", "piecewise_linear", "logistic", "lookup"
    ] = "identity"
    min: float | None = None
    max: float | None = None
    k: float | None = None
    x0: float | None = None
    points: tuple[NormalizationPoint, ...] = ()
    values: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(repr=False, unsafe_hash=False)
class BenchmarkProfile:
    """`evaluation.benchmarks[].profiles[]`."""

    id: str = ""
    display_name: str | None = None
    description: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class BenchmarkMetric:
    """`evaluation.benchmarks[].metrics[]`."""

    id: str = ""
    unit: str | None = None
    direction: Literal["higher_is_better", "lower_is_better"] | None = None
    range: Pair | None = None
    normalization: Normalization | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class BenchmarkDefinition:
    """`evaluation.benchmarks[]`."""

    id: str = ""
    display_name: str | None = None
    domain: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    default_profile: str | None = None
    profiles: tuple[BenchmarkProfile, ...] = ()
    metrics: tuple[BenchmarkMetric, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class MissingPolicy:
    """`evaluation.indices[].missing`."""

    policy: Literal["require_all", "reported_only", "require_coverage"] | None = None
    minimum: Fraction | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class IndexComponent:
    """`evaluation.indices[].components[]`: a metric or another index."""

    benchmark: str | None = None
    metric: str | None = None
    benchmark_profile: str | None = None
    benchmark_profiles: tuple[str, ...] = ()
    index: str | None = None
    weight: float | None = None
    normalization: Normalization | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class IndexDefinition:
    """`evaluation.indices[]`."""

    id: str = ""
    display_name: str | None = None
    description: str | None = None
    methodology: str | None = None
    aggregation: Literal["weighted_mean"] | None = None
    scale: Pair | None = None
    missing: MissingPolicy | None = None
    domains: Mapping[str, float] = attrs.field(factory=dict)
    components: tuple[IndexComponent, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class EvaluationRecord:
    """`evaluation.records[]`."""

    model: str = ""
    benchmark: str = ""
    benchmark_profile: str | None = None
    reasoning_effort: str | None = None
    metrics: Mapping[str, float] = attrs.field(factory=dict)
    source: str | None = None
    measured_at: str | None = None
    metadata: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen(repr=False, unsafe_hash=False)
class Evaluation:
    """`evaluation`."""

    benchmarks: tuple[BenchmarkDefinition, ...] = ()
    indices: tuple[IndexDefinition, ...] = ()
    records: tuple[EvaluationRecord, ...] = ()
