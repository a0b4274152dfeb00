"""Checks a workflow's plan and completes what it leaves out.

Source of the rules and texts: looper-algorithms 11.2 and 19.
"""

import msgspec

from vsr.errors import GraphFailed
from vsr.graph.transform.workflow import WorkflowFinal, WorkflowPlan, WorkflowStep

_PLANNING = "Break the task down. Name its constraints, its risks and the order of the work."
_SOLVING = "Solve the task yourself, from start to end, and give a complete answer."
_CHECKING = "Look for mistakes and gaps in the work so far, and correct every one that you find."
_GENERIC = "Do the part of the task that fits your role, and say what you found."
_BY_ROLE = {
    "thinker": _PLANNING,
    "plan": _PLANNING,
    "planner": _PLANNING,
    "worker": _SOLVING,
    "solver": _SOLVING,
    "verifier": _CHECKING,
    "reviewer": _CHECKING,
    "critic": _CHECKING,
}
FINAL_PROMPT = (
    "Write the answer to the task. Use what the steps brought, correct what is wrong in it and "
    "leave out what does not help."
)


class PlanLimits(msgspec.Struct, frozen=True):
    """What a plan may use."""

    workers: tuple[str, ...]
    """Called names."""
    max_steps: int = 3
    max_parallel: int = 2


def instruction_for(role: str) -> str:
    """Return the built-in instruction of a role by its name."""
    return _BY_ROLE.get(role.strip().lower(), _GENERIC)


def checked_plan(plan: WorkflowPlan, limits: PlanLimits) -> WorkflowPlan:
    """Return the plan with every blank filled in, names trimmed and steps numbered.

    Raises:
        GraphFailed: the plan cannot be followed.
    """
    if not plan.steps:
        raise GraphFailed("workflows plan must include at least one step")
    if len(plan.steps) > limits.max_steps:
        raise GraphFailed(
            f"workflows plan has {len(plan.steps)} steps, exceeding max_steps={limits.max_steps}"
        )
    steps: list[WorkflowStep] = []
    visible: set[str] = set()
    for number, step in enumerate(plan.steps):
        checked = _checked_step(step, number, limits, visible)
        steps.append(checked)
        visible.add(checked.id)
        visible.update(checked.agent_id(model) for model in checked.models)
    return WorkflowPlan(tuple(steps), _checked_final(plan.final, limits))


def _checked_step(
    step: WorkflowStep, number: int, limits: PlanLimits, visible: set[str]
) -> WorkflowStep:
    step_id = step.id.strip() or f"step-{number + 1}"
    models = _distinct(step.models)
    access_list = None if step.access_list is None else _distinct(step.access_list)
    fault = _fault_of_models(models, limits) or _fault_of_access(access_list or (), visible)
    if fault:
        raise GraphFailed(f'workflows plan step "{step_id}" {fault}')
    return WorkflowStep(
        id=step_id,
        role=step.role.strip() or "worker",
        models=models,
        prompt=step.prompt if step.prompt.strip() else _GENERIC,
        access_list=access_list,
        number=number,
    )


def _fault_of_models(models: tuple[str, ...], limits: PlanLimits) -> str:
    if not models:
        return "has no model"
    if len(models) > limits.max_parallel:
        return f"has {len(models)} models, exceeding max_parallel={limits.max_parallel}"
    strangers = [model for model in models if model not in limits.workers]
    return f'uses model "{strangers[0]}" outside decision modelRefs' if strangers else ""


def _fault_of_access(access_list: tuple[str, ...], visible: set[str]) -> str:
    strangers = [target for target in access_list if target not in visible]
    return f'has unknown access target "{strangers[0]}"' if strangers else ""


def _checked_final(final: WorkflowFinal, limits: PlanLimits) -> WorkflowFinal:
    model, prompt = (final.model or "").strip(), final.prompt or ""
    if model and model not in limits.workers:
        raise GraphFailed(f'workflows final model "{model}" is outside decision modelRefs')
    return WorkflowFinal(model, prompt if prompt.strip() else FINAL_PROMPT)


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    trimmed = (name.strip() for name in names)
    return tuple(dict.fromkeys(name for name in trimmed if name))
