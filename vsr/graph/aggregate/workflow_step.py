"""Aggregate strategy `workflow_step`: put what the models of a step answered into the workflow.

Source of the rules and texts: looper-algorithms 11.3 and 19.
"""

from collections.abc import Sequence

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.transform.workflow import OnError, StepResult, Workflow, WorkflowStep
from vsr.graph.transform.workflow_agent import all_failed, with_answer
from vsr.graph.value import BranchOutcome, Failure, Inputs
from vsr.registry import Extension

_TIMED_OUT = "context deadline exceeded"


@attrs.frozen
class WorkflowStepAnswers:
    """Adds all answers of a step whose models are called side by side."""

    workflow: Workflow
    step: WorkflowStep
    min_successful: int | None = None
    """How many answers ended the step; all if it is none, not positive or not fewer than all."""
    on_failure: OnError = "fail"

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Workflow:
        """Return the workflow with them, in the order of the step's models.

        A call that was cancelled, or not begun, is neither an answer nor a failure.

        Raises:
            GraphFailed: a call failed or time ran out and `on_failure` is `fail`, or no call
                succeeded.
        """
        ended = [outcome for outcome in outcomes if not outcome.is_lost]
        failures = [outcome for outcome in ended if outcome.failure is not None]
        # The failure that came first is the one to report.
        first = min(failures, key=lambda outcome: outcome.rank or 0, default=None)
        if self.on_failure == "fail" and first is not None:
            ended = [first]
        result = StepResult(self.step)
        for outcome in ended:
            answer = _answer_of(outcome)
            if answer is not None:
                model = self.step.models[outcome.index]
                result = with_answer(result, model, answer, self.on_failure)
        self._check_enough(result, is_cut=len(ended) < len(outcomes))
        return self.workflow.with_result(result)

    def _check_enough(self, result: StepResult, *, is_cut: bool) -> None:
        wanted = len(self.step.models)
        if self.min_successful is not None and 0 < self.min_successful < wanted:
            wanted = self.min_successful
        got = len(result.replies)
        if is_cut and (not got or (got < wanted and self.on_failure == "fail")):
            raise GraphFailed(_TIMED_OUT)
        if not got:
            raise all_failed(self.step)


def _answer_of(outcome: BranchOutcome[object]) -> Reply | Failure | None:
    if outcome.failure is not None:
        return outcome.failure
    return outcome.value if isinstance(outcome.value, Reply) else None


WORKFLOW_STEP = Extension[Aggregate](name="workflow_step", config=WorkflowStepAnswers)
