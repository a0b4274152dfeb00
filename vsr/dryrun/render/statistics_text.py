"""The statistics of many runs as text of 80 columns."""

from collections.abc import Callable

from vsr.dryrun.render.words import count, dollars, seconds
from vsr.dryrun.statistics import PERCENTILES, Spread, Statistics

_MODEL_COLUMNS = 30


def render_statistics(statistics: Statistics) -> str:
    """Return the report."""
    runs, failures = statistics.runs, statistics.failures
    last = statistics.first_seed + runs - 1
    heads = ("least", "mean", *(f"p{percent}" for percent in PERCENTILES), "most")
    lines = [
        f"{statistics.graph}: {count(runs, 'dry run')}, seeds {statistics.first_seed} to {last}",
        f"{failures} failed ({failures / runs:.2%})",
        "",
        _row("", heads),
        _spread("latency", statistics.latency_s, seconds),
    ]
    if statistics.nano_usd is not None:
        lines.append(_spread("cost", statistics.nano_usd, lambda value: dollars(round(value))))
    lines += [
        _spread("tokens", statistics.tokens, _number),
        _spread("calls", statistics.calls, _number),
        _spread("attempts", statistics.attempts, _number),
        "",
        "ANSWERS",
    ]
    lines += [
        f"  {number:>7} {number / runs:>8.2%}  {name}" for name, number in statistics.outcomes
    ]
    lines += ["", f"{'MODELS':<{_MODEL_COLUMNS + 2}} {'calls in a run':>16} {'not succeeded':>16}"]
    lines += [
        f"  {name[:_MODEL_COLUMNS]:<{_MODEL_COLUMNS}} {calls:>16.2f} {failed:>16.2%}"
        for name, calls, failed in statistics.models
    ]
    return "\n".join(lines) + "\n"


def _spread(name: str, spread: Spread, told: Callable[[float], str]) -> str:
    values = (spread.least, spread.mean, *spread.percentiles, spread.most)
    return _row(name, tuple(map(told, values)))


def _row(name: str, cells: tuple[str, ...]) -> str:
    return f"{name:<9}" + "".join(f"{cell:>10}" for cell in cells)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
