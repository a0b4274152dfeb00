"""The metrics of several workers as those of one Router."""

from collections.abc import Mapping

import attrs

from vsr.workers.messages import Family, Sample

_SUMMED_GAUGES = frozenset({"llm_upstream_active_requests"})
"""Of which each worker has a part; other gauges are each worker's own view."""
_WORKER = "worker"
_Key = tuple[str, tuple[tuple[str, str], ...]]


@attrs.define
class Merged:
    """Sums counters and histograms; counts of workers that have ended go on in the sums.

    That is as far as they were told of, and as long as some worker has such a series: a series that
    none has any more is gone, as in a single process.
    """

    _last: dict[int, tuple[Family, ...]] = attrs.field(factory=dict, init=False)
    """What each worker has told last."""
    _ended: dict[_Key, float] = attrs.field(factory=dict, init=False)

    def end(self, worker: int) -> None:
        """Take note that a worker's process has ended."""
        for family in self._last.pop(worker, ()):
            if _is_summed(family) and family.kind != "gauge":
                for sample in family.samples:
                    key = _key(sample)
                    self._ended[key] = self._ended.get(key, 0.0) + sample.value

    def merge(self, told: Mapping[int, tuple[Family, ...]]) -> tuple[Family, ...]:
        """Return the metrics of all; `told` is by worker."""
        self._last.update(told)
        families: dict[str, Family] = {}
        sums: dict[str, dict[_Key, Sample]] = {}
        for worker, told_by in sorted(self._last.items()):
            for family in told_by:
                families.setdefault(family.name, family)
                _add(sums.setdefault(family.name, {}), family, worker)
        self._ended = {
            key: value
            for key, value in self._ended.items()
            if any(key in series for series in sums.values())
        }
        return tuple(
            Family(
                family.name,
                family.text,
                family.kind,
                tuple(self._with_ended(key, sample) for key, sample in sums[name].items()),
            )
            for name, family in families.items()
        )

    def _with_ended(self, key: _Key, sample: Sample) -> Sample:
        before = self._ended.get(key)
        if before is None:
            return sample
        return Sample(sample.name, sample.labels, sample.value + before)


def _add(series: dict[_Key, Sample], family: Family, worker: int) -> None:
    for sample in family.samples:
        labels = sample.labels
        if not _is_summed(family):
            labels = {**labels, _WORKER: str(worker)}
        one = Sample(sample.name, labels, sample.value)
        known = series.get(_key(one))
        if known is not None:
            one = Sample(one.name, labels, known.value + one.value)
        series[_key(one)] = one


def _is_summed(family: Family) -> bool:
    return family.kind != "gauge" or family.name in _SUMMED_GAUGES


def _key(sample: Sample) -> _Key:
    return sample.name, tuple(sorted(sample.labels.items()))
