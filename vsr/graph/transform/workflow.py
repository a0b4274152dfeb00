"""What the steps of a workflow pass on: its plan, and what its agents answered."""

from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import BudgetExhausted, GraphFailed
from vsr.graph.value import Failure

OnError = Literal["skip", "fail"]


@attrs.frozen
class WorkflowRole:
    """A role as the author of a static workflow writes it."""

    name: str
    models: tuple[str, ...]
    """Called names."""
    prompt: str | None = None
    access_list: tuple[str, ...] | None = None
    id: str | None = None
    """Of its step; None makes it of the name."""


@attrs.frozen
class WorkflowFinal:
    """Who writes the answer of a workflow, and what it is told; empty means: by the rules."""

    model: str | None = None
    prompt: str | None = None


NOTHING_SAID = WorkflowFinal()


class WorkflowStep(msgspec.Struct, frozen=True):
    """One step of a plan: one or more models with the same instruction."""

    id: str
    role: str
    models: tuple[str, ...]
    """Called names, none twice."""
    prompt: str
    access_list: tuple[str, ...] | None = None
    """Ids of earlier steps and agents whose answers it sees; None means all, empty means none."""
    number: int = 0
    """Its place in the plan, from 0; ids need not be unique."""

    def agent_id(self, model: str) -> str:
        """Return the id of one model's part in the step.

        Source: looper-algorithms 11.3.
        """
        return f"{self.id}:{self.models.index(model)}:{model}"


class WorkflowPlan(msgspec.Struct, frozen=True):
    """Steps that run one after the other, then the final call."""

    steps: tuple[WorkflowStep, ...]
    final: WorkflowFinal = NOTHING_SAID


class AgentReply(msgspec.Struct, frozen=True):
    """What one model answered in one step."""

    agent_id: str
    reply: Reply


class FailedModel(msgspec.Struct, frozen=True):
    """A model whose call failed; the error is safe to show."""

    model: str
    error: str


class StepResult(msgspec.Struct, frozen=True):
    """What has come of a step so far."""

    step: WorkflowStep
    replies: tuple[AgentReply, ...] = ()
    """In the order of the step's models."""
    failed: tuple[FailedModel, ...] = ()


class Workflow(msgspec.Struct, frozen=True):
    """One run: its plan and what its steps have brought so far; every change makes another one."""

    plan: WorkflowPlan
    planner: Reply | None = None
    """What the planner answered; None where the plan is the author's."""
    results: tuple[StepResult, ...] = ()
    """Of finished steps in order; the last may be a step under way."""

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Return the answers of all steps in order."""
        return tuple(agent.reply for result in self.results for agent in result.replies)

    @property
    def latest(self) -> tuple[AgentReply, ...]:
        """Return the answers of the last step begun."""
        return self.results[-1].replies if self.results else ()

    @property
    def failed(self) -> tuple[FailedModel, ...]:
        """Return the failed calls of all steps in order."""
        return tuple(failed for result in self.results for failed in result.failed)

    def result_of(self, step: WorkflowStep) -> StepResult:
        """Return what has come of `step`, the last one begun or the one after it."""
        if self.results and self.results[-1].step.number == step.number:
            return self.results[-1]
        return StepResult(step)

    def before(self, step: WorkflowStep) -> tuple[StepResult, ...]:
        """Return the results of the steps before `step`."""
        return tuple(result for result in self.results if result.step.number < step.number)

    def with_result(self, result: StepResult) -> "Workflow":
        """Put in the result of the last step begun, or of the one after it."""
        return msgspec.structs.replace(self, results=(*self.before(result.step), result))


def failed(message: str, failure: Failure) -> GraphFailed:
    """Return the error of a run that ends with a call's failure; a used-up budget stays one."""
    error = GraphFailed(message)
    if failure.code == BudgetExhausted.code:
        error.code, error.status = failure.code, BudgetExhausted.status  # type: ignore[misc]  # of this one alone
        error.headers = BudgetExhausted.headers  # type: ignore[misc]  # of this one alone
    return error


def text_of(reply: Reply) -> str:
    """Return the content, or the reasoning where the content is blank."""
    return reply.content if reply.content.strip() else reply.reasoning
