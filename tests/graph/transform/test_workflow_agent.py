"""Transformer `workflow_agent`."""

import pytest

from tests.graph.transform.workflow_values import INPUTS, answered, reply, step, workflow
from vsr.errors import GraphFailed
from vsr.graph.transform.workflow import FailedModel, OnError, Workflow
from vsr.graph.transform.workflow_agent import WorkflowAgent, WorkflowReply
from vsr.graph.value import Failure

FIRST, SECOND = step("one", "x"), step("two", "x", "y", number=1)
BEFORE = workflow(answered(FIRST, reply("x", "before")))
BROKEN = Failure("no answer", "upstream_reset")


def test_agent_adds_to_the_step_under_way() -> None:
    """Answers of one step gather in one result, in the order in which they came."""
    after = BEFORE
    for model in ("x", "y"):
        after = WorkflowAgent(after, SECOND, model, reply(model, f"by {model}"))(INPUTS)

    agents = [[agent.agent_id for agent in result.replies] for result in after.results]
    assert agents == [["one:0:x"], ["two:0:x", "two:1:y"]]


def test_agent_keeps_a_failure_under_skip() -> None:
    """A failed model is shown in the trace and counted, and the step goes on."""
    after = WorkflowAgent(BEFORE, SECOND, "x", BROKEN, "skip")(INPUTS)

    assert after.results[-1].failed == (FailedModel("x", "no answer"),)
    assert after.failed == (FailedModel("x", "no answer"),)


def _skip_all() -> Workflow:
    after = WorkflowAgent(BEFORE, SECOND, "x", BROKEN, "skip")(INPUTS)
    return WorkflowAgent(after, SECOND, "y", BROKEN, "skip")(INPUTS)


def test_agent_fails_where_the_whole_step_failed() -> None:
    """A step without an answer leaves nothing for the next one to work on."""
    with pytest.raises(GraphFailed) as raised:
        _skip_all()

    assert str(raised.value) == 'workflow step "two" failed: all models failed'


def test_agent_fails_at_once_under_fail() -> None:
    """The default ends the run with the first failure and names who it was."""
    with pytest.raises(GraphFailed) as raised:
        WorkflowAgent(BEFORE, SECOND, "x", BROKEN)(INPUTS)

    assert str(raised.value) == 'workflow step "two" failed for model "x": no answer'


def test_reply_of_a_model_beside_others_is_passed_on() -> None:
    """What becomes of all of them is for the step to say."""
    assert WorkflowReply(SECOND, "y", reply("y", "by y"))(INPUTS) == reply("y", "by y")


@pytest.mark.parametrize(
    ("on_failure", "message"),
    [
        ("fail", 'workflow step "two" failed for model "y": no answer'),
        ("skip", "no answer"),
    ],
)
def test_failure_of_a_model_beside_others_tells_whose_it_is(
    on_failure: OnError, message: str
) -> None:
    """Where it ends the run; else the record of the run says so."""
    with pytest.raises(GraphFailed) as raised:
        WorkflowReply(SECOND, "y", BROKEN, on_failure)(INPUTS)

    assert str(raised.value) == message


def test_workflow_tells_the_answers_of_the_step_under_way() -> None:
    """None where no step has begun."""
    after = WorkflowAgent(BEFORE, SECOND, "x", BROKEN, "skip")(INPUTS)

    assert [agent.agent_id for agent in BEFORE.latest] == ["one:0:x"]
    assert (after.latest, workflow().latest) == ((), ())
