"""From authored steps to a graph that can run."""

import pytest

from vsr.errors import ConfigRejected
from vsr.graph.compile import PLAIN_STEPS, CompiledGraph, Step, compile_graph
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.graph.nodes.call import CallNode
from vsr.graph.nodes.node import Node
from vsr.graph.nodes.respond import RespondNode
from vsr.registry import Registry

NODES: Registry[Node] = Registry("node type", BUILTIN_NODES)


def compiled(*steps: Step, params: tuple[str, ...] = ("model",)) -> CompiledGraph:
    """Compile `steps`."""
    return compile_graph("debate", steps, NODES, params=params)


def problems_of(*steps: Step) -> list[str]:
    """Return what is wrong with `steps`."""
    with pytest.raises(ConfigRejected) as caught:
        compiled(*steps)
    return [f"{problem.path}: {problem.what}" for problem in caught.value.problems]


def call(name: str, model: str = "alpha") -> Step:
    """Return a step that calls `model`."""
    return Step(name, "call", {"model": model})


def respond(from_: str) -> Step:
    """Return a step that answers with what an earlier step got."""
    return Step("reply", "respond", {"from_": from_})


def test_plain_graph_is_one_tail_call() -> None:
    """No step is left to run before it."""
    graph = compile_graph("builtin/plain", PLAIN_STEPS, NODES, params=("model",))

    assert graph == CompiledGraph("builtin/plain", (), CallNode("$params.model"))


def test_last_call_is_the_tail_when_only_its_answer_follows() -> None:
    """Earlier steps stay steps."""
    graph = compiled(call("draft"), call("final"), respond("$final"))

    assert graph.steps == (("draft", CallNode("alpha")),)
    assert graph.tail == CallNode("alpha")


@pytest.mark.parametrize(
    "steps",
    [
        (call("first"), call("second"), respond("$first")),
        (call("first"), respond("$first"), Step("again", "respond", {"from_": "$first"})),
    ],
)
def test_call_is_no_tail_when_more_than_its_answer_follows(steps: tuple[Step, ...]) -> None:
    """Somebody needs its value here."""
    graph = compiled(*steps)

    assert graph.tail is None
    assert len(graph.steps) == len(steps)
    assert isinstance(graph.steps[-1][1], RespondNode)


def test_unknown_node_type_is_refused() -> None:
    """The message lists those that exist."""
    with pytest.raises(ConfigRejected) as caught:
        compiled(call("a"), Step("b", "magic", {}), respond("$a"))

    (problem,) = caught.value.problems
    assert problem.path == "graphs[debate].steps[1]"
    assert "unknown node type 'magic'" in problem.what
    assert "call, respond" in problem.why


@pytest.mark.parametrize("fields", [{}, {"model": "alpha", "colour": "red"}, {"modell": "alpha"}])
def test_fields_that_do_not_fit_are_refused(fields: dict[str, str]) -> None:
    """Missing and unknown ones."""
    problems = problems_of(Step("a", "call", fields), respond("$a"))

    assert problems == ["graphs[debate].steps[0]: fields do not fit a call"]


@pytest.mark.parametrize("reference", ["$later", "$params.other", "$nothing", "$a", "$"])
def test_reference_to_nothing_earlier_is_refused(reference: str) -> None:
    """Later steps, the step itself, unknown parameters."""
    problems = problems_of(call("a", reference), call("later"), respond("$a"))

    assert len(problems) == 1
    assert problems[0].startswith(f"graphs[debate].steps[0]: model refers to {reference},")


def test_literal_is_no_reference() -> None:
    """A model may be called anything that has no dollar in front."""
    assert compiled(call("a", "params.model"), respond("$a")).tail == CallNode("params.model")


def test_repeated_id_is_refused() -> None:
    """A reference to it would mean two things."""
    problems = problems_of(call("a"), call("a"), respond("$a"))

    assert problems == ["graphs[debate].steps[1]: id 'a' is taken"]


@pytest.mark.parametrize("steps", [(), (call("a"),), (call("a"), respond("$a"), call("b"))])
def test_graph_that_does_not_end_with_respond_is_refused(steps: tuple[Step, ...]) -> None:
    """It would have no answer."""
    assert problems_of(*steps) == ["graphs[debate]: does not end with a respond step"]


def test_every_problem_is_reported_at_once() -> None:
    """Authors mend a graph in one go."""
    problems = problems_of(
        call("a", "$b"), Step("a", "magic", {"from_": "$c"}), Step("d", "call", {})
    )

    assert [problem.split(":")[0] for problem in problems] == [
        "graphs[debate].steps[0]",
        "graphs[debate].steps[1]",
        "graphs[debate].steps[1]",
        "graphs[debate].steps[1]",
        "graphs[debate].steps[2]",
        "graphs[debate]",
    ]


@pytest.mark.parametrize("from_", ["$params.model", "a", "alpha"])
def test_respond_from_what_is_no_reply_is_refused(from_: str) -> None:
    """References are type-checked when the graph is compiled, not when a request runs it."""
    assert problems_of(call("a"), respond(from_))
