"""Metrics on their way between processes: from the library's form, and back to be rendered."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import attrs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from vsr.workers.messages import Family, Sample


def families_of(metrics: Iterable[Metric]) -> tuple[Family, ...]:
    """Return metrics as plain data."""
    return tuple(
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            tuple(Sample(each.name, dict(each.labels), each.value) for each in metric.samples),
        )
        for metric in metrics
    )


def make_renderer(families: Callable[[], Iterable[Family]]) -> Callable[[], bytes]:
    """Return what renders the families there are at the time, in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry()
    registry.register(_Gathered(families))
    return partial(generate_latest, registry)


@attrs.frozen
class _Gathered(Collector):
    families: Callable[[], Iterable[Family]]

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        for family in self.families():
            metric = Metric(family.name, family.text, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric
