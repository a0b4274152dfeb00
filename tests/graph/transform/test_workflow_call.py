"""Transformers `workflow_call` and `workflow_final_model`."""

import pytest

from tests.graph.transform.workflow_values import INPUTS, answered, reply, step, workflow
from vsr.graph.transform.workflow_call import WorkflowCall, WorkflowFinalModel
from vsr.graph.value import ModelRef


@pytest.mark.parametrize(
    ("ref", "switches"),
    [
        (ModelRef("Qwen3", "Qwen3", use_reasoning=True), {"enable_thinking": True}),
        (ModelRef("qwq-32b", "qwq-32b", use_reasoning=False), {"enable_thinking": False}),
        (ModelRef("qwq-32b", "qwq-32b"), None),
        (ModelRef("deepseek-r1", "deepseek-r1", use_reasoning=True), {"thinking": True}),
        (ModelRef("gpt-oss", "gpt-oss", use_reasoning=True), {"reasoning_effort": "medium"}),
        (
            ModelRef("gpt-oss", "gpt-oss", use_reasoning=True, reasoning_effort="high"),
            {"reasoning_effort": "high"},
        ),
        (ModelRef("gpt-oss", "gpt-oss"), None),
        (ModelRef("m", "m", use_reasoning=True), None),
        (
            ModelRef("m", "m", use_reasoning=True, reasoning_family="deepseek"),
            {"thinking": True},
        ),
        (ModelRef("qwen", "qwen", use_reasoning=True, reasoning_family="other"), None),
    ],
)
def test_call_switches_a_workers_reasoning(
    ref: ModelRef, switches: dict[str, object] | None
) -> None:
    """The family's name says which argument, the model's own name where it has no family."""
    settings = WorkflowCall(ref.model, (ref,))(INPUTS)

    assert settings.chat_template_kwargs == switches


@pytest.mark.parametrize(
    ("model", "switches"),
    [
        ("qwen-c", {"enable_thinking": False}),
        ("DeepSeek", {"thinking": False}),
        ("gpt-oss", None),
    ],
)
def test_call_keeps_a_planner_from_reasoning(
    model: str, switches: dict[str, object] | None
) -> None:
    """A planner that thinks at length spends its tokens before the plan."""
    settings = WorkflowCall(model, (), planner_model=model)(INPUTS)

    assert settings.chat_template_kwargs == switches


def test_call_lets_a_reference_outweigh_the_planners_rule() -> None:
    """The author's own switch of the same model comes last."""
    ref = ModelRef("qwen", "qwen", use_reasoning=True)

    settings = WorkflowCall("qwen", (ref,), planner_model="qwen")(INPUTS)

    assert settings.chat_template_kwargs == {"enable_thinking": True}


def test_call_of_an_adapter_has_no_switch() -> None:
    """A reference is found by its model: an adapter's name is not it."""
    ref = ModelRef("qwen", "lora", use_reasoning=True, reasoning_family="qwen3")

    assert WorkflowCall("lora", (ref,))(INPUTS).chat_template_kwargs is None


def test_call_limits_the_planners_model_in_every_role() -> None:
    """The planner's limit goes with the model, also where it writes the answer."""
    planner = WorkflowCall("p", (), "p", max_completion_tokens=500)(INPUTS)
    worker = WorkflowCall("w", (), "p", max_completion_tokens=500)(INPUTS)
    unlimited = WorkflowCall("w", ())(INPUTS)

    assert planner.max_completion_tokens == 2048
    assert worker.max_completion_tokens == 500
    assert unlimited.max_completion_tokens is None


def test_final_model_is_the_plans_then_the_planner_then_the_first_to_answer() -> None:
    """Somebody who is known to be there writes the answer."""
    answers = answered(step("s", "x", "y"), reply("y"))

    assert WorkflowFinalModel(workflow(answers, final="f"), "p")(INPUTS) == "f"
    assert WorkflowFinalModel(workflow(answers), "p")(INPUTS) == "p"
    assert WorkflowFinalModel(workflow(answers))(INPUTS) == "y"


@pytest.mark.parametrize(
    ("timeout_s", "round_s", "least"), [(5, None, 5), (5, 3, 3), (3, 5, 3), (None, None, None)]
)
def test_call_has_the_shorter_of_its_times(
    timeout_s: float | None, round_s: float | None, least: float | None
) -> None:
    """A round may be shorter than a call may take, and the other way round."""
    node = WorkflowCall("m", (), timeout_s=timeout_s, round_timeout_s=round_s)

    assert node(INPUTS).timeout_s == least
