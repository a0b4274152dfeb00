"""The worst case of a compiled graph."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.authored import Step, Workbench, call, faults_of, worst_of
from vsr.graph.budget import Limits
from vsr.graph.worst import NOTHING, Paths, Worst
from vsr.resources.graph import GraphLimits, GraphSource, ParamSpec, ParamType

PANEL = {"panel": ParamSpec(ParamType.MODEL_REFS, max=5)}


def branch(*arms: list[Step], otherwise: list[Step] | None = None) -> Step:
    """Return a branch with these arms."""
    cases = [{"when": {"has_tools": "$request.has_tools"}, "then": arm} for arm in arms]
    return {"type": "branch", "cases": cases, **({"else": otherwise} if otherwise else {})}


def test_steps_add_up() -> None:
    """One after the other: calls, tokens, cost and time are sums, and one call runs at a time."""
    worst = worst_of(call("small"), call("large"))

    assert (worst.calls, worst.attempts, worst.parallel) == (2, 4, 1)
    assert worst.output_tokens == 100 + 3 * 1_000
    assert worst.cost_nano_usd == 100 * 1_000 + 3_000 * 10_000
    assert worst.time_s == 40


def test_fallback_is_a_call_more_of_each_model() -> None:
    """Each of them may be asked before one answers."""
    worst = worst_of(call("small", fallback=["large"]))

    assert (worst.calls, worst.attempts, worst.parallel) == (2, 4, 1)
    assert worst.output_tokens == 100 + 3 * 1_000


def test_branch_takes_its_dearest_arm() -> None:
    """Every quantity of it, and none of the arm that is not taken."""
    worst = worst_of(branch([call("small"), call("small")], otherwise=[call("large")]))

    assert (worst.calls, worst.attempts, worst.output_tokens) == (2, 3, 3_000)


def test_arm_that_ends_the_graph_does_not_pay_for_what_follows() -> None:
    """Either the long arm and its answer, or the short way and what comes behind the branch."""
    long = [*[call()] * 5, {"type": "respond", "from": "enough"}]

    worst = worst_of(branch(long), call(), call())

    assert worst.calls == 5


def test_loop_multiplies_by_its_most_rounds() -> None:
    """The length of a constant list, a number, or `max_items` where they are more."""
    listed = worst_of({"type": "loop", "over": ["a", "b", "c"], "do": [call()]})
    counted = worst_of({"type": "loop", "times": 4, "do": [call(), call()]})
    capped = worst_of({"type": "loop", "max_items": 7, "do": [call()]})

    assert [listed.calls, counted.calls, capped.calls] == [3, 8, 7]
    assert counted.time_s == 80


def test_loop_over_a_parameter_takes_what_is_given_or_the_most_that_may_be() -> None:
    """A decision gives two models; nobody gives more than the parameter allows."""
    loop = {"type": "loop", "over": "$params.panel", "as": "one", "do": [call("$one.called_name")]}

    given_ = worst_of(loop, specs=PANEL, given={"panel": ["small", "large"]})
    open_ = worst_of(loop, specs=PANEL)

    assert (given_.calls, given_.attempts, given_.gaps) == (2, 6, worst_of(call("large")).gaps)
    assert open_.calls == 5
    assert {gap.of for gap in open_.gaps} == {"attempts", "output_tokens", "cost_usd", "time_s"}


def test_least_of_all_bounds_counts() -> None:
    """More than `max_items` fail when the graph runs, however many may be given."""
    loop = {"type": "loop", "over": "$params.panel", "max_items": 3, "do": [call()]}

    assert worst_of(loop, specs=PANEL).calls == 3


def test_members_of_items_are_known() -> None:
    """A list of mappings says which models there may be."""
    over = [{"name": "small", "again": 2}, {"name": "large", "again": 3}]
    inner = {"type": "loop", "times": "$who.again", "do": [call("$who.name")]}

    worst = worst_of({"type": "loop", "over": over, "as": "who", "do": [inner]})

    assert (worst.calls, worst.attempts, worst.output_tokens) == (6, 18, 18_000)


def test_branches_run_side_by_side_up_to_the_cap() -> None:
    """Three waves of at most two; a group timeout ends them all."""
    group = {"type": "parallel", "times": 5, "max_concurrency": 2, "do": [call()]}

    free, timed = worst_of(group), worst_of({**group, "timeout": "12s"})

    assert (free.calls, free.parallel, free.time_s) == (5, 2, 30)
    assert timed.time_s == 12


def test_unlike_branches_take_the_widest_and_the_longest() -> None:
    """A branch that is parallel itself counts with its width."""
    inner = {"type": "parallel", "times": 3, "do": [call()]}
    branches = {"type": "parallel", "branches": [[inner], [call("large")], [call()]]}

    wide, narrow = worst_of(branches), worst_of({**branches, "max_concurrency": 2})

    assert (wide.parallel, wide.time_s, wide.calls) == (5, 30, 5)
    assert (narrow.parallel, narrow.time_s) == (4, 25 + 15)


def test_stagger_adds_the_waits() -> None:
    """Nobody may fail early, so each branch but the first is waited for."""
    hedge = {"type": "parallel", "times": 3, "stagger": "2s", "do": [call()]}

    assert worst_of(hedge).time_s == 14


def test_subgraph_counts_under_its_own_limits() -> None:
    """Its limits hold at run time, so the graph around it need not fear more."""
    steps = ({"type": "loop", "times": 9, "do": [call()]}, {"type": "respond", "from": "x"})
    inner = GraphSource("inner", limits=GraphLimits(timeout_s=5, max_hops=4), steps=steps)
    bench = Workbench({"inner": inner})

    found = bench.compile({"type": "subgraph", "graph": "inner"}, {"type": "respond", "from": "y"})

    assert found.worst is not None
    assert (found.worst.calls, found.worst.attempts, found.worst.time_s) == (4, 4, 5)


def test_call_is_bounded_by_its_own_words() -> None:
    """Its timeout, the longest answer that it asks for, its retries."""
    edits = [{"append": "$request.question"}, {"max_completion_tokens": 40}]

    worst = worst_of(call("large", timeout="3s", edits=edits, reliability={"retry_count": 0}))

    assert (worst.attempts, worst.output_tokens, worst.time_s) == (1, 40, 3)


def test_answer_that_a_result_bounds_is_bounded_by_the_model_alone() -> None:
    """A number that some step finds bounds nothing beforehand."""
    found = {"id": "found", "type": "transform", "transformer": "prompt", "template": "x"}
    edits = [{"max_completion_tokens": 40}, {"set": {"max_tokens": "$found.text"}}]

    assert worst_of(found, call("small", edits=edits)).output_tokens == 100


def test_what_is_not_known_is_told() -> None:
    """No price, no longest answer, no timeout; prompts are never known."""
    nothing = worst_of(call("unbound"))
    prompts = worst_of(call("large"))
    unheard = worst_of(call("else"))

    assert {(gap.of, gap.why) for gap in nothing.gaps} == {
        ("output_tokens", "unbound has no longest answer"),
        ("cost_usd", "unbound has no price"),
        ("time_s", "a call of unbound has no timeout of its own"),
    }
    assert [gap.why for gap in prompts.gaps] == [
        "prompts cost, too, and the request decides how long they are"
    ]
    assert ("attempts", "the retries of else are not known") in {
        (gap.of, gap.why) for gap in unheard.gaps
    }


def test_budget_of_tokens_bounds_every_answer() -> None:
    """It writes the longest answer into each request that has none."""
    worst = worst_of(call("unbound"), limits=GraphLimits(max_tokens=50_000))

    assert worst.output_tokens == 4_096
    assert "output_tokens" not in {gap.of for gap in worst.gaps}


def test_models_that_a_call_may_name_are_the_allowed_ones() -> None:
    """A result names the model: the dearest of those that it may be counts."""
    named = {"id": "named", "type": "transform", "transformer": "prompt", "template": "small"}

    worst = worst_of(named, call("$named.text", allow=["small", "large"]))

    assert worst.output_tokens == 3_000


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (call("$named.text"), "a result names its model: list those that it may be in `allow`"),
        (
            call("small", allow=["$named.text"]),
            "allow comes from a result, and has to be known before the graph runs",
        ),
        (
            {"type": "loop", "over": "$found", "do": [call()]},
            "a result says how many rounds there are: give the most in `max_items`",
        ),
        (
            {"type": "parallel", "over": "$found", "do": [call()]},
            "a result says how many branches there are: give the most in `max_items`",
        ),
    ],
)
def test_what_only_a_result_bounds_is_refused(step: Step, fault: str) -> None:
    """A worst case must be known: a list of models, or the most items."""
    named = {"id": "named", "type": "transform", "transformer": "prompt", "template": "small"}
    found = {"id": "found", "type": "loop", "times": 2, "do": [call()]}

    assert faults_of(named, found, step) == [f"steps.2: {fault}"]


@pytest.mark.parametrize("kind", ["loop", "parallel"])
@pytest.mark.parametrize("over", [["a", "b"], "$params.panel", ["$params.panel.0", "b"]])
def test_parameters_and_literals_need_no_bound(kind: str, over: object) -> None:
    """Whoever gives them knows how many there are."""
    assert faults_of({"type": kind, "over": over, "do": [call()]}, specs=PANEL) == []


WORSTS = st.builds(
    Worst,
    calls=st.integers(0, 9),
    attempts=st.integers(0, 9),
    parallel=st.integers(0, 9),
    output_tokens=st.integers(0, 9),
    cost_nano_usd=st.integers(0, 9),
    time_s=st.integers(0, 9).map(float),
)


@settings(max_examples=60)
@given(WORSTS, WORSTS, WORSTS)
def test_either_is_no_less_than_each_and_later_ways_add(
    one: Worst, other: Worst, later: Worst
) -> None:
    """A bound that is less than one of the ways is none."""
    both = Paths(one).either(Paths(None, other)).then(Paths(later)).whole()

    for name in ("calls", "attempts", "parallel", "output_tokens", "cost_nano_usd", "time_s"):
        first, second = getattr(one.then(later), name), getattr(other, name)
        assert getattr(both, name) == max(first, second)
    assert one.then(NOTHING) == one
    assert Paths(None, one).then(Paths(later)) == Paths(None, one)


def test_limits_cap_what_may_happen() -> None:
    """The budget refuses every attempt above them."""
    worst = Worst(9, 12, 5, 900, 70, 3.0)

    capped = worst.capped(Limits(4, 500, None, 300, 60))

    assert (capped.calls, capped.attempts, capped.parallel) == (4, 4, 4)
    assert (capped.output_tokens, capped.cost_nano_usd) == (300, 60)
