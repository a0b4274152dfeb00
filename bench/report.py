"""The report: medians over the rounds, and ratios to vllm-router within each round."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

import attrs

from bench.measure import DIRECT, Kind, Options, Results, Sample

BASELINE = "vllm-router"
Measure = Callable[[Sample, Sample | None], float]

# What the Router must and should reach against the baseline, by row of the table of ratios.
_TARGETS = {
    "requests/s, 32 clients": (">= 0.5", ">= 0.8"),
    "added p50, 1 client": ("<= 2.5", "<= 1.7"),
    "CPU per chunk, 64 streams": ("<= 2.0", "<= 1.2"),
}


def render(options: Options, results: Results) -> str:
    """Return the whole report as text."""
    report = _Report(options, results)
    parts = [report.load_table("buffered"), report.load_table("stream"), report.memory_table()]
    parts += [report.ratio_table(), report.missing()]
    return "\n\n".join(part for part in parts if part)


def per_second(sample: Sample, _direct: Sample | None = None) -> float:
    """Return requests or chunks per second."""
    return sample.load.count / sample.load.seconds


def added_p50_us(sample: Sample, direct: Sample | None) -> float:
    """Return the median latency on top of the backend's own in the same round."""
    return sample.load.p50_us - (direct.load.p50_us if direct else 0.0)


def cpu_ms_per_1000(sample: Sample, _direct: Sample | None = None) -> float:
    """Return the proxy's CPU milliseconds per 1,000 requests or chunks."""
    return sample.cpu_ns / 1e3 / max(1, sample.load.count)


def core_percent(sample: Sample, _direct: Sample | None = None) -> float:
    """Return how much of its core the proxy used; well under 100 means the load was the limit."""
    return sample.cpu_ns / 1e7 / sample.load.seconds


def wait_percent(sample: Sample, _direct: Sample | None = None) -> float:
    """Return how much of the time it wanted its core the proxy had to wait for it."""
    return sample.waiting_ns * 100 / max(1, sample.waiting_ns + sample.cpu_ns)


_RATIOS: Sequence[tuple[Kind, str, Measure]] = (
    ("buffered", "requests/s", per_second),
    ("buffered", "added p50", added_p50_us),
    ("buffered", "CPU per request", cpu_ms_per_1000),
    ("stream", "CPU per chunk", cpu_ms_per_1000),
    ("stream", "added p50 per chunk", added_p50_us),
)


@attrs.frozen
class _Report:
    options: Options
    results: Results

    def load_table(self, kind: Kind) -> str:
        unit, level_name = ("req", "clients") if kind == "buffered" else ("chunks", "streams")
        header = [level_name, "peer", f"{unit}/s", "spread %", "p50 us", "p99 us", "added p50 us"]
        header += [f"CPU ms/1,000 {unit}", "core %", "wait %", "errors"]
        rows = [
            [str(level), peer, *self._load_cells(peer, kind, level)]
            for level in self.options.levels(kind)
            for peer in self._peers(kind)
        ]
        title = "Buffered: 200 B request, 600 B reply" if kind == "buffered" else "SSE: 50 chunks/s"
        backend = self.results.backends.get(kind, "none")
        return f"{title} (backend: {backend})\n{_table(header, rows)}" if rows else ""

    def memory_table(self) -> str:
        peers = list(dict.fromkeys(peer for peer, _ in self.results.rss_bytes))
        kinds: tuple[Kind, ...] = ("buffered", "stream")
        rows = []
        for peer in peers:
            sizes = [self.results.rss_bytes.get((peer, kind)) for kind in kinds]
            rows.append([peer, *(f"{size / 1e6:.0f}" if size else "-" for size in sizes)])
        return f"RSS after the load, MB\n{_table(['peer', *kinds], rows)}" if rows else ""

    def ratio_table(self) -> str:
        measured = {sample.peer for sample in self.results.samples}
        others = [p for p in self.options.peers if p in measured - {BASELINE}]
        if BASELINE not in measured or not others:
            return f"No ratios: they need {BASELINE} and another peer."
        rows = []
        for name, kind, level, measure in self._ratio_rows():
            cells = [self._ratio(peer, kind, level, measure) for peer in others]
            rows.append([name, *cells, *_TARGETS.get(name, ("", ""))])
        header = [f"ratio to {BASELINE}", *others, "must (router)", "goal"]
        table = _table(header, rows)
        note = "\n! some of these requests or streams failed" if "!" in table else ""
        return f"Ratios: median of the rounds' own\n{table}{note}"

    def missing(self) -> str:
        reasons = self.results.missing.items()
        return "\n".join(f"NOT MEASURED {peer}: {reason}" for peer, reason in reasons)

    def _ratio_rows(self) -> Iterator[tuple[str, Kind, int, Measure]]:
        for kind, name, measure in _RATIOS:
            unit = "client" if kind == "buffered" else "stream"
            for level in self.options.levels(kind):
                yield f"{name}, {level} {unit}{'' if level == 1 else 's'}", kind, level, measure

    def _load_cells(self, peer: str, kind: Kind, level: int) -> list[str]:
        samples = self._samples(peer, kind, level)
        if not samples:
            return ["-"] * 9
        loads = [sample.load for sample in samples.values()]
        rates = [per_second(sample) for sample in samples.values()]
        cells = [
            f"{median(rates):,.0f}",
            f"{(max(rates) - min(rates)) / median(rates) * 100:.0f}" if median(rates) else "-",
            f"{median(load.p50_us for load in loads):,.0f}",
            f"{median(load.p99_us for load in loads):,.0f}",
        ]
        if peer == DIRECT:
            cells += [""] * 4
        else:
            cells += [
                f"{self._median(peer, kind, level, added_p50_us):,.0f}",
                f"{self._median(peer, kind, level, cpu_ms_per_1000):,.1f}",
                f"{self._median(peer, kind, level, core_percent):.0f}",
                f"{self._median(peer, kind, level, wait_percent):.0f}",
            ]
        return [*cells, str(sum(load.errors for load in loads))]

    def _ratio(self, peer: str, kind: Kind, level: int, measure: Measure) -> str:
        baseline = self._values(BASELINE, kind, level, measure)
        values = self._values(peer, kind, level, measure)
        ratios = [values[r] / baseline[r] for r in values if baseline.get(r)]
        if not ratios:
            return "-"
        failed = any(sample.load.errors for sample in self._samples(peer, kind, level).values())
        return f"{median(ratios):.2f}{'!' if failed else ''}"

    def _median(self, peer: str, kind: Kind, level: int, measure: Measure) -> float:
        return median(self._values(peer, kind, level, measure).values())

    def _values(self, peer: str, kind: Kind, level: int, measure: Measure) -> dict[int, float]:
        direct = self._samples(DIRECT, kind, level)
        samples = self._samples(peer, kind, level)
        return {r: measure(sample, direct.get(r)) for r, sample in samples.items()}

    def _samples(self, peer: str, kind: Kind, level: int) -> dict[int, Sample]:
        return {
            sample.round: sample
            for sample in self.results.samples
            if (sample.peer, sample.kind, sample.level) == (peer, kind, level)
        }

    def _peers(self, kind: Kind) -> list[str]:
        present = {sample.peer for sample in self.results.samples if sample.kind == kind}
        return [peer for peer in (DIRECT, *self.options.peers) if peer in present]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if _is_text(i, header) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_text(column: int, header: Sequence[str]) -> bool:
    return column == 0 or header[column] == "peer"
