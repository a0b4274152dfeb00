"""Graphs whose limits are strict."""

import pytest

from tests.fakes.authored import Workbench, call
from vsr.resources.graph import CallBudget, GraphLimits

END = {"type": "respond", "from": "done"}


@pytest.mark.parametrize(
    ("limits", "place", "numbers"),
    [
        (GraphLimits(max_hops=5, strict=True), "max_hops", "is 5, and the worst case is 6"),
        (
            GraphLimits(max_tokens=5_999, strict=True),
            "max_tokens",
            "is 5999, and the worst case is 6000",
        ),
        (
            GraphLimits(max_cost=0.05, strict=True),
            "max_cost",
            "is 0.05, and the worst case is 0.06",
        ),
    ],
)
def test_worst_case_above_a_limit_is_refused(limits: GraphLimits, place: str, numbers: str) -> None:
    """Where the limit stands, with both numbers."""
    found = Workbench().compile(call("large"), call("large"), END, limits=limits)

    (problem,) = found.problems
    assert problem.startswith(f"limits.{place}: {numbers} ")


def test_worst_case_at_the_limits_is_accepted() -> None:
    """Six attempts are six hops."""
    limits = GraphLimits(max_hops=6, max_tokens=6_000, max_cost=0.06, strict=True)

    assert Workbench().compile(call("large"), call("large"), END, limits=limits).problems == []


def test_limits_that_are_not_strict_refuse_nothing() -> None:
    """They hold when the graph runs."""
    assert Workbench().compile(call("large"), END, limits=GraphLimits(max_hops=1)).problems == []


def test_narrower_budget_of_a_decision_is_where_the_fault_is() -> None:
    """The graph's own limit would do."""
    limits = GraphLimits(max_tokens=9_000, strict=True)

    found = Workbench().compile(
        call("large"), END, limits=limits, given={}, budget=CallBudget(max_total_tokens=2_000)
    )

    (problem,) = found.problems
    assert problem.startswith("algorithm.budget.max_total_tokens: is 2000, and the worst case is")


@pytest.mark.parametrize("given", [None, {}], ids=["by itself", "in a decision"])
def test_fault_of_a_step_hides_the_worst_case(given: dict[str, object] | None) -> None:
    """A graph that is not understood has none."""
    limits = GraphLimits(max_hops=1, strict=True)

    found = Workbench().compile(call("large"), call("$nothing"), END, limits=limits, given=given)

    assert [problem.split(":")[0] for problem in found.problems] == ["steps.1.model"]
