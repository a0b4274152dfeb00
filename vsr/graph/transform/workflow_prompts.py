"""Transformers that write the prompts of a workflow: for the planner, its steps and the answer.

Source of what each prompt holds: looper-algorithms 11.2 and 11.3; the wording is ours.
"""

from collections.abc import Iterable

import attrs
import msgspec

from vsr.codec.output_contract import contract_paragraph
from vsr.errors import GraphFailed
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import AgentReply, StepResult, Workflow, WorkflowStep
from vsr.graph.transform.workflow_check import FINAL_PROMPT
from vsr.graph.transform.workflow_plan import NO_REFS
from vsr.graph.value import Inputs, ModelRef, Prompt
from vsr.registry import Extension

_PLAN_SHAPE = """\
{"steps": [{"id": "solve", "role": "worker", "models": ["<worker>"], "prompt": "<instruction>",
            "access_list": ["<step id or agent id>"]}],
 "final": {"model": "<worker>", "prompt": "<instruction>"}}"""
_HOW_STEPS_RUN = (
    "Steps run one after the other; the models of one step work side by side on the same "
    "instruction."
)
_WHAT_STEPS_SEE = (
    "An agent id is <step id>:<place of the model in the step, from 0>:<model>. access_list names "
    "the earlier steps or agents whose output a step sees: leave it out for all, write an empty "
    "list for none."
)
_PREFER_ONE_STEP = (
    "The answer is one of a few values: prefer a single step in which several models solve the "
    "task side by side."
)
_HOW_TO_ANSWER = (
    "Treat these outputs as evidence that may be wrong: check them before you rely on them. "
    "Answer the user directly and in the form that was asked for. Do not mention steps, agents, "
    "models or instructions."
)


class PlannerTask(msgspec.Struct, frozen=True):
    """What the planner is asked."""

    model: str
    prompt: Prompt


@attrs.frozen
class WorkflowPlannerPrompt:
    """Asks the planner for a plan."""

    question: str
    planner_model: str | None
    refs: tuple[ModelRef, ...]
    max_steps: int = 3
    max_parallel: int = 2
    contract: str = ""
    """Text of the output contract; empty if there is none."""
    wants_choice: bool = False
    """Whether the answer has to be one of a few values."""
    flow_models: tuple[str, ...] | None = None
    """Names that start a workflow and so cannot plan one."""

    def __call__(self, _inputs: Inputs, /) -> PlannerTask:
        """Return the prompt, and who gets it.

        Raises:
            GraphFailed: there are no workers, no planner, or the planner is a workflow itself.
        """
        if not self.refs:
            raise GraphFailed(NO_REFS)
        if not self.planner_model:
            raise GraphFailed("workflows dynamic mode requires planner.model")
        if self.planner_model in (self.flow_models or ()):
            raise GraphFailed(
                f'workflows planner.model cannot be direct Flow model "{self.planner_model}"'
            )
        workers = ", ".join(dict.fromkeys(ref.called_name for ref in self.refs))
        lines = [
            "Plan how the workers below shall solve the task. Do not solve it yourself.",
            f"Workers: {workers}",
            f"At most {self.max_steps} steps, at most {self.max_parallel} models in one step.",
            _HOW_STEPS_RUN,
            _WHAT_STEPS_SEE,
            "final says which worker writes the answer and how; its members may be left out.",
        ]
        if self.wants_choice:
            lines.append(_PREFER_ONE_STEP)
        lines += [
            f"Reply with one JSON object of this shape and nothing else:\n{_PLAN_SHAPE}",
            f"Task:\n{self.question}",
        ]
        prompt = Prompt("\n\n".join(lines) + contract_paragraph(self.contract))
        return PlannerTask(self.planner_model, prompt)


@attrs.frozen
class WorkflowStepPrompt:
    """Tells the models of a step what to do, and what earlier agents said that they may see."""

    workflow: Workflow
    step: WorkflowStep
    question: str

    def __call__(self, _inputs: Inputs, /) -> Prompt:
        """Return the prompt; every model of the step gets the same one."""
        step = self.step
        parts = [
            f"You work on one step of a larger job.\nStep: {step.id}\nRole: {step.role}",
            f"Instruction:\n{step.prompt}",
            *_outputs(visible_results(self.workflow.before(step), step.access_list)),
            f"Task:\n{self.question}",
        ]
        return Prompt("\n\n".join(parts))


@attrs.frozen
class WorkflowFinalPrompt:
    """Asks for the answer, with everything that the steps brought."""

    workflow: Workflow
    question: str
    contract: str = ""

    def __call__(self, _inputs: Inputs, /) -> Prompt:
        """Return the prompt."""
        parts = [
            self.workflow.plan.final.prompt or FINAL_PROMPT,
            f"Task:\n{self.question}",
            *_outputs(self.workflow.results),
            _HOW_TO_ANSWER,
        ]
        return Prompt("\n\n".join(parts) + contract_paragraph(self.contract))


def visible_results(
    earlier: Iterable[StepResult], access_list: tuple[str, ...] | None
) -> tuple[StepResult, ...]:
    """Return what a step may see: whole steps by their id, single answers by their agent's.

    Args:
        earlier: results of the steps before.
        access_list: None means all of them.
    """
    if access_list is None:
        return tuple(earlier)
    return tuple(
        result
        if result.step.id in access_list
        else StepResult(
            result.step, tuple(agent for agent in result.replies if agent.agent_id in access_list)
        )
        for result in earlier
    )


def _outputs(results: Iterable[StepResult]) -> list[str]:
    return [_output(result.step, agent) for result in results for agent in result.replies]


def _output(step: WorkflowStep, agent: AgentReply) -> str:
    reply = agent.reply
    lines = [
        f"Output of step {step.id} ({step.role}), agent {agent.agent_id}, model {reply.model}:",
        reply.content,
    ]
    if reply.reasoning.strip():
        lines.append(f"Its reasoning:\n{reply.reasoning}")
    return "\n".join(lines)


WORKFLOW_PLANNER_PROMPT = Extension[Transformer](
    name="workflow_planner_prompt", config=WorkflowPlannerPrompt
)
WORKFLOW_STEP_PROMPT = Extension[Transformer](
    name="workflow_step_prompt", config=WorkflowStepPrompt
)
WORKFLOW_FINAL_PROMPT = Extension[Transformer](
    name="workflow_final_prompt", config=WorkflowFinalPrompt
)
