"""Transformer `plan_round`."""

import pytest

from tests.graph.remom_replies import INPUTS, reply, round_of
from vsr.graph.remom_round import RoundPlan
from vsr.graph.transform.plan_round import PlanRound


def test_first_round_is_one_of_several() -> None:
    """Without a round before it is number 1, and it waits for all calls."""
    plan = PlanRound(breadth=4, rounds=2)(INPUTS)

    assert plan == RoundPlan(number=1, breadth=4, quorum=None, is_final=False)


def test_last_round_is_final() -> None:
    """Rounds are counted from the record of the one before."""
    plan = PlanRound(breadth=1, rounds=2, previous=round_of(reply("x")))(INPUTS)

    assert plan == RoundPlan(number=2, breadth=1, quorum=None, is_final=True)


@pytest.mark.parametrize(
    ("min_responses", "quorum"), [(None, None), (0, None), (1, 1), (2, 2), (3, None), (9, None)]
)
def test_quorum_counts_only_below_the_breadth(
    min_responses: int | None, quorum: int | None
) -> None:
    """As many as there are calls, or more, means all of them."""
    plan = PlanRound(breadth=3, rounds=2, min_responses=min_responses)(INPUTS)

    assert plan.quorum == quorum
