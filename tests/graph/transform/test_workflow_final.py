"""Transformer `workflow_final`."""

import attrs
import pytest

from tests.graph.transform.workflow_values import INPUTS, answered, reply, step, workflow
from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.transform.choice_contract import ChoiceSpec
from vsr.graph.transform.workflow import OnError, Workflow
from vsr.graph.transform.workflow_final import WorkflowFinalAnswer
from vsr.graph.value import Failure

BROKEN = Failure("no answer", "upstream_reset")
MESSAGE = 'workflow final synthesis failed for model "f": no answer'


def _finish(
    run: Workflow,
    answer: Reply | Failure = BROKEN,
    *,
    choice: ChoiceSpec | None = None,
    on_error: OnError = "skip",
) -> Reply:
    return WorkflowFinalAnswer(run, "f", answer, choice, on_error)(INPUTS)


RUN = workflow(
    answered(step("one", "x", "y"), reply("x", "A"), reply("y", "B")),
    answered(step("two", "x", "y", number=1), reply("x", "B", tokens=4), reply("y", " ")),
)


def test_final_is_what_the_final_call_answered() -> None:
    """An empty answer is an answer too."""
    assert _finish(RUN, reply("f", "")) == reply("f", "")


def test_final_failure_ends_the_run_under_fail() -> None:
    """By default nobody's draft is shown as the answer."""
    with pytest.raises(GraphFailed) as raised:
        _finish(RUN, on_error="fail")

    assert str(raised.value) == MESSAGE


def test_final_failure_of_a_run_that_goes_on_is_one_under_skip_too() -> None:
    """The client can send its tools' answers again, and then get the real answer."""
    node = WorkflowFinalAnswer(RUN, "f", BROKEN, None, "skip")

    with pytest.raises(GraphFailed) as raised:
        node(attrs.evolve(INPUTS, is_resumed=True))

    assert str(raised.value) == MESSAGE


def test_final_failure_tells_a_used_up_budget() -> None:
    """Also in the words of the workflow: SDKs must not repeat it."""
    with pytest.raises(GraphFailed) as raised:
        _finish(RUN, Failure("no more", "budget_exhausted"), on_error="fail")

    error = raised.value
    assert (error.code, error.status) == ("budget_exhausted", 429)
    assert error.headers == ((b"x-should-retry", b"false"),)


def test_final_failure_under_skip_is_answered_by_the_last_reply_with_text() -> None:
    """The last step knew most; its model and usage come along."""
    assert _finish(RUN) == reply("x", "B", tokens=4)


def test_final_failure_under_skip_takes_the_last_model_of_the_step() -> None:
    """Of several that wrote something the last one counts."""
    run = workflow(answered(step("one", "x", "y"), reply("x", "1"), reply("y", "2")))

    assert _finish(run).content == "2"


def test_final_failure_under_skip_takes_reasoning_for_text() -> None:
    """A reply that only reasons is better than none."""
    run = workflow(answered(step("one", "x"), reply("x", "", reasoning="hm")))

    assert _finish(run).reasoning == "hm"


def test_final_failure_under_skip_is_decided_by_the_majority_of_a_choice() -> None:
    """Where the answer is one of a few values, the workers' votes are the better stand-in."""
    winner = _finish(RUN, choice=ChoiceSpec(("A", "B"), template="<{choice}>"))

    assert (winner.model, winner.content) == ("y", "<B>")


def test_final_failure_without_votes_is_answered_like_without_a_choice() -> None:
    """Nobody voted, but somebody wrote something."""
    assert _finish(RUN, choice=ChoiceSpec(("Z",))) == reply("x", "B", tokens=4)


def test_final_failure_under_skip_without_any_text_ends_the_run() -> None:
    """There is nothing to show."""
    run = workflow(answered(step("one", "x"), reply("x", "\n")))

    with pytest.raises(GraphFailed) as raised:
        _finish(run)

    assert str(raised.value) == MESSAGE
