"""Transformers `workflow_summary` and `workflow_interrupt`."""

import msgspec

from tests.graph.transform.workflow_values import (
    INPUTS,
    answered,
    refs,
    reply,
    step,
    workflow,
)
from vsr.codec.chat_reply import Reply, ReplyUsage
from vsr.graph.suspend.tool_ids import PendingToolCalls
from vsr.graph.transform.workflow import FailedModel, Workflow, WorkflowStep
from vsr.graph.transform.workflow_summary import (
    FlowLabels,
    WorkflowAccount,
    WorkflowInterrupt,
    WorkflowSummary,
)

ONE = step("one", "x", "y")
TWO = WorkflowStep("two", "critic", ("y", "x"), "check", ("one:0:x",), number=1)
LABELS = FlowLabels(refs("x", "y"))
PLANNED = FlowLabels(refs("x", "y"), "dynamic", planner_model="p")


def _summary(
    run: Workflow, final: Reply | None = None, labels: FlowLabels = LABELS
) -> WorkflowAccount:
    return WorkflowSummary(run, final or reply("f", "end", tokens=100), labels)(INPUTS)


def _run(*, planner: Reply | None = None, failed: tuple[FailedModel, ...] = ()) -> Workflow:
    return workflow(
        answered(ONE, reply("x", "a", reasoning="why", tokens=1), reply("y", "b", tokens=2)),
        answered(TWO, reply("x", "c", tokens=4), failed=failed),
        planner=planner,
        final="y",
    )


def test_summary_counts_the_planner_the_steps_and_the_answer() -> None:
    """The client pays for every reply that was used, and sees each model once, in order."""
    account = _summary(_run(planner=reply("called-p", "{}", tokens=8)), labels=PLANNED)

    assert account.usage == ReplyUsage(115, 115, 230)
    assert account.models_used == ("p", "x", "y", "f")
    assert account.iterations == 5


def test_summary_counts_failures_as_iterations_but_not_as_models() -> None:
    """A failed call was made, and cost nothing that is known."""
    account = _summary(_run(failed=(FailedModel("gone", "e"),)))

    assert account.usage.total_tokens == 214
    assert account.models_used == ("x", "y", "f")
    assert account.iterations == 5


def test_summary_counts_the_copy_of_a_reply_again() -> None:
    """The reference does; the fixture of a failed final call pins it."""
    copied = reply("x", "a", tokens=1)

    account = _summary(_run(), copied)

    assert account.usage.total_tokens == 16
    assert account.models_used == ("x", "y")


def test_summary_adds_up_totals_as_they_were_reported() -> None:
    """Totals are summed and not computed; a reply without usage adds nothing."""
    odd = msgspec.structs.replace(reply("x"), usage=ReplyUsage(1, 2, 50))

    account = _summary(workflow(answered(ONE, odd, reply("y"))), reply("f"))

    assert account.usage == ReplyUsage(1, 2, 50)


def test_summary_shows_plan_and_answers() -> None:
    """The trace is what an author debugs a workflow with; absent members are absent."""
    trace = _summary(_run()).trace

    head = {"id": "one", "role": "one", "models": ["x", "y"], "prompt": "do one"}
    assert trace == {
        "mode": "static",
        "template": "micro_agent",
        "worker_models": ["x", "y"],
        "plan": {
            "steps": [
                head,
                {
                    "id": "two",
                    "role": "critic",
                    "models": ["y", "x"],
                    "prompt": "check",
                    "access_list": ["one:0:x"],
                },
            ],
            "final": {"model": "y"},
        },
        "steps": [
            {
                **head,
                "responses": [
                    {"agent_id": "one:0:x", "model": "x", "content": "a", "reasoning": "why"},
                    {"agent_id": "one:1:y", "model": "y", "content": "b"},
                ],
            },
            {
                "id": "two",
                "role": "critic",
                "models": ["y", "x"],
                "prompt": "check",
                "access_list": ["one:0:x"],
                "responses": [{"agent_id": "two:1:x", "model": "x", "content": "c"}],
            },
        ],
    }


def test_summary_without_intermediate_answers_shows_failures_only() -> None:
    """Answers stay inside unless they are wanted; that something failed is told in any case."""
    labels = FlowLabels(refs("x"), include_intermediate=False)

    silent = _summary(_run(), labels=labels)
    failed = _summary(_run(failed=(FailedModel("y", "e"),)), labels=labels)

    assert silent.trace is None
    assert failed.trace == {
        "mode": "static",
        "template": "micro_agent",
        "worker_models": ["x"],
        "failed_models": [{"model": "y", "error": "e"}],
    }


def test_summary_shows_the_rounds_of_tools() -> None:
    """Which tool calls led to an answer is told at the answer."""
    rounds = (("i1", "i2"), ("i3",))
    by_tools = msgspec.structs.replace(reply("x", "a"), tool_rounds=rounds)
    shown = [{"tool_call_ids": ["i1", "i2"]}, {"tool_call_ids": ["i3"]}]

    trace = _summary(workflow(answered(ONE, by_tools, reply("y", "b"))), by_tools).trace

    assert trace is not None
    assert trace["final_tool_trajectory"] == shown
    steps = trace["steps"]
    assert isinstance(steps, list)
    first, second = steps[0]["responses"]
    assert first["tool_trajectory"] == shown
    assert "tool_trajectory" not in second


def _pending(asking: Reply) -> PendingToolCalls:
    return PendingToolCalls("0" * 24, ("i1",), asking, msgspec.Raw(b"{}"), 1)


def test_interrupt_of_a_step_lists_the_pending_reply() -> None:
    """The client sees who asks, for which call, and what was said before."""
    run = workflow(answered(ONE, reply("x", "a", tokens=1), reply("y", "b", tokens=2)))
    run = run.with_result(answered(TWO, reply("y", "c", tokens=4)))
    pending = _pending(reply("x", "", tokens=8))

    account = WorkflowInterrupt(run, pending, LABELS, TWO)(INPUTS)

    assert account.trace is not None
    assert account.trace["pending_tool_call"] == {
        "phase": "step",
        "state_id": "0" * 24,
        "agent_id": "two:1:x",
        "step_id": "two",
        "role": "critic",
        "model": "x",
        "tool_call_ids": ["i1"],
    }
    steps = account.trace["steps"]
    assert isinstance(steps, list)
    assert [each["agent_id"] for each in steps[1]["responses"]] == ["two:0:y", "two:1:x"]
    assert account.usage.total_tokens == 30
    assert account.models_used == ("x", "y")
    assert account.iterations == 4


def test_interrupt_of_the_first_call_is_the_second_iteration() -> None:
    """Steps count from two, planned or not: the first call is the planner's place."""
    account = WorkflowInterrupt(workflow(), _pending(reply("x")), LABELS, ONE)(INPUTS)

    assert account.iterations == 2


def test_interrupt_counts_rounds_of_tools() -> None:
    """A call that is made again after a tool is one call more, and so is what follows it."""
    used = msgspec.structs.replace(reply("x"), tool_rounds=(("i",),))
    again = WorkflowInterrupt(workflow(), _pending(used), LABELS, ONE)(INPUTS)
    next_model = WorkflowInterrupt(
        workflow(answered(ONE, used)), _pending(reply("y")), LABELS, ONE
    )(INPUTS)

    assert again.iterations == 3
    assert next_model.iterations == 4


def test_interrupt_of_the_final_call_says_so() -> None:
    """It comes behind all calls of the steps, and belongs to none of them."""
    asking = msgspec.structs.replace(reply("f", tokens=8), tool_rounds=(("i0",),))

    labels = FlowLabels(refs("x"), include_intermediate=False)
    account = WorkflowInterrupt(_run(), _pending(asking), labels)(INPUTS)

    assert account.trace is not None
    assert account.trace["pending_tool_call"] == {
        "phase": "final",
        "state_id": "0" * 24,
        "agent_id": "final:f",
        "step_id": "final",
        "role": "final",
        "model": "f",
        "tool_call_ids": ["i1"],
    }
    assert account.trace["final_tool_trajectory"] == [{"tool_call_ids": ["i0"]}]
    assert "steps" not in account.trace
    assert account.usage.total_tokens == 30
    assert account.iterations == 6
