"""Transformer `workflow_agent`: put what one model of a step answered into the workflow.

Source of the rules and texts: looper-algorithms 11.3 and 19.
"""

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import (
    AgentReply,
    FailedModel,
    OnError,
    StepResult,
    Workflow,
    WorkflowStep,
    failed,
)
from vsr.graph.value import Failure, Inputs
from vsr.registry import Extension


@attrs.frozen
class WorkflowAgent:
    """Adds one answer or failure of a step whose models are called one after the other."""

    workflow: Workflow
    step: WorkflowStep
    model: str
    """Of the step; called in the step's order."""
    answer: Reply | Failure
    on_failure: OnError = "fail"

    def __call__(self, _inputs: Inputs, /) -> Workflow:
        """Return the workflow with it.

        Raises:
            GraphFailed: the call failed and `on_failure` is `fail`, or it was the last of the step
                and none succeeded.
        """
        result = with_answer(
            self.workflow.result_of(self.step), self.model, self.answer, self.on_failure
        )
        if self.model == self.step.models[-1] and not result.replies:
            raise all_failed(self.step)
        return self.workflow.with_result(result)


@attrs.frozen
class WorkflowReply:
    """Passes on what a model of a step whose models are called side by side has answered.

    Where failures end the run, the failure of one tells of which step and model it is.
    """

    step: WorkflowStep
    model: str
    answer: Reply | Failure
    on_failure: OnError = "fail"

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the reply.

        Raises:
            GraphFailed: there is none.
        """
        if isinstance(self.answer, Reply):
            return self.answer
        if self.on_failure == "fail":
            raise _model_failed(self.step, self.model, self.answer)
        raise failed(self.answer.message, self.answer)


def _model_failed(step: WorkflowStep, model: str, failure: Failure) -> GraphFailed:
    return failed(
        f'workflow step "{step.id}" failed for model "{model}": {failure.message}', failure
    )


def with_answer(
    result: StepResult, model: str, answer: Reply | Failure, on_failure: OnError
) -> StepResult:
    """Return the step's result with one more answer or failure in it.

    Raises:
        GraphFailed: it is a failure and `on_failure` is `fail`.
    """
    step = result.step
    if isinstance(answer, Reply):
        agent = AgentReply(step.agent_id(model), answer)
        return StepResult(step, (*result.replies, agent), result.failed)
    if on_failure == "fail":
        raise _model_failed(step, model, answer)
    missing = FailedModel(model, answer.message)
    return StepResult(step, result.replies, (*result.failed, missing))


def all_failed(step: WorkflowStep) -> GraphFailed:
    """Return the error of a step in which no call succeeded."""
    return GraphFailed(f'workflow step "{step.id}" failed: all models failed')


WORKFLOW_REPLY = Extension[Transformer](name="workflow_reply", config=WorkflowReply)
WORKFLOW_AGENT = Extension[Transformer](name="workflow_agent", config=WorkflowAgent)
