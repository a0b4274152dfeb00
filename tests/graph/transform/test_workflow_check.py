"""Checks of a workflow's plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.transform.workflow_values import step
from vsr.errors import GraphFailed
from vsr.graph.transform.workflow import WorkflowFinal, WorkflowPlan, WorkflowStep
from vsr.graph.transform.workflow_check import PlanLimits, checked_plan, instruction_for

LIMITS = PlanLimits(("a", "b", "c"), max_steps=2, max_parallel=2)


def _plan(*steps: WorkflowStep, final: str = "") -> WorkflowPlan:
    return WorkflowPlan(steps, WorkflowFinal(final))


def _accessing(*targets: str) -> WorkflowStep:
    return WorkflowStep("late", "late", ("a",), "do", targets)


def test_checked_plan_fills_in_what_is_blank() -> None:
    """A planner may leave out all but the models; names are trimmed and said once."""
    bare = WorkflowStep(" ", "", (" a ", "a", "", "b"), " ")

    checked = checked_plan(_plan(step("one", "c"), bare), LIMITS)

    filled = checked.steps[1]
    assert (filled.id, filled.role, filled.models, filled.number) == (
        "step-2",
        "worker",
        ("a", "b"),
        1,
    )
    assert filled.prompt.strip()
    assert (checked.final.prompt or "").strip()


def test_checked_plan_lets_a_step_see_earlier_steps_and_agents() -> None:
    """An access list names what came before; blanks and repetitions in it do not count."""
    plan = _plan(step("one", "a", "b"), _accessing("one", " one:1:b ", "one", ""))

    checked = checked_plan(plan, LIMITS)

    assert checked.steps[1].access_list == ("one", "one:1:b")


def test_checked_plan_keeps_an_empty_access_list() -> None:
    """An empty list hides everything, none shows everything: they must not be confused."""
    checked = checked_plan(_plan(step("one", "a"), _accessing()), LIMITS)

    assert [each.access_list for each in checked.steps] == [None, ()]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (_plan(), "workflows plan must include at least one step"),
        (
            _plan(step("1", "a"), step("2", "a"), step("3", "a")),
            "workflows plan has 3 steps, exceeding max_steps=2",
        ),
        (_plan(step("x")), 'workflows plan step "x" has no model'),
        (
            _plan(step("x", "a", "b", "c")),
            'workflows plan step "x" has 3 models, exceeding max_parallel=2',
        ),
        (
            _plan(step("x", "a", "ghost")),
            'workflows plan step "x" uses model "ghost" outside decision modelRefs',
        ),
        (_plan(_accessing("late")), 'workflows plan step "late" has unknown access target "late"'),
        (
            _plan(step("one", "a"), _accessing("late:0:a")),
            'workflows plan step "late" has unknown access target "late:0:a"',
        ),
        (
            _plan(step("one", "a"), _accessing("one:1:a")),
            'workflows plan step "late" has unknown access target "one:1:a"',
        ),
        (
            _plan(step("x", "a"), final=" ghost "),
            'workflows final model "ghost" is outside decision modelRefs',
        ),
    ],
)
def test_checked_plan_refuses_what_it_cannot_follow(plan: WorkflowPlan, message: str) -> None:
    """A plan outside the limits calls nobody: the author's ceilings hold whatever a model says."""
    with pytest.raises(GraphFailed) as raised:
        checked_plan(plan, LIMITS)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    "alike",
    [("thinker", "Plan", " planner "), ("worker", "solver"), ("verifier", "reviewer", "critic")],
)
def test_instruction_for_goes_by_the_roles_name(alike: tuple[str, ...]) -> None:
    """Roles of one kind get one instruction, and it is not the one of an unknown role."""
    assert len({instruction_for(role) for role in alike}) == 1
    assert instruction_for(alike[0]) != instruction_for("poet")


_names = st.sampled_from(["a", "b", " c", "ghost", "", "s", "s:0:a"])
_steps = st.builds(
    WorkflowStep,
    id=st.sampled_from(["s", "t", "", " "]),
    role=st.sampled_from(["", "worker"]),
    models=st.lists(_names, max_size=4).map(tuple),
    prompt=st.sampled_from(["", "do"]),
    access_list=st.none() | st.lists(_names, max_size=3).map(tuple),
)


_workers = st.sampled_from(["a", "b", " c", "a", "b", "ghost"])
_good_steps = st.builds(
    WorkflowStep,
    id=st.sampled_from(["s", "t", "", " "]),
    role=st.sampled_from(["", "worker"]),
    models=st.lists(_workers, min_size=1, max_size=2).map(tuple),
    prompt=st.sampled_from(["", "do"]),
    access_list=st.sampled_from([None, None, ("s",), ("s:0:a",)]),
)
_plans = st.lists(_good_steps, min_size=1, max_size=2) | st.lists(_steps, max_size=4)


@settings(deadline=None, max_examples=60)
@given(st.builds(WorkflowPlan, _plans.map(tuple)))
def test_checked_plan_is_within_its_limits_and_stays_so(plan: WorkflowPlan) -> None:
    """What passes is complete and inside the limits, and checking it again changes nothing."""
    try:
        checked = checked_plan(plan, LIMITS)
    except GraphFailed:
        return

    assert 1 <= len(checked.steps) <= LIMITS.max_steps
    for each in checked.steps:
        assert each.id
        assert 1 <= len(each.models) <= LIMITS.max_parallel
        assert set(each.models) <= set(LIMITS.workers)
    assert checked_plan(checked, LIMITS) == checked
