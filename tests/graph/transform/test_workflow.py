"""The values that the steps of a workflow pass on."""

import msgspec

from tests.graph.transform.workflow_values import answered, reply, step, workflow
from vsr.graph.transform.workflow import FailedModel, Workflow, text_of


def test_workflow_survives_json() -> None:
    """A suspended run keeps its values as JSON; nothing may get lost on the way."""
    run = workflow(
        answered(step("a", "x", "y"), reply("x", "hi", reasoning="why", tokens=3)),
        answered(step("b", "x", number=1), failed=(FailedModel("x", "boom"),)),
        planner=reply("p", "{}"),
        final="x",
    )

    again = msgspec.json.decode(msgspec.json.encode(run), type=Workflow)

    assert again == run


def test_workflow_tells_steps_of_one_id_apart() -> None:
    """Ids need not be unique: a step is what stands at its place in the plan."""
    first, second = step("same", "x"), step("same", "x", number=1)
    run = workflow(answered(first, reply("x", "one")), answered(second))

    after = run.with_result(answered(second, reply("x", "two")))

    assert [result.step.number for result in after.results] == [0, 1]
    assert [each.content for each in after.replies] == ["one", "two"]
    assert [result.step.number for result in after.before(second)] == [0]


def test_text_of_is_the_reasoning_where_the_content_is_blank() -> None:
    """A model that only reasons still said something."""
    assert text_of(reply("x", " \n", reasoning="why")) == "why"
    assert text_of(reply("x", " said ", reasoning="why")) == " said "
