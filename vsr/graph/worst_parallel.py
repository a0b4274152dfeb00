"""The worst case of branches that run side by side."""

from collections.abc import Mapping
from math import ceil

import attrs

from vsr.graph.env import Bound, Constant, known_of
from vsr.graph.worst import NOTHING, Estimator, Worst, block_in, blocks_of_field
from vsr.graph.worst_call import repeated


def side_by_side(bound: Mapping[str, Bound], estimator: Estimator) -> Worst:
    """Return the worst case of all branches of a step, under its cap and its timeout."""
    authored = blocks_of_field(bound.get("branches"))
    if authored:
        each = [estimator.block(block).whole() for block in authored]
        worst = _together(each, _cap(bound, len(each)))
        count = len(each)
    else:
        count, gaps = repeated(bound, ("over", "times"), bound.get("max_items"))
        branch = estimator.block(block_in(bound, "do")).whole()
        worst = _alike(branch, count, _cap(bound, count))
        worst = attrs.evolve(worst, gaps=worst.gaps | gaps)
    waits = max(count - 1, 0) * (_number(bound.get("stagger")) or 0)
    worst = attrs.evolve(worst, time_s=worst.time_s + waits)
    return worst.within(_number(bound.get("timeout")))


def _alike(branch: Worst, count: int, cap: int) -> Worst:
    all_in_turn = branch.times(count)
    rounds = ceil(count / cap) if cap else 0
    parallel = branch.parallel * min(count, cap)
    return attrs.evolve(all_in_turn, parallel=parallel, time_s=branch.time_s * rounds)


def _together(branches: list[Worst], cap: int) -> Worst:
    whole = NOTHING
    for branch in branches:
        whole = whole.then(branch)
    widest = sorted((branch.parallel for branch in branches), reverse=True)[:cap]
    longest = max(branch.time_s for branch in branches)
    # Whoever starts the next branch as soon as one has ended needs no longer than this.
    time_s = longest if cap >= len(branches) else whole.time_s / cap + longest * (1 - 1 / cap)
    return attrs.evolve(whole, parallel=sum(widest), time_s=time_s)


def _cap(bound: Mapping[str, Bound], count: int) -> int:
    """Return how many branches run at once at most."""
    options = known_of(bound.get("max_concurrency")).options
    if not options or not all(isinstance(each, int) and each > 0 for each in options):
        return count
    return min(count, max(each for each in options if isinstance(each, int)))


def _number(bound: Bound | None) -> float | None:
    value = bound.value if isinstance(bound, Constant) else None
    return float(value) if isinstance(value, (int, float)) else None
