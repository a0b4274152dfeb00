"""Transformers `workflow_static_plan` and `workflow_dynamic_plan`."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.transform.workflow_values import INPUTS, refs, reply
from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.transform.workflow import OnError, Workflow, WorkflowFinal, WorkflowRole
from vsr.graph.transform.workflow_plan import WorkflowDynamicPlan, WorkflowStaticPlan

WRITTEN = {"steps": [{"id": "s", "models": ["a"]}], "final": {"model": "a", "prompt": "end"}}


def _plan(answer: Reply, *, on_error: OnError = "fail", final: str = "") -> Workflow:
    plan = WorkflowDynamicPlan(
        answer, "p", refs("a", "b", "c"), WorkflowFinal(final), on_failure=on_error
    )
    return plan(INPUTS)


def test_static_plan_makes_a_step_of_each_role() -> None:
    """A step's id is the role's name in lower case with hyphens; the role stays as written."""
    roles = (
        WorkflowRole(" Second Solver_X ", ("a", "b"), "my words", ()),
        WorkflowRole("thinker", ("a",)),
    )

    workflow = WorkflowStaticPlan(roles, refs("a", "b"), WorkflowFinal("b", "end"))(INPUTS)

    first, second = workflow.plan.steps
    assert (first.id, first.prompt, first.access_list) == ("second-solver-x", "my words", ())
    assert (second.id, second.role, second.number) == ("thinker", "thinker", 1)
    assert second.prompt.strip()
    assert workflow.plan.final == WorkflowFinal("b", "end")
    assert workflow.planner is None


@pytest.mark.parametrize(
    ("roles", "names", "message"),
    [
        ((), ("a",), "workflows static mode requires roles"),
        ((WorkflowRole("x", ("a",)),), (), "workflows requires decision modelRefs"),
        (
            (WorkflowRole("x", ("z",)),),
            ("a",),
            'workflows plan step "x" uses model "z" outside decision modelRefs',
        ),
    ],
)
def test_static_plan_fails_without_what_it_needs(
    roles: tuple[WorkflowRole, ...], names: tuple[str, ...], message: str
) -> None:
    """A workflow without roles or models has nothing to do and says so."""
    with pytest.raises(GraphFailed) as raised:
        WorkflowStaticPlan(roles, refs(*names))(INPUTS)

    assert str(raised.value) == message


def test_dynamic_plan_reads_keys_of_any_case() -> None:
    """Planners spell keys as they like; the planner's reply stays with the run for its usage."""
    answer = reply("p", 'Sure: {"Steps": [{"ID": "s", "MODELS": ["a"]}], "Final": {"Model": "b"}}')

    workflow = _plan(answer)

    assert [(step.id, step.models) for step in workflow.plan.steps] == [("s", ("a",))]
    assert workflow.plan.final.model == "b"
    assert workflow.planner == answer


def test_dynamic_plan_is_also_found_in_reasoning_and_in_other_choices() -> None:
    """Reasoning models put the plan in the wrong place; the first place that holds one counts."""
    plan = json.dumps(WRITTEN)
    message = {"content": ["parts"], "reasoning": None}
    body = json.dumps({"choices": [{}, {"message": message}, {"message": {"content": plan}}]})
    in_choice = msgspec.structs.replace(reply("p", "[]"), body=body.encode())

    from_reasoning = _plan(reply("p", "no plan", reasoning=plan))
    from_choice = _plan(in_choice)

    assert from_reasoning.plan == from_choice.plan
    assert from_choice.plan.steps[0].id == "s"


def test_dynamic_plan_passes_over_an_object_of_the_wrong_types() -> None:
    """What cannot be a plan does not hide one that stands behind it."""
    workflow = _plan(reply("p", '{"steps": "many"}', reasoning=json.dumps(WRITTEN)))

    assert workflow.plan.steps[0].id == "s"


def test_dynamic_plan_takes_the_authors_final_before_the_planners() -> None:
    """The author decides who answers; what he leaves open is the planner's."""
    workflow = _plan(reply("p", json.dumps(WRITTEN)), final="c")

    assert workflow.plan.final == WorkflowFinal("c", "end")


@pytest.mark.parametrize(
    "content",
    [
        "I cannot plan this",
        "{}",
        '{"steps": [{"models": ["ghost"]}]}',
        '{"steps": [{"models": 1}]}',
    ],
)
def test_dynamic_plan_that_cannot_be_followed_fails(content: str) -> None:
    """The error names the planner and the fault, not what the planner wrote around it."""
    with pytest.raises(GraphFailed) as raised:
        _plan(reply("p", content))

    assert str(raised.value).startswith('workflow planner "p" returned invalid plan: ')
    assert "I cannot" not in str(raised.value)


def test_dynamic_plan_falls_back_under_skip() -> None:
    """Without a plan the first workers solve the task; the author's final stays."""
    answer = reply("p", "no", tokens=5)

    workflow = _plan(answer, on_error="skip", final="c")

    (step,) = workflow.plan.steps
    assert (step.id, step.role, step.models) == ("fallback_solve", "worker", ("a", "b"))
    assert step.prompt.strip()
    assert workflow.plan.final.model == "c"
    assert workflow.planner == answer


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["a", "s", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["steps", "final", "id", "role", "models", "prompt", "access_list"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


_planned = st.fixed_dictionaries(
    {
        "steps": st.lists(
            st.fixed_dictionaries(
                {"models": st.lists(st.sampled_from(["a", "b", "ghost"]), min_size=1, max_size=2)},
                optional={
                    "id": st.sampled_from(["s", ""]),
                    "access_list": st.lists(st.sampled_from(["s", "t"]), max_size=2),
                },
            ),
            min_size=1,
            max_size=3,
        )
    }
)
"""Plans that may well be followed."""


@settings(deadline=None, max_examples=60)
@given(_planned | _json)
def test_dynamic_plan_survives_any_json_under_skip(written: object) -> None:
    """Whatever a planner writes, `skip` gives a plan that can be followed."""
    workflow = _plan(reply("p", json.dumps(written)), on_error="skip")

    assert workflow.plan.steps
    assert all(set(step.models) <= {"a", "b", "c"} for step in workflow.plan.steps)
