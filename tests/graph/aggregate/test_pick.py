"""Aggregate strategies `first_success`, `last_success` and `best_score`."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.branch_ends import INPUTS, ends, failure, reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.pick import BestScore, FirstSuccess, LastSuccess, Order, Scored
from vsr.graph.value import BranchOutcome


def test_first_and_last_go_by_declared_order() -> None:
    """Branches without a value are passed over."""
    outcomes = ends(failure(), "a", "b", "c", None)

    assert FirstSuccess()(outcomes, INPUTS) == reply("a")
    assert LastSuccess()(outcomes, INPUTS) == reply("c")


def test_first_and_last_may_go_by_arrival() -> None:
    """The winner of a race is the branch that ended first, wherever it stands."""
    outcomes = [
        BranchOutcome[object](0, reply("slow"), rank=3),
        BranchOutcome[object](1, failure=failure(), rank=0),
        BranchOutcome[object](2, reply("quick"), rank=1),
        BranchOutcome[object](3, reply("middle"), rank=2),
        BranchOutcome[object](4),
    ]

    assert FirstSuccess("arrival")(outcomes, INPUTS) == reply("quick")
    assert LastSuccess("arrival")(outcomes, INPUTS) == reply("slow")


@pytest.mark.parametrize("order", ["declared", "arrival"])
def test_nothing_to_pick_is_an_error(order: Order) -> None:
    """That tells what happened."""
    outcomes = ends(failure("reset"), None)

    for strategy in (FirstSuccess(order), LastSuccess(order), BestScore((0.5, 0.5))):
        with pytest.raises(GraphFailed) as failed:
            strategy(outcomes, INPUTS)
        assert str(failed.value) == "no branch succeeded: reset"


def test_best_score_takes_outcomes_of_the_grading_branches() -> None:
    """One per branch: a reply whose grade is missing is passed over, as is a grade of no reply."""
    outcomes = ends("a", failure(), "c", "d", "e")
    scores = (*graded(0.2, 0.9, None, failure(), 0.4),)

    assert BestScore(scores)(outcomes, INPUTS) == Scored(reply("e"), 0.4, 4)


def test_best_score_takes_one_score_per_success() -> None:
    """As a judge gives them who saw the successes alone."""
    outcomes = ends(failure(), "b", None, "d")

    assert BestScore((0.1, 0.2))(outcomes, INPUTS) == Scored(reply("d"), 0.2, 3)


def test_best_score_of_equals_is_the_earlier() -> None:
    """Also where all are 0 or below."""
    assert BestScore((-1, -0.5, -0.5))(ends("a", "b", "c"), INPUTS).index == 1
    assert BestScore((0, 0.0))(ends("a", "b"), INPUTS).index == 0


def test_best_score_counts_only_numbers() -> None:
    """What is not a number beats nothing."""
    assert BestScore((math.nan, 0.1, True))(ends("a", "b", "c"), INPUTS).index == 1
    with pytest.raises(GraphFailed, match="no answer has a score"):
        BestScore((math.nan, None))(ends("a", "b"), INPUTS)


def test_best_score_refuses_scores_it_cannot_place() -> None:
    """Neither one per branch nor one per success."""
    with pytest.raises(GraphFailed, match="1 scores for 3 branches, 2 of them successful"):
        BestScore((0.5,))(ends("a", "b", failure()), INPUTS)


@settings(max_examples=50)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=6))
def test_best_score_is_the_first_maximum(scores: list[float]) -> None:
    """Of any numbers."""
    best = BestScore(tuple(scores))(ends(*["x"] * len(scores)), INPUTS)

    assert best.score == max(scores)
    assert best.index == scores.index(max(scores))


def graded(*values: object) -> list[BranchOutcome[float]]:
    """Return how branches ended that were to bring a number."""
    return ends(*values)  # type: ignore[return-value]
