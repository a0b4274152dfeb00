"""Prompts of a workflow."""

import pytest

from tests.graph.transform.workflow_values import INPUTS, answered, refs, reply, step, workflow
from vsr.errors import GraphFailed
from vsr.graph.transform.workflow import WorkflowStep
from vsr.graph.transform.workflow_prompts import (
    WorkflowFinalPrompt,
    WorkflowPlannerPrompt,
    WorkflowStepPrompt,
)

SOLVE = step("solve", "x", "y")
EARLIER = workflow(
    answered(SOLVE, reply("x", "by x", reasoning="why x"), reply("y", "by y")),
    answered(step("check", "x", number=1), reply("x", "checked")),
)


def _seen(access_list: tuple[str, ...] | None) -> set[str]:
    late = WorkflowStep("late", "critic", ("x",), "mend it", access_list, number=2)
    text = WorkflowStepPrompt(EARLIER, late, "the task")(INPUTS).text
    return {said for said in ("by x", "why x", "by y", "checked") if said in text}


@pytest.mark.parametrize(
    ("access_list", "seen"),
    [
        (None, {"by x", "why x", "by y", "checked"}),
        ((), set()),
        (("solve",), {"by x", "why x", "by y"}),
        (("solve:1:y",), {"by y"}),
        (("solve:0:x", "check"), {"by x", "why x", "checked"}),
    ],
)
def test_step_prompt_shows_what_the_access_list_allows(
    access_list: tuple[str, ...] | None, seen: set[str]
) -> None:
    """A hidden answer must not leak: no list shows all, an empty one nothing."""
    assert _seen(access_list) == seen


def test_step_prompt_holds_the_steps_data_behind_the_conversation() -> None:
    """A step knows its id, role, instruction, whose answers it sees, and the question."""
    late = WorkflowStep("late", "critic", ("x",), "mend it", number=2)

    prompt = WorkflowStepPrompt(EARLIER, late, "the task")(INPUTS)

    assert prompt.place == "append"
    for part in ("late", "critic", "mend it", "solve:1:y", "the task"):
        assert part in prompt.text


def test_step_prompt_does_not_show_answers_of_its_own_step() -> None:
    """Models that are called one after the other do not see each other within a step."""
    text = WorkflowStepPrompt(EARLIER, SOLVE, "the task")(INPUTS).text

    assert "by x" not in text


def test_final_prompt_shows_every_answer_and_the_contract() -> None:
    """The answer is written from all outputs, whatever steps were allowed to see."""
    text = WorkflowFinalPrompt(EARLIER, "the task", "One word.")(INPUTS).text

    for part in ("by x", "why x", "by y", "checked", "the task", "solve:0:x"):
        assert part in text
    assert text.endswith("\nRequired output contract:\nOne word.\n")


def test_prompts_without_a_contract_do_not_name_one() -> None:
    """The marker of a contract would be read as one by the next graph."""
    final = WorkflowFinalPrompt(EARLIER, "the task")(INPUTS).text
    planner = WorkflowPlannerPrompt("the task", "p", refs("x"))(INPUTS).prompt.text

    assert "Required output contract:" not in final + planner


def test_planner_prompt_holds_workers_limits_and_shape() -> None:
    """A planner can only keep to limits that it is told."""
    task = WorkflowPlannerPrompt(
        "the task", "p", refs("w-one", "w-two", "w-one"), 7, 9, contract="One word."
    )(INPUTS)
    prompt = task.prompt

    assert task.model == "p"
    assert prompt.place == "append"
    for part in ("w-one, w-two\n", "7", "9", "access_list", "the task", "One word."):
        assert part in prompt.text


def test_planner_prompt_asks_for_one_step_where_a_choice_is_wanted() -> None:
    """Votes need several models on the same question."""
    plain = WorkflowPlannerPrompt("q", "p", refs("w"))(INPUTS).prompt.text
    voting = WorkflowPlannerPrompt("q", "p", refs("w"), wants_choice=True)(INPUTS).prompt.text

    assert "single step" in voting
    assert "single step" not in plain


@pytest.mark.parametrize(
    ("names", "planner", "message"),
    [
        ((), "p", "workflows requires decision modelRefs"),
        (("w",), "", "workflows dynamic mode requires planner.model"),
        (("w",), None, "workflows dynamic mode requires planner.model"),
        (
            ("w",),
            "vllm-sr/flow",
            'workflows planner.model cannot be direct Flow model "vllm-sr/flow"',
        ),
    ],
)
def test_planner_prompt_fails_before_any_call(
    names: tuple[str, ...], planner: str | None, message: str
) -> None:
    """A workflow that plans by starting a workflow would never end."""
    prompt = WorkflowPlannerPrompt("q", planner, refs(*names), flow_models=("vllm-sr/flow",))

    with pytest.raises(GraphFailed) as raised:
        prompt(INPUTS)

    assert str(raised.value) == message
