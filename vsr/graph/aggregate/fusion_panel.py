"""Aggregate strategy `fusion_panel`: the replies a judge gets, or why there are too few."""

from collections.abc import Sequence
from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import BudgetExhausted, GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.reading import is_usable
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension

DEADLINE_TEXT = "context deadline exceeded"
"""Of a panel that ran out of time. Source: looper-algorithms 19."""
UNUSABLE_TEXT = "the reply has neither content nor reasoning"


class FailedModel(msgspec.Struct, frozen=True):
    """A member of the panel that gave nothing, and why."""

    model: str
    """`panel` stands for all that the time limit cut off."""
    error: str


class Panel(msgspec.Struct, frozen=True):
    """What became of the panel's calls."""

    replies: tuple[Reply, ...]
    """The usable ones, in the panel's order."""
    failed: tuple[FailedModel, ...] = ()
    """In the panel's order, the time limit last; who was cut off is not among them."""
    is_quorum_met: bool = True
    """False only where a fallback is to answer instead."""


@attrs.frozen
class FusionPanel:
    """Keeps the usable replies of the panel if there are at least `quorum`.

    The `parallel` step decides when the panel ends: at `quorum` usable replies, at its time limit,
    or, where failures count, at the first failure, which ends the run before this step. A branch
    that was cut off although the quorum is not met can only have met the time limit.

    Source: looper-algorithms 9.2, step 3, and 16: the quorum of 0.4.0.
    """

    models: tuple[str, ...]
    """Of the branches, in declared order."""
    quorum: int = attrs.field(validator=attrs.validators.ge(1))
    on_failure: Literal["skip", "fail"] = "skip"
    """`fail`: a panel that runs out of time fails with that, whatever it has."""
    on_quorum_failure: Literal["fail", "fallback"] = "fail"

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], inputs: Inputs, /) -> Panel:
        """Return the kept panel; `outcomes` has one entry for each of `models`.

        Raises:
            GraphFailed: the quorum is not met, and no fallback answers.
            BudgetExhausted: that is so, and it might be met if the budget had refused no call.
        """
        del inputs
        replies = [outcome.value for outcome in outcomes if isinstance(outcome.value, Reply)]
        usable = tuple(reply for reply in replies if is_usable(reply))
        failed = self._failed(outcomes)
        if len(usable) >= self.quorum:
            return Panel(usable, failed)
        is_late = any(outcome.is_lost for outcome in outcomes)
        if is_late and self.on_failure == "fail":
            raise GraphFailed(DEADLINE_TEXT)
        if self.on_quorum_failure == "fail":
            if len(usable) + _count_refused(outcomes) >= self.quorum:
                raise BudgetExhausted
            raise GraphFailed(self._shortage(len(usable), has_replies=bool(replies), late=is_late))
        late = (FailedModel("panel", DEADLINE_TEXT),) if is_late else ()
        return Panel(usable, failed + late, is_quorum_met=False)

    def _failed(self, outcomes: Sequence[BranchOutcome[object]]) -> tuple[FailedModel, ...]:
        found = []
        for outcome in outcomes:
            model = self.models[outcome.index]
            if outcome.is_lost:
                continue
            if outcome.failure is not None:
                found.append(FailedModel(model, outcome.failure.message))
            elif not (isinstance(outcome.value, Reply) and is_usable(outcome.value)):
                found.append(FailedModel(model, UNUSABLE_TEXT))
        return tuple(found)

    def _shortage(self, usable_count: int, *, has_replies: bool, late: bool) -> str:
        if late and usable_count == 0:
            return DEADLINE_TEXT
        if not (has_replies or late):
            return f"fusion panel failed: all {len(self.models)} analysis models failed"
        got = f"got {usable_count} usable response(s), require {self.quorum}"
        return f"fusion panel quorum not met: {got}"


def _count_refused(outcomes: Sequence[BranchOutcome[object]]) -> int:
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    return sum(failure.code == BudgetExhausted.code for failure in failures)


FUSION_PANEL = Extension[Aggregate](name="fusion_panel", config=FusionPanel)
