"""The promise of `limits.strict`: a graph whose worst case is above its limits is refused."""

from collections.abc import Mapping

import attrs

from vsr.graph.budget import Limits
from vsr.graph.env import Complain, Path
from vsr.graph.worst import Worst
from vsr.resources.graph import CallBudget, GraphSource

Spot = tuple[Path, Complain]
"""Where something was written, and what gets its faults."""

_NO_BUDGET = CallBudget()
_NANO = 1e9


@attrs.define
class Faults:
    """Passes complaints on and counts them."""

    _complain: Complain
    count: int = attrs.field(default=0, init=False)

    def note(self, path: Path, what: str, why: str, mend: str) -> None:
        """Pass one on."""
        self.count += 1
        self._complain(path, what, why, mend)


def limit_spots(
    source: GraphSource,
    complain: Complain,
    budget: CallBudget = _NO_BUDGET,
    decision: tuple[Path, Complain] = ((), lambda *_: None),
) -> Mapping[str, Spot]:
    """Return where each ceiling of a graph was written that holds for it.

    Args:
        source: the graph.
        complain: gets faults of it.
        budget: what the decision says.
        decision: the path of its algorithm, and what gets its faults.
    """
    limits, path = source.limits, (*source.path, "limits")
    asked = {
        "max_tokens": ("max_total_tokens", budget.max_total_tokens, limits.max_tokens),
        "max_completion_tokens": ("max_completion_tokens", budget.max_completion_tokens, None),
        "max_cost": ("max_estimated_cost", budget.max_cost, limits.max_cost),
    }
    spots: dict[str, Spot] = {"max_hops": ((*path, "max_hops"), complain)}
    for name, (key, theirs, own) in asked.items():
        spots[name] = ((*path, name), complain)
        if _is_narrower(theirs, own):
            spots[name] = ((*decision[0], "budget", key), decision[1])
    return spots


def _is_narrower(asked: float | None, own: float | None) -> bool:
    return asked is not None and (own is None or asked < own)


def check_limits(limits: Limits, worst: Worst, spots: Mapping[str, Spot]) -> None:
    """Complain of each ceiling that the worst case is above.

    What nobody can tell beforehand counts as nothing here; it meets the ceilings when it runs.
    """
    cost = limits.max_cost_nano_usd
    tokens = "tokens of answers alone"
    rows = (
        ("max_hops", worst.attempts, limits.max_hops, "attempts"),
        ("max_tokens", worst.output_tokens, limits.max_tokens, tokens),
        ("max_completion_tokens", worst.output_tokens, limits.max_completion_tokens, tokens),
        (
            "max_cost",
            worst.cost_nano_usd / _NANO,
            None if cost is None else cost / _NANO,
            "of cost for answers alone",
        ),
    )
    mend = "raise the limit, make the graph smaller, or take `strict` away"
    for name, found, limit, unit in rows:
        if limit is not None and found > limit:
            path, complain = spots[name]
            what = f"is {limit:.10g}, and the worst case is {found:.10g} {unit}"
            complain(path, what, "the limits are strict", mend)
