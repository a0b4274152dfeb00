"""Aggregate strategies that keep one success: `first_success`, `last_success`, `best_score`."""

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.aggregate.successes import find_replies, no_success
from vsr.graph.reading import success_of
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension

Order: TypeAlias = Literal["declared", "arrival"]
"""In which order branches count: as they are declared, or as they ended."""


@attrs.frozen
class FirstSuccess:
    """Picks the reply of the first branch that brought one."""

    order: Order = "declared"

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Reply:
        """Return the reply.

        Raises:
            GraphFailed: no branch succeeded, or one brought something else than a reply.
        """
        return _in_order(outcomes, self.order)[0]


@attrs.frozen
class LastSuccess:
    """Picks the reply of the last branch that brought one."""

    order: Order = "declared"

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Reply:
        """Return the reply.

        Raises:
            GraphFailed: no branch succeeded, or one brought something else than a reply.
        """
        return _in_order(outcomes, self.order)[-1]


class Scored(msgspec.Struct, frozen=True):
    """The reply with the highest score."""

    reply: Reply
    score: float
    index: int
    """Of its branch."""


@attrs.frozen
class BestScore:
    """Picks the reply with the highest score; the earlier one of equals."""

    scores: tuple[float | BranchOutcome[float] | None, ...]
    """One per branch, or one per branch that succeeded: the outcomes of another `parallel` over
    the same things, or plain numbers. A reply without a score is not chosen."""

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Scored:
        """Return the reply and its score.

        Raises:
            GraphFailed: no reply has a score, there are too many or too few scores, or a branch
                brought something else than a reply.
        """
        replies = find_replies(outcomes)
        if not replies:
            raise no_success(outcomes)
        scores = self._scores_of_successes(outcomes, len(replies))
        best: Scored | None = None
        for (index, reply), score in zip(replies, scores, strict=True):
            if _is_score(score) and (best is None or score > best.score):
                best = Scored(reply, float(score), index)
        if best is None:
            raise GraphFailed("no answer has a score")
        return best

    def _scores_of_successes(
        self, outcomes: Sequence[BranchOutcome[object]], success_count: int
    ) -> list[object]:
        """Return one score per success, or what stands in its place."""
        scores = [success_of(score) for score in self.scores]
        if len(scores) == len(outcomes):
            pairs = zip(outcomes, scores, strict=True)
            return [score for outcome, score in pairs if success_of(outcome) is not None]
        if len(scores) == success_count:
            return scores
        raise GraphFailed(
            f"{len(scores)} scores for {len(outcomes)} branches, {success_count} of them successful"
        )


def _in_order(outcomes: Sequence[BranchOutcome[object]], order: Order) -> list[Reply]:
    if order == "arrival":
        outcomes = sorted(outcomes, key=_rank)
    replies = [reply for _, reply in find_replies(outcomes)]
    if not replies:
        raise no_success(outcomes)
    return replies


def _rank(outcome: BranchOutcome[object]) -> float:
    return math.inf if outcome.rank is None else outcome.rank


def _is_score(score: object) -> TypeGuard[int | float]:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return False
    return not math.isnan(score)


FIRST_SUCCESS = Extension[Aggregate](name="first_success", config=FirstSuccess)
LAST_SUCCESS = Extension[Aggregate](name="last_success", config=LastSuccess)
BEST_SCORE = Extension[Aggregate](name="best_score", config=BestScore)
