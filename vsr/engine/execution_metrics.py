"""What operators see of graphs: made of plain counts when somebody asks, not per request.

Source of names and labels: the reference's attempt evidence (looper-algorithms 15).
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from vsr.engine.execution_stats import BOUNDS_S, Durations, ExecutionStats, Labels

_BOUNDS = (*(f"{bound:.12g}" for bound in BOUNDS_S), "+Inf")
_STAGE = ("algorithm", "stage")
_NANO = 1_000_000_000


def execution_metrics(stats: ExecutionStats) -> Iterator[Metric]:
    """Yield the metrics of graphs and their calls, in a fixed order."""
    yield _counter(
        "attempts", "Calls of graphs.", (*_STAGE, "status", "reason"), dict(stats.attempts)
    )
    yield _histogram(
        "attempt_duration_seconds",
        "From the start of a graph's call to its end.",
        (*_STAGE, "status"),
        stats.durations,
    )
    yield _histogram(
        "attempt_first_byte_seconds",
        "From the start of a graph's call to the first byte of its answer.",
        _STAGE,
        stats.first_bytes,
    )
    yield _counter(
        "attempt_tokens",
        "Tokens that backends reported for calls of graphs.",
        (*_STAGE, "token_type"),
        dict(stats.tokens),
    )
    yield _counter(
        "attempt_cost",
        "Cost of the calls whose tokens and price are known.",
        (*_STAGE, "currency"),
        {labels: nano / _NANO for labels, nano in stats.nano_costs.items()},
    )
    yield _histogram(
        "execution_duration_seconds",
        "From the first step of a graph to its end, or that of its last call.",
        ("algorithm", "status"),
        stats.executions,
    )


def _counter(
    name: str, text: str, labels: tuple[str, ...], counts: Mapping[Labels, float]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"llm_looper_{name}", text, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family


def _histogram(
    name: str, text: str, labels: tuple[str, ...], found: Mapping[Labels, Durations]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"llm_looper_{name}", text, labels=labels)
    for values, durations in sorted(found.items(), key=lambda item: item[0]):
        counts = accumulate(durations.counts)
        buckets = [*zip(_BOUNDS, map(float, counts), strict=True)]
        family.add_metric(values, buckets, durations.seconds)
    return family
