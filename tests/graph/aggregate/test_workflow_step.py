"""Aggregate strategy `workflow_step`."""

import pytest

from tests.graph.transform.workflow_values import INPUTS, reply, step, workflow
from vsr.errors import GraphFailed
from vsr.graph.aggregate.workflow_step import WorkflowStepAnswers
from vsr.graph.transform.workflow import FailedModel, OnError, StepResult
from vsr.graph.value import BranchOutcome, Failure

STEP = step("s", "x", "y", "z")
LOST = BranchOutcome[object](2)


def _answer(index: int, rank: int) -> BranchOutcome[object]:
    model = STEP.models[index]
    return BranchOutcome(index, reply(model, f"by {model}"), rank=rank)


def _failure(index: int, rank: int) -> BranchOutcome[object]:
    return BranchOutcome(index, failure=Failure(f"e{index}", "upstream_reset"), rank=rank)


def _gather(
    *outcomes: BranchOutcome[object], on_error: OnError = "fail", quorum: int | None = None
) -> StepResult:
    after = WorkflowStepAnswers(workflow(), STEP, quorum, on_error)(outcomes, INPUTS)
    return after.results[-1]


def test_step_keeps_the_models_order() -> None:
    """Who was faster must not change what the next step reads."""
    result = _gather(_answer(0, 2), _answer(1, 0), _answer(2, 1))

    assert [agent.agent_id for agent in result.replies] == ["s:0:x", "s:1:y", "s:2:z"]


def test_step_under_skip_keeps_failures_apart() -> None:
    """A failed model is reported; a cancelled one is neither an answer nor a failure."""
    result = _gather(_failure(0, 0), _answer(1, 1), LOST, on_error="skip", quorum=1)

    assert [agent.agent_id for agent in result.replies] == ["s:1:y"]
    assert result.failed == (FailedModel("x", "e0"),)


def test_step_is_complete_with_its_quorum_under_fail() -> None:
    """Calls that the quorum made needless were not cut off by time."""
    result = _gather(_answer(0, 0), _answer(1, 1), LOST, quorum=2)

    assert len(result.replies) == 2


@pytest.mark.parametrize("quorum", [None, 0, 3, 9])
def test_step_that_ran_out_of_time_fails_under_fail(quorum: int | None) -> None:
    """An answer that is missing for lack of time is a failure by default."""
    with pytest.raises(GraphFailed, match=r"^context deadline exceeded$"):
        _gather(_answer(0, 0), _answer(1, 1), LOST, quorum=quorum)


def test_step_that_ran_out_of_time_goes_on_under_skip() -> None:
    """What was answered in time is enough, and the late model is not reported as failed."""
    result = _gather(_answer(0, 0), _failure(1, 1), LOST, on_error="skip")

    assert [agent.agent_id for agent in result.replies] == ["s:0:x"]
    assert [failed.model for failed in result.failed] == ["y"]


def test_step_without_an_answer_in_time_fails_under_skip() -> None:
    """Nothing to go on with: the deadline is the reason, since somebody might have answered."""
    with pytest.raises(GraphFailed, match=r"^context deadline exceeded$"):
        _gather(_failure(0, 0), _failure(1, 1), LOST, on_error="skip")


def test_step_in_which_all_failed_fails_under_skip() -> None:
    """Nothing to go on with, and all were heard."""
    with pytest.raises(GraphFailed, match='step "s" failed: all models failed'):
        _gather(_failure(0, 0), _failure(1, 1), _failure(2, 2), on_error="skip")


def test_step_under_fail_names_the_failure_that_came_first() -> None:
    """The first failure ends the step; what failed later is not why."""
    with pytest.raises(GraphFailed) as raised:
        _gather(_failure(0, 2), _failure(1, 0), _answer(2, 1))

    assert str(raised.value) == 'workflow step "s" failed for model "y": e1'
