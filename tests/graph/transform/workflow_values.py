"""Values that tests of workflows share."""

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply, ReplyUsage
from vsr.graph.transform.workflow import (
    AgentReply,
    FailedModel,
    StepResult,
    Workflow,
    WorkflowFinal,
    WorkflowPlan,
    WorkflowStep,
)
from vsr.graph.value import Inputs, ModelRef

INPUTS = Inputs(ChatBody({}))


def refs(*names: str) -> tuple[ModelRef, ...]:
    """Return references to models that are called by their own names."""
    return tuple(ModelRef(name, name) for name in names)


def reply(model: str, content: str = "", *, reasoning: str = "", tokens: int = 0) -> Reply:
    """Return an answer; `tokens` is what both of its counters say."""
    usage = ReplyUsage(tokens, tokens, 2 * tokens) if tokens else None
    return Reply(model, content, reasoning, usage=usage)


def step(step_id: str, *models: str, number: int = 0) -> WorkflowStep:
    """Return a step whose role is its id."""
    return WorkflowStep(step_id, step_id, models, f"do {step_id}", number=number)


def answered(
    step: WorkflowStep, *replies: Reply, failed: tuple[FailedModel, ...] = ()
) -> StepResult:
    """Return a step's result with `replies` in it."""
    agents = tuple(AgentReply(step.agent_id(reply.model), reply) for reply in replies)
    return StepResult(step, agents, failed)


def workflow(*results: StepResult, planner: Reply | None = None, final: str = "") -> Workflow:
    """Return a run in which `results` are all there is to do."""
    plan = WorkflowPlan(tuple(result.step for result in results), WorkflowFinal(final))
    return Workflow(plan, planner, results)
