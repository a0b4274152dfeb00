"""Transformers `workflow_summary` and `workflow_interrupt`: what a reply tells of its workflow.

Source of the rules: looper-algorithms 4.3, 11.5 and 12.1.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply, ReplyUsage
from vsr.graph.suspend.tool_ids import PendingToolCalls
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import (
    AgentReply,
    StepResult,
    Workflow,
    WorkflowPlan,
    WorkflowStep,
)
from vsr.graph.value import Inputs, ModelRef
from vsr.registry import Extension

Members = dict[str, object]


class WorkflowAccount(msgspec.Struct, frozen=True):
    """What a reply and its headers tell of the run."""

    trace: Mapping[str, object] | None
    """The member `flow`; None leaves it out."""
    usage: ReplyUsage
    models_used: tuple[str, ...]
    iterations: int


@attrs.frozen
class FlowLabels:
    """What the trace shows of the configuration."""

    refs: tuple[ModelRef, ...]
    mode: Literal["static", "dynamic"] = "static"
    template: str = "micro_agent"
    planner_model: str | None = None
    include_intermediate: bool = True


@attrs.frozen
class WorkflowSummary:
    """Tells of a workflow that came to its answer."""

    workflow: Workflow
    final: Reply
    """The answer; the copy of another reply is counted once more.

    Source: looper-algorithms 17, kept as the reference does it.
    """
    labels: FlowLabels

    def __call__(self, _inputs: Inputs, /) -> WorkflowAccount:
        """Return the account; no trace where nothing failed and none is wanted."""
        workflow, labels = self.workflow, self.labels
        trace: Members | None = None
        if labels.include_intermediate or workflow.failed:
            trace = _trace(workflow, labels)
            if self.final.tool_rounds:
                trace["final_tool_trajectory"] = _rounds(self.final)
        return WorkflowAccount(
            trace,
            _sum_usage((*_paid(workflow), self.final)),
            _models_used(workflow, labels, self.final.model),
            1 + _planned(workflow) + _step_calls(workflow.results),
        )


@attrs.frozen
class WorkflowInterrupt:
    """Tells of a workflow that waits for the client's tools."""

    workflow: Workflow
    """With the answers that the step under way has so far."""
    pending: PendingToolCalls
    labels: FlowLabels
    step: WorkflowStep | None = None
    """The step under way; None where the final call asks for tools."""

    def __call__(self, _inputs: Inputs, /) -> WorkflowAccount:
        """Return the account so far; its trace is always there."""
        reply, step = self.pending.reply, self.step
        workflow = self.workflow
        if step is not None:
            result = workflow.result_of(step)
            agent = AgentReply(step.agent_id(reply.model), reply)
            shown = StepResult(step, (*result.replies, agent), result.failed)
            trace = _trace(workflow.with_result(shown), self.labels)
        else:
            trace = _trace(workflow, self.labels)
            if reply.tool_rounds:
                trace["final_tool_trajectory"] = _rounds(reply)
        trace["pending_tool_call"] = _pending_member(self.pending, step)
        return WorkflowAccount(
            trace,
            _sum_usage((*_paid(workflow), reply)),
            _models_used(workflow, self.labels, reply.model),
            _ordinal(workflow, step, reply),
        )


def _ordinal(workflow: Workflow, step: WorkflowStep | None, reply: Reply) -> int:
    """Return the number of the call that asks for tools.

    A step's calls count from its place in the plan plus 2, the final one behind all of the steps;
    every round of tools is one call more.
    """
    if step is None:
        return 2 + _step_calls(workflow.results) + len(reply.tool_rounds)
    earlier = sum(len(a.reply.tool_rounds) for a in workflow.result_of(step).replies)
    place = step.models.index(reply.model)
    return step.number + 2 + place + earlier + len(reply.tool_rounds)


def _paid(workflow: Workflow) -> tuple[Reply, ...]:
    return workflow.replies if workflow.planner is None else (workflow.planner, *workflow.replies)


def _planned(workflow: Workflow) -> int:
    return 0 if workflow.planner is None else 1


def _step_calls(results: Iterable[StepResult]) -> int:
    return sum(len(result.replies) + len(result.failed) for result in results)


def _sum_usage(replies: Iterable[Reply]) -> ReplyUsage:
    usages = [reply.usage for reply in replies if reply.usage is not None]
    return ReplyUsage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        sum(usage.total_tokens for usage in usages),
    )


def _models_used(workflow: Workflow, labels: FlowLabels, last: str) -> tuple[str, ...]:
    planner = labels.planner_model if workflow.planner is not None else None
    names = [planner or "", *(reply.model for reply in workflow.replies), last]
    return tuple(dict.fromkeys(name for name in names if name))


def _trace(workflow: Workflow, labels: FlowLabels) -> Members:
    trace: Members = {"mode": labels.mode, "template": labels.template}
    if labels.planner_model:
        trace["planner_model"] = labels.planner_model
    trace["worker_models"] = [ref.called_name for ref in labels.refs]
    if labels.include_intermediate:
        trace["plan"] = _plan_member(workflow.plan)
        trace["steps"] = [_step_member(result) for result in workflow.results]
    if workflow.failed:
        trace["failed_models"] = [
            {"model": failed.model, "error": failed.error} for failed in workflow.failed
        ]
    return trace


def _plan_member(plan: WorkflowPlan) -> Members:
    final = {"model": plan.final.model, "prompt": plan.final.prompt}
    return {
        "steps": [_head(step) for step in plan.steps],
        "final": {name: value for name, value in final.items() if value},
    }


def _head(step: WorkflowStep) -> Members:
    head: Members = {"id": step.id, "role": step.role, "models": list(step.models)}
    head["prompt"] = step.prompt
    if step.access_list is not None:
        head["access_list"] = list(step.access_list)
    return head


def _step_member(result: StepResult) -> Members:
    responses = [_response_member(agent) for agent in result.replies]
    return {**_head(result.step), "responses": responses}


def _response_member(agent: AgentReply) -> Members:
    reply = agent.reply
    member: Members = {"agent_id": agent.agent_id, "model": reply.model, "content": reply.content}
    if reply.reasoning:
        member["reasoning"] = reply.reasoning
    if reply.tool_rounds:
        member["tool_trajectory"] = _rounds(reply)
    return member


def _rounds(reply: Reply) -> list[Members]:
    return [{"tool_call_ids": list(ids)} for ids in reply.tool_rounds]


def _pending_member(pending: PendingToolCalls, step: WorkflowStep | None) -> Members:
    model = pending.reply.model
    return {
        "phase": "final" if step is None else "step",
        "state_id": pending.state_id,
        "agent_id": f"final:{model}" if step is None else step.agent_id(model),
        "step_id": "final" if step is None else step.id,
        "role": "final" if step is None else step.role,
        "model": model,
        "tool_call_ids": list(pending.tool_call_ids),
    }


WORKFLOW_SUMMARY = Extension[Transformer](name="workflow_summary", config=WorkflowSummary)
WORKFLOW_INTERRUPT = Extension[Transformer](name="workflow_interrupt", config=WorkflowInterrupt)
