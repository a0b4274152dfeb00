"""Node type `subgraph`."""

import pytest
import trio
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import caller_of, ends_of, make_run, problems_of, run_steps, source_of, told
from vsr.errors import BudgetExhausted, DeadlineExceeded, GraphFailed
from vsr.graph.budget import Budget, Limits
from vsr.resources.graph import GraphLimits, GraphSource, OnExhausted, ParamSpec, ParamType

ANSWER = {"type": "respond", "from": "$inner"}
SHOWN = {"id": "shown", "type": "transform", "transformer": "shown", "value": "$params.it"}
CALLS = (
    {"id": "one", "type": "call", "model": "$params.model"},
    {"type": "call", "model": "$params.model", "on_error": "skip"},
    {"type": "respond", "from": "$one"},
)


def nested(limits: GraphLimits | None = None) -> GraphSource:
    """Return a graph that calls one model twice."""
    return source_of(CALLS, {"model": ParamSpec(ParamType.MODEL)}, limits, "nested")


def showing(spec: ParamSpec) -> GraphSource:
    """Return a graph that shows its parameter `it`."""
    return source_of([SHOWN, {"type": "respond", "from": "$shown"}], {"it": spec}, None, "nested")


def run_it(**params: object) -> dict[str, object]:
    """Return the step."""
    return {"id": "inner", "type": "subgraph", "graph": "nested", "params": params}


async def test_value_is_what_the_graph_answers_with() -> None:
    """Its names are its own, and so are its paths."""
    run = make_run({"a": Said("A")})

    assert await told(run, run_it(model="a"), ANSWER, others=[nested()]) == "A"
    assert [entry.step for entry in run.ledger.entries] == ["inner/one", "inner/call#1"]


async def test_hops_are_counted_in_the_budget_around() -> None:
    """A nested graph can only narrow; here nothing is left for its second call."""
    budget = Budget(Limits(max_hops=2))
    run = make_run(budget=budget)
    wide = nested(GraphLimits(max_hops=50, max_tokens=10**6))
    after = {"type": "call", "model": "b", "on_error": "skip"}
    first = {"type": "call", "model": "b"}

    await run_steps(run, first, run_it(model="a"), after, ANSWER, others=[wide])

    assert caller_of(run).called == ["b", "a"]
    assert budget.hops == 2


async def test_own_limits_hold_for_the_graph_alone() -> None:
    """The step behind it may go on."""
    run = make_run()
    after = {"type": "call", "model": "b"}

    await run_steps(run, run_it(model="a"), after, ANSWER, others=[nested(GraphLimits(max_hops=1))])

    assert caller_of(run).called == ["a", "b"]


async def test_refusal_ends_the_graph_that_says_so() -> None:
    """Though the step that asked would have gone on."""
    limits = GraphLimits(max_hops=1, on_exhausted=OnExhausted.FAIL)
    run = make_run()

    with pytest.raises(BudgetExhausted):
        await run_steps(run, run_it(model="a"), ANSWER, others=[nested(limits)])

    assert caller_of(run).called == ["a"]


async def test_refusal_by_the_own_limits_does_not_end_the_graph_around() -> None:
    """Whose budget has room."""
    limits = GraphLimits(max_hops=9, on_exhausted=OnExhausted.FAIL)
    run = make_run()
    own = nested(GraphLimits(max_hops=1))

    assert await told(run, run_it(model="a"), ANSWER, limits=limits, others=[own]) == "fine"


async def test_refusal_by_the_budget_around_ends_the_graph_around() -> None:
    """Where its limits say so, whatever those of the inner graph say."""
    run = make_run(budget=Budget(Limits(max_hops=1)))
    limits = GraphLimits(on_exhausted=OnExhausted.FAIL)
    own = nested(GraphLimits(max_hops=9, on_exhausted=OnExhausted.FAIL))
    step = {**run_it(model="a"), "on_error": "skip"}
    last = {"type": "respond", "from": "went on"}

    with pytest.raises(BudgetExhausted):
        await run_steps(run, step, last, limits=limits, others=[own])


async def test_own_deadline_ends_it(autojump_clock: trio.testing.MockClock) -> None:
    """As its own failure, that a step around may pass over."""
    run = make_run({"a": Said(after_s=60)})
    step = {**run_it(model="a"), "on_error": "value", "error": "too slow: {{ cause }}"}
    show = {"id": "shown", "type": "transform", "transformer": "shown", "value": "$inner.message"}
    own = nested(GraphLimits(timeout_s=5))

    got = await told(run, step, show, {"type": "respond", "from": "$shown"}, others=[own])

    assert got == "'too slow: upstream request timeout'"
    assert trio.current_time() == 5
    assert ends_of(run) == ["a timed_out deadline"]


async def test_deadline_around_is_never_extended(autojump_clock: trio.testing.MockClock) -> None:
    """The graph has an hour of its own, the request three seconds."""
    run = make_run({"a": Said(after_s=60)}, timeout_s=3)
    own = nested(GraphLimits(timeout_s=3600))

    with pytest.raises(DeadlineExceeded):
        await run_steps(run, run_it(model="a"), ANSWER, others=[own])

    assert trio.current_time() == 3


@pytest.mark.parametrize(
    ("spec", "given", "got"),
    [
        (ParamSpec(ParamType.DURATION), "1m30s", "90.0"),
        (ParamSpec(ParamType.DURATION, default="250ms"), None, "0.25"),
        (ParamSpec(ParamType.MODELS), ["a", "b"], "('a', 'b')"),
        (ParamSpec(ParamType.LIST, default=[1, 2]), None, "(1, 2)"),
        (ParamSpec(ParamType.INTEGER, required=False), None, "None"),
        (ParamSpec(ParamType.STRING), "$request.question", "'What is it?'"),
    ],
)
async def test_parameters_are_read_as_a_decisions_are(
    spec: ParamSpec, given: object, got: str
) -> None:
    """Durations as seconds, lists as they are, defaults too."""
    step = run_it() if given is None else run_it(it=given)

    assert await told(make_run(), step, ANSWER, others=[showing(spec)]) == got


async def test_candidates_are_read_as_models() -> None:
    """From their names, as a decision's are."""
    own = source_of(
        [
            {"id": "one", "type": "call", "model": "$params.it.0"},
            {"type": "respond", "from": "$one"},
        ],
        {"it": ParamSpec(ParamType.MODEL_REFS)},
        None,
        "nested",
    )
    run = make_run()

    await run_steps(run, run_it(it=["alpha"]), ANSWER, others=[own])

    assert caller_of(run).called == ["alpha"]


@pytest.mark.parametrize(
    ("spec", "given", "problem"),
    [
        (ParamSpec(ParamType.INTEGER), 1.5, "'it' is not integer"),
        (ParamSpec(ParamType.INTEGER, max=3), 4, "'it' is more than 3"),
        (ParamSpec(ParamType.DURATION), "soon", "'it' is not number"),
        (ParamSpec(ParamType.ENUM, values=("a", "b")), "c", "'it' is not one of a, b"),
        (ParamSpec(ParamType.INTEGER), "$request.question", "'it' is text, and the graph takes"),
        (ParamSpec(ParamType.INTEGER), None, "'it', which that graph asks for, is missing"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    spec: ParamSpec, given: object, problem: str
) -> None:
    """As far as is known before the graph runs."""
    step = run_it() if given is None else run_it(it=given)

    [found] = problems_of([step, {"type": "respond", "from": "x"}], others=[showing(spec)])

    assert problem in found


def test_unknown_parameter_is_refused() -> None:
    """With those that there are."""
    [found] = problems_of(
        [run_it(model="a", other=1), {"type": "respond", "from": "x"}], others=[nested()]
    )

    assert "'other' is no parameter of that graph, known: model" in found


async def test_parameter_that_does_not_fit_when_it_is_there_fails_the_step() -> None:
    """The value itself is not told."""
    members = {"secret": "$request.question"}
    record = {"id": "made", "type": "transform", "transformer": "record", "members": members}
    step = run_it(it="$made.secret")

    with pytest.raises(GraphFailed) as caught:
        await run_steps(
            make_run(), record, step, ANSWER, others=[showing(ParamSpec(ParamType.INTEGER))]
        )

    assert str(caught.value) == "parameter 'it' of the graph nested is not integer"


def test_graph_that_hands_out_a_call_cannot_run_inside_another_one() -> None:
    """Its call would never end."""
    steps = [
        {"id": "last", "type": "call", "model": "a", "stream": "tail"},
        {"type": "respond", "from": "$last"},
    ]
    own = source_of(steps, {}, None, "nested")

    [found] = problems_of([run_it(), {"type": "respond", "from": "x"}], others=[own])

    assert found.startswith("graphs.nested.steps.0.stream: a graph inside another one cannot")
