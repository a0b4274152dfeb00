"""Transformers `workflow_static_plan` and `workflow_dynamic_plan`: what a workflow is going to do.

Source of the rules and texts: looper-algorithms 11.2, 17 and 19.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.codec.tolerant_json import read_as
from vsr.errors import GraphFailed
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import (
    NOTHING_SAID,
    OnError,
    Workflow,
    WorkflowFinal,
    WorkflowPlan,
    WorkflowRole,
    WorkflowStep,
)
from vsr.graph.transform.workflow_check import PlanLimits, checked_plan, instruction_for
from vsr.graph.value import Inputs, ModelRef
from vsr.registry import Extension

T = TypeVar("T")

NO_REFS = "workflows requires decision modelRefs"


@attrs.frozen
class WorkflowStaticPlan:
    """Makes one step of each role."""

    roles: tuple[WorkflowRole, ...]
    refs: tuple[ModelRef, ...]
    final: WorkflowFinal = NOTHING_SAID
    max_steps: int = 3
    max_parallel: int = 2

    def __call__(self, _inputs: Inputs, /) -> Workflow:
        """Return the run that is about to begin.

        Raises:
            GraphFailed: there is no role, or the roles break a limit.
        """
        workers = tuple(ref.called_name for ref in self.refs)
        if not workers:
            raise GraphFailed(NO_REFS)
        if not self.roles:
            raise GraphFailed("workflows static mode requires roles")
        steps = tuple(_step_of(role) for role in self.roles)
        limits = PlanLimits(workers, self.max_steps, self.max_parallel)
        return Workflow(checked_plan(WorkflowPlan(steps, self.final), limits))


@attrs.frozen
class WorkflowDynamicPlan:
    """Reads the plan that a planner wrote, or makes one step where it wrote none."""

    planner: Reply
    planner_model: str
    refs: tuple[ModelRef, ...]
    final: WorkflowFinal = NOTHING_SAID
    """The author's; it outweighs the planner's."""
    max_steps: int = 3
    max_parallel: int = 2
    on_failure: OnError = "fail"

    def __call__(self, _inputs: Inputs, /) -> Workflow:
        """Return the run that is about to begin.

        Raises:
            GraphFailed: the plan is no JSON object or cannot be followed, and failures end the run.
        """
        workers = tuple(ref.called_name for ref in self.refs)
        limits = PlanLimits(workers, self.max_steps, self.max_parallel)
        try:
            plan = read_as(plan_of, *_texts_of(self.planner))
            checked = checked_plan(_with_final(plan, self.final), limits)
        except (ValueError, GraphFailed) as error:
            if self.on_failure == "fail":
                raise GraphFailed(
                    f'workflow planner "{self.planner_model}" returned invalid plan: {error}'
                ) from error
            checked = checked_plan(_fallback_plan(self.final, limits), limits)
        return Workflow(checked, self.planner)


def plan_of(written: Mapping[str, object]) -> WorkflowPlan:
    """Return the plan in a planner's JSON object, unchecked; members may have any case.

    Raises:
        ValueError: a member has another type than it should.
    """
    try:
        return _plan_of(_lowered(written))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


class _WrittenStep(msgspec.Struct):
    id: str | None = None
    role: str | None = None
    models: tuple[str, ...] | None = None
    prompt: str | None = None
    access_list: tuple[str, ...] | None = None


class _WrittenFinal(msgspec.Struct):
    model: str | None = None
    prompt: str | None = None


def _plan_of(written: Mapping[str, object]) -> WorkflowPlan:
    entries = _converted(written.get("steps"), list[dict[str, object]]) or []
    steps = []
    for entry in entries:
        step = msgspec.convert(_lowered(entry), _WrittenStep)
        steps.append(
            WorkflowStep(
                id=step.id or "",
                role=step.role or "",
                models=step.models or (),
                prompt=step.prompt or "",
                access_list=step.access_list,
            )
        )
    members = _converted(written.get("final"), dict[str, object]) or {}
    final = msgspec.convert(_lowered(members), _WrittenFinal)
    return WorkflowPlan(tuple(steps), WorkflowFinal(final.model or "", final.prompt or ""))


def _converted(value: object, wanted: type[T]) -> T | None:
    return None if value is None else msgspec.convert(value, wanted)


def _lowered(members: Mapping[str, object]) -> dict[str, object]:
    return {name.lower(): value for name, value in members.items()}


def _step_of(role: WorkflowRole) -> WorkflowStep:
    step_id = role.id or role.name.strip().lower().replace(" ", "-").replace("_", "-")
    prompt = role.prompt or ""
    prompt = prompt if prompt.strip() else instruction_for(role.name)
    return WorkflowStep(step_id, role.name, role.models, prompt, role.access_list)


def _with_final(plan: WorkflowPlan, final: WorkflowFinal) -> WorkflowPlan:
    merged = WorkflowFinal(final.model or plan.final.model, final.prompt or plan.final.prompt)
    return WorkflowPlan(plan.steps, merged)


def _fallback_plan(final: WorkflowFinal, limits: PlanLimits) -> WorkflowPlan:
    models = tuple(dict.fromkeys(limits.workers))[: limits.max_parallel]
    step = WorkflowStep("fallback_solve", "worker", models, instruction_for("worker"))
    return WorkflowPlan((step,), final)


class _RawMessage(msgspec.Struct):
    content: object = None
    reasoning_content: object = None
    reasoning: object = None


class _RawChoice(msgspec.Struct):
    message: _RawMessage | None = None


class _RawReply(msgspec.Struct):
    choices: list[_RawChoice] | None = None


_RAW_REPLY = msgspec.json.Decoder(_RawReply)


def _texts_of(reply: Reply) -> Sequence[str]:
    """Return where the plan may stand: in the reply's texts, then in those of every choice."""
    texts: list[object] = [reply.content, reply.reasoning]
    try:
        choices = _RAW_REPLY.decode(reply.body).choices or []
    except (msgspec.MsgspecError, RecursionError):
        choices = []
    for message in (choice.message for choice in choices):
        if message is not None:
            texts += [message.content, message.reasoning_content, message.reasoning]
    return [text for text in texts if isinstance(text, str)]


WORKFLOW_STATIC_PLAN = Extension[Transformer](
    name="workflow_static_plan", config=WorkflowStaticPlan
)
WORKFLOW_DYNAMIC_PLAN = Extension[Transformer](
    name="workflow_dynamic_plan", config=WorkflowDynamicPlan
)
