"""The worst case of a graph as a table of plain text, and as JSON."""

import textwrap
from collections.abc import Iterator, Mapping

from vsr.graph.compiled import CompiledGraph
from vsr.graph.picture.tree import WIDTH
from vsr.graph.worst import Worst

_NANO = 1e9
_WORDS: Mapping[str, str] = {
    "calls": "calls",
    "attempts": "attempts",
    "parallel": "calls at once",
    "output_tokens": "tokens of answers",
    "cost_usd": "cost of answers",
    "time_s": "time",
}


def render_worst(worst: Worst, graph: CompiledGraph) -> str:
    """Return a line per quantity with the limit that holds for it, then what is not known."""
    return "\n".join(_lines(worst, graph))


def _lines(worst: Worst, graph: CompiledGraph) -> Iterator[str]:
    values, limits = quantities(worst), ceilings(graph)
    open_ones = {gap.of for gap in worst.gaps}
    yield f"  {'worst case':<20}{'at most':>14}   limit"
    for name, word in _WORDS.items():
        value = _shown(name, values[name])
        more = " +" if name in open_ones else "  "
        limit = limits[name]
        told = "-" if limit is None else _shown(name, limit)
        holds = ""
        if limit is not None and (values[name] > limit or name in open_ones):
            holds = " (may be reached)"
        yield f"  {word:<20}{value:>14}{more} {told}{holds}".rstrip()
    reasons: dict[str, list[str]] = {}
    for gap in sorted(worst.gaps):
        reasons.setdefault(gap.why, []).append(_WORDS[gap.of])
    for why, words in reasons.items():
        text = f"{', '.join(words)}: {why}"
        yield from textwrap.wrap(text, WIDTH, initial_indent="  + ", subsequent_indent="    ")


def quantities(worst: Worst) -> Mapping[str, float]:
    """Return what may happen at most, by quantity."""
    return {
        "calls": worst.calls,
        "attempts": worst.attempts,
        "parallel": worst.parallel,
        "output_tokens": worst.output_tokens,
        "cost_usd": worst.cost_nano_usd / _NANO,
        "time_s": round(worst.time_s, 3),
    }


def ceilings(graph: CompiledGraph) -> Mapping[str, float | None]:
    """Return the limit of each quantity; None where there is none."""
    limits = graph.limits
    tokens = [each for each in (limits.max_tokens, limits.max_completion_tokens) if each]
    cost = limits.max_cost_nano_usd
    return {
        "calls": limits.max_hops,
        "attempts": limits.max_hops,
        "parallel": None,
        "output_tokens": min(tokens) if tokens else None,
        "cost_usd": None if cost is None else cost / _NANO,
        "time_s": graph.timeout_s,
    }


def worst_json(worst: Worst, graph: CompiledGraph) -> Mapping[str, object]:
    """Return the same as JSON values."""
    return {
        **quantities(worst),
        "not_known": [{"of": gap.of, "why": gap.why} for gap in sorted(worst.gaps)],
        "limits": {name: each for name, each in ceilings(graph).items() if each is not None},
    }


def _shown(name: str, value: float) -> str:
    if name == "cost_usd":
        return f"${value:.6f}".rstrip("0").rstrip(".") if value else "$0"
    return f"{value:g}s" if name == "time_s" else f"{value:.0f}"
