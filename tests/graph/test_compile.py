"""From authored steps to a graph that can run: every message that an author may get."""

import pytest

from tests.fakes.graph import Authored, compiled, problems_of, source_of
from vsr.graph.budget import UNLIMITED, Limits
from vsr.resources.graph import CallBudget, GraphLimits, OnExhausted, ParamSpec, ParamType

END = {"type": "respond", "from": "done"}
ONE = {"id": "one", "type": "call", "model": "a"}
TEXT = {"id": "text", "type": "transform", "transformer": "text", "parts": []}


def show(value: object) -> dict[str, object]:
    """Return a step that takes any value."""
    return {"type": "transform", "transformer": "shown", "value": value}


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([{"type": "cal"}], "0.type: is no node type: 'cal', known: aggregate, assess, branch"),
        ([{}], "0.type: is no node type: None, known:"),
        (["call"], "0: is no step, write a mapping with a type"),
        ([ONE | {"modl": "a"}], "0.modl: is an unknown key, did you mean 'model'?"),
        ([ONE | {"zzz": "a"}], "0.zzz: is an unknown key, known: account, allow, answers, edits"),
        ([{"type": "call"}], "0.model: is missing, add it"),
        ([ONE | {"model": 7}], "0.model: is 7, and here stands text or ModelRef"),
        ([ONE | {"id": "a b"}], "0.id: is 'a b', use letters, digits and _"),
        ([ONE | {"id": 7}], "0.id: is 7, use letters, digits and _"),
        ([ONE, ONE], "1.id: 'one' is taken, choose another id"),
        ([ONE | {"id": "request"}], "0.id: 'request' is taken, choose another id"),
        ([ONE | {"id": "params"}], "0.id: 'params' is taken, choose another id"),
        ([show("$later"), TEXT | {"id": "later"}], "0.value: $later refers to nothing that an"),
        ([show("$self") | {"id": "self"}], "0.value: $self refers to nothing that an"),
        ([show("$params.x")], "0.value: $params.x refers to nothing that an"),
        ([show("$")], "0.value: $ refers to nothing that an"),
        ([ONE, show("$one.contents")], "1.value: $one.contents: Reply has no member 'contents'"),
        ([ONE, show("$one._body")], "1.value: $one._body: Reply has no member '_body'"),
        ([show("$request.nothing")], "0.value: $request.nothing: ChatBody has no member"),
        ([ONE, TEXT | {"parts": ["$one"]}], "1.parts.0: $one is Reply, and here stands text"),
        ([TEXT, ONE | {"model": "$text.x"}], "1.model: $text.x: text has no member 'x'"),
        ([ONE | {"timeout": "soon"}], "0.timeout: is 'soon', not a duration, write a duration"),
        ([ONE | {"timeout": [1]}], "0.timeout: is [1], and here stands"),
        (
            [ONE | {"stream": "maybe"}],
            "0.stream: is 'maybe', and here stands one of never, collect",
        ),
        ([ONE | {"account": ["money"]}], "0.account.0: is 'money', and here stands one of usage"),
        ([ONE | {"edits": [{"tools": "drop"}]}], "0.edits.0.tools: is 'drop', and here stands"),
        ([ONE | {"edits": [{"tolls": 1}]}], "0.edits.0.tolls: is an unknown key, did you mean"),
        ([ONE | {"edits": {"tools": "keep"}}], "0.edits: is {'tools': 'keep'}, and here stands"),
        ([ONE | {"reliability": "fast"}], "0.reliability: is 'fast', write a mapping"),
        ([ONE | {"on_error": "$request.has_tools"}], "0.on_error: "),
        ([{"type": "fail", "message": 1}], "0.message: is 1, write a text"),
        ([{"type": "loop", "times": 1}], "0.do: is missing, add it"),
        ([{"type": "loop", "times": 1, "do": []}], "0.do: is no list of steps, write at least one"),
        ([{"type": "loop", "times": 1, "do": {}}], "0.do: is no list of steps, write at least one"),
        ([{"type": "parallel", "do": [TEXT]}], "0: cannot be used: give one of over, times and"),
        ([{"type": "parallel", "times": 2}], "0: cannot be used: give `do` with over or times"),
        ([{"type": "branch", "cases": [{"then": [TEXT]}]}], "0.cases.0.when: is missing, add it"),
        ([{"type": "subgraph", "graph": "none"}], "0.graph: is no graph: 'none', declare it under"),
        ([{"type": "subgraph", "graph": 7}], "0.graph: is 7, name a graph"),
        ([END, ONE], "1: is never reached, respond#0 ends the list, remove it"),
        ([{"type": "fail", "message": "no"}, ONE], "1: is never reached, fail#0 ends the list"),
    ],
)
def test_fault_is_told_where_it_stands(steps: list[object], problem: str) -> None:
    """With what is known instead, or what to do."""
    found = problems_of([*steps, END])  # type: ignore[list-item]  # faults

    assert any(each.startswith(f"graphs.main.steps.{problem}") for each in found), found


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("yes", "is no condition, write a mapping with one key"),
        ({"equals": 1, "succeeded": 1}, "is no condition, write a mapping with one key"),
        ({"equal": 1}, ".equal: is no condition: 'equal', known: all, any, equals, not"),
        ({"all": []}, ".all: is no list of conditions, write at least one"),
        ({"any": {"equals": 1}}, ".any: is no list of conditions, write at least one"),
        ({"not": {"any": [{"equals": {"valu": 1}}]}}, ".not.any.0.equals.value: is missing"),
        ({"not": {"any": [{"equals": {"valu": 1}}]}}, ".not.any.0.equals.valu: is an unknown key"),
    ],
)
def test_faults_of_conditions(when: object, problem: str) -> None:
    """Inside of others, too."""
    found = problems_of([{"type": "branch", "cases": [{"when": when, "then": [TEXT]}]}, END])

    assert any(problem in each for each in found), found


@pytest.mark.parametrize(
    "fields", [{"do": [END]}, {"do": [{"type": "branch", "cases": [], "else": [END]}]}]
)
def test_branch_of_a_parallel_step_cannot_answer(fields: dict[str, object]) -> None:
    """From no depth."""
    found = problems_of([{"type": "parallel", "times": 2, **fields}, END])

    assert [each.split(": ")[1] for each in found] == [
        "a branch of a parallel step cannot end the graph"
    ]


@pytest.mark.parametrize(
    "steps",
    [
        [TEXT],
        [{"type": "branch", "cases": [], "else": [TEXT]}],
        [{"type": "loop", "times": 1, "do": [END]}],
    ],
)
def test_graph_without_an_answer_on_every_way_is_refused(steps: list[dict[str, object]]) -> None:
    """A loop may have no round."""
    [found] = problems_of(steps)

    assert found.startswith("graphs.main.steps: may come to its end without an answer")


def test_graph_needs_steps() -> None:
    """At least one."""
    assert problems_of([]) == ["graphs.main.steps: is no list of steps, write at least one step"]


def test_all_faults_are_told_together() -> None:
    """In the order of the steps."""
    found = problems_of([ONE | {"modl": 1}, show("$x"), {"type": "cal"}, END])

    assert [each.split(":")[0] for each in found] == [
        "graphs.main.steps.0.modl",
        "graphs.main.steps.1.value",
        "graphs.main.steps.2.type",
    ]


def test_graphs_that_run_inside_each_other_are_refused() -> None:
    """With the way round."""
    others = [
        source_of([{"type": "subgraph", "graph": "b"}, END], name="a"),
        source_of([{"type": "subgraph", "graph": "a"}, END], name="b"),
    ]

    [found] = problems_of([{"type": "subgraph", "graph": "a"}, END], others=others)

    assert found == (
        "graphs.b.steps.0.graph: runs inside itself, a in b in a in main, let it end somewhere"
    )


def test_unknown_graph_of_a_decision_is_refused() -> None:
    """Nothing else is looked at."""
    authored = Authored()

    assert authored.compile("other") is None
    assert authored.problems == [
        "algorithm.graph: is no graph: 'other', declare it under graphs, or name a built-in one"
    ]


def test_limits_are_the_narrower_ones_of_graph_and_decision() -> None:
    """A decision's wall time takes the place of the graph's timeout."""
    limits = GraphLimits(60, 5, 1000, 0.5, OnExhausted.FAIL, strict=True)
    authored = Authored({"main": source_of([END], limits=limits)})

    graph = authored.compile(
        "main", budget=CallBudget(300, 400, 900, 0.000_000_000_1, max_wall_time_s=7)
    )

    assert graph is not None
    assert graph.limits == Limits(5, 900, 300, 400, 1)
    assert (graph.timeout_s, graph.on_exhausted, graph.is_strict) == (7, OnExhausted.FAIL, True)


def test_graph_without_limits_asks_for_no_bounds() -> None:
    """It is told from others by identity."""
    assert compiled([END]).limits is UNLIMITED


@pytest.mark.parametrize(
    ("spec", "given", "problem"),
    [
        (ParamSpec(ParamType.INTEGER), {}, "params.it: is missing, the graph asks for it"),
        (ParamSpec(ParamType.INTEGER), {"it": 1, "at": 2}, "params.at: is no parameter of the"),
        (ParamSpec(ParamType.INTEGER), {"it": True}, "params.it: is not integer"),
        (ParamSpec(ParamType.INTEGER, min=2), {"it": 1}, "params.it: is less than 2"),
        (ParamSpec(ParamType.INTEGER, max=2), {"it": 3}, "params.it: is more than 2"),
        (ParamSpec(ParamType.MODELS, min=1), {"it": []}, "params.it: is less than 1"),
        (ParamSpec(ParamType.STRING, max=2), {"it": "abc"}, "params.it: is more than 2"),
        (ParamSpec(ParamType.DURATION, max=2), {"it": "3s"}, "params.it: is more than 2"),
        (ParamSpec(ParamType.DURATION), {"it": "3 s"}, "params.it: is not number"),
        (ParamSpec(ParamType.ENUM, values=("a",)), {"it": "b"}, "params.it: is not one of a"),
        (ParamSpec(ParamType.MODELS), {"it": "a"}, "params.it: is not a list of text"),
        (ParamSpec(ParamType.MODEL_REFS), {"it": [1]}, "params.it: is not a list of ModelRef"),
        (ParamSpec(ParamType.RECORD), {"it": []}, "params.it: is not a mapping"),
        (ParamSpec(ParamType.BOOLEAN), {"it": 1}, "params.it: is not boolean"),
    ],
)
def test_faults_of_parameters(spec: ParamSpec, given: dict[str, object], problem: str) -> None:
    """Told at the decision that gives them."""
    [found] = problems_of([END], specs={"it": spec}, params=given)

    assert found.startswith(f"algorithm.{problem}")
