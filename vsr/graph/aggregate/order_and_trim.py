"""Aggregate strategy `order_and_trim`: the replies of one round of `remom` that are kept."""

from collections.abc import Sequence
from typing import Literal

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.remom_round import UNUSABLE, RoundPlan, RoundRecord, is_usable, size_bytes, text_of
from vsr.graph.shuffle import shuffled
from vsr.graph.value import BranchOutcome, Failure, Inputs
from vsr.registry import Extension


@attrs.frozen
class OrderAndTrim:
    """Orders usable replies from long to short, shuffles them, and keeps the first.

    It decides, too, whether the round has failed; the `parallel` step before it only ends early.
    With `skip` a later round that failed has a record without kept replies; the first one that
    fails is an error. With `fail` so is the first failure, by arrival.

    Source: looper-algorithms 8.4 c to g, 19.
    """

    plan: RoundPlan
    failures: Literal["skip", "fail"] = "skip"
    seed: int = 0
    max_responses: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(0))
    )
    """How many are kept; None and 0 stand for all."""

    def __call__(
        self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /
    ) -> RoundRecord:
        """Return the record of the round.

        Raises:
            GraphFailed: the run cannot go on.
        """
        ended = sorted(
            (outcome for outcome in outcomes if not outcome.is_lost),
            key=lambda outcome: outcome.rank or 0,
        )
        if self.failures == "fail":
            self._refuse_failures(ended, outcomes)
        completed = [it.value for it in ended if isinstance(it.value, Reply)]
        usable = [reply for reply in completed if is_usable(reply)][: self.plan.quorum]
        if not usable and self.plan.number == 1:
            how = f"model calls {UNUSABLE}" if completed else "all model calls failed"
            raise GraphFailed(f"round 1: {how}")
        longest_first = sorted(usable, key=lambda reply: -size_bytes(text_of(reply)))
        return RoundRecord(
            number=self.plan.number,
            breadth=self.plan.breadth,
            is_final=self.plan.is_final,
            kept=shuffled(longest_first, self.seed)[: self.max_responses or None],
            completed=tuple(completed),
        )

    def _refuse_failures(
        self, ended: Sequence[BranchOutcome[object]], all_: Sequence[BranchOutcome[object]]
    ) -> None:
        """Go through what arrived as it arrived, up to the quorum.

        Raises:
            GraphFailed: a call failed or said nothing, or the round ended before it had enough.
        """
        enough = self.plan.quorum or len(all_)
        for usable, outcome in enumerate(ended):
            if usable == enough:
                return
            fault = _fault(outcome)
            if fault is not None:
                self._fail(f"model call {outcome.index} {fault}")
        if len(ended) < enough:
            late = (each.failure.message for each in all_ if each.is_lost and each.failure)
            self._fail(next(late, "the round timed out"))

    def _fail(self, cause: str) -> None:
        raise GraphFailed(f"round {self.plan.number} failed: {cause}")


def _fault(outcome: BranchOutcome[object]) -> str | None:
    """Return what is wrong with a branch that ended, None if nothing is."""
    if isinstance(outcome.value, Reply):
        return None if is_usable(outcome.value) else UNUSABLE
    failure = outcome.value if isinstance(outcome.value, Failure) else outcome.failure
    return f"failed: {failure.message}" if failure else UNUSABLE


ORDER_AND_TRIM = Extension[Aggregate](name="order_and_trim", config=OrderAndTrim)
