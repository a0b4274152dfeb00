"""Many runs of one graph: how long, how dear, how often it fails."""

from collections import Counter
from collections.abc import Iterable, Sequence

import attrs
import msgspec

from vsr.dryrun.record import Record
from vsr.dryrun.render.words import outcome

PERCENTILES = (50, 90, 95, 99)


class Spread(msgspec.Struct, frozen=True):
    """How a number is spread over runs."""

    least: float
    mean: float
    percentiles: tuple[float, ...]
    """In the order of `PERCENTILES`: the least value that so many percent do not pass."""
    most: float


class Statistics(msgspec.Struct, frozen=True):
    """What many runs were."""

    graph: str
    first_seed: int
    runs: int
    failures: int
    """Runs in which the client got no whole answer with status 200."""
    latency_s: Spread
    nano_usd: Spread | None
    """None: no model that was called has a price."""
    tokens: Spread
    calls: Spread
    attempts: Spread
    outcomes: tuple[tuple[str, int], ...]
    """What clients got and how often, the most frequent first."""
    models: tuple[tuple[str, float, float], ...]
    """Of each model: calls in a run, and share of its calls that did not succeed."""


@attrs.define(eq=False)
class Tally:
    """Collects runs."""

    records: list["Brief"] = attrs.field(factory=list)

    def add(self, record: Record) -> None:
        """Take note of a run."""
        self.records.append(Brief.of(record))

    def result(self, graph: str, first_seed: int) -> Statistics:
        """Return what the runs were; there is at least one."""
        briefs = self.records
        costs = [brief.nano_usd for brief in briefs if brief.nano_usd is not None]
        ends = Counter(brief.outcome for brief in briefs)
        return Statistics(
            graph,
            first_seed,
            len(briefs),
            sum(not brief.has_succeeded for brief in briefs),
            spread(brief.latency_s for brief in briefs),
            spread(costs) if costs else None,
            spread(brief.tokens for brief in briefs),
            spread(sum(brief.calls.values()) for brief in briefs),
            spread(brief.attempts for brief in briefs),
            tuple(sorted(ends.items(), key=lambda item: (-item[1], item[0]))),
            tuple(_models(briefs)),
        )


class Brief(msgspec.Struct, frozen=True):
    """What of one run is kept."""

    latency_s: float
    nano_usd: int | None
    tokens: int
    attempts: int
    calls: dict[str, int]
    """By model."""
    failed: dict[str, int]
    outcome: str
    has_succeeded: bool

    @classmethod
    def of(cls, record: Record) -> "Brief":
        """Return it."""
        failed = Counter(call.model for call in record.calls if call.end != "ok")
        return cls(
            record.latency_s,
            record.totals.nano_usd,
            record.totals.tokens,
            record.totals.attempts,
            record.models_called(),
            dict(failed),
            outcome(record),
            record.has_succeeded,
        )


def spread(values: Iterable[float]) -> Spread:
    """Return how values are spread; there is at least one."""
    ordered = sorted(values)
    ranks = tuple(ordered[_rank(len(ordered), percent)] for percent in PERCENTILES)
    return Spread(ordered[0], sum(ordered) / len(ordered), ranks, ordered[-1])


def _rank(size: int, percent: int) -> int:
    return max(-(-size * percent // 100) - 1, 0)


def _models(briefs: Sequence[Brief]) -> Iterable[tuple[str, float, float]]:
    names = dict.fromkeys(name for brief in briefs for name in brief.calls)
    for name in names:
        calls = sum(brief.calls.get(name, 0) for brief in briefs)
        failed = sum(brief.failed.get(name, 0) for brief in briefs)
        yield name, calls / len(briefs), failed / calls
