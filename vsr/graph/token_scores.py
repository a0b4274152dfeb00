"""How sure a model was of the tokens of its answer, as numbers from 0 to 1.

Source: the reference's confidence scores.
"""

import math
from collections.abc import Sequence

from vsr.codec.chat_reply import TokenLogprob

_LOGPROB_SPAN = 3.0
"""A mean logprob of minus this, and anything below, is no confidence at all."""
_MARGIN_SCALE = 3.0
_COMPARED = 2
"""The first two alternatives, as given, make a margin."""


def mean_logprob(tokens: Sequence[TokenLogprob]) -> float:
    """Return the mean of the chosen tokens' logprobs; there is at least one token."""
    return _mean([token.logprob for token in tokens])


def has_margins(tokens: Sequence[TokenLogprob]) -> bool:
    """Return whether every token has the two alternatives that a margin takes."""
    return all(len(token.alternatives) >= _COMPARED for token in tokens)


def mean_margin(tokens: Sequence[TokenLogprob]) -> float:
    """Return the mean lead of the first alternative over the second, in the order as given.

    Nothing is sorted, and the chosen token need not be among them. There is at least one token, and
    all have margins.
    """
    return _mean([token.alternatives[0][1] - token.alternatives[1][1] for token in tokens])


def logprob_score(mean: float) -> float:
    """Return a mean logprob as a score: 0 at -3 and below, 1 at 0."""
    return min(max((mean + _LOGPROB_SPAN) / _LOGPROB_SPAN, 0.0), 1.0)


def margin_score(mean: float) -> float:
    """Return a mean margin as a score: 0 without a lead, towards 1 as it grows."""
    return 0.0 if mean <= 0 else min(1.0, 1.0 - math.exp(-mean / _MARGIN_SCALE))


def _mean(values: Sequence[float]) -> float:
    # Not `sum`, which rounds otherwise from Python 3.12 on: a score may lie on its threshold.
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
