"""Transformer `verdict_score`."""

import pytest

from tests.graph.branch_ends import INPUTS
from vsr.errors import GraphFailed
from vsr.graph.transform.verdict_score import VerdictScore


@pytest.mark.parametrize(
    ("verdict", "score"),
    [
        ({"confidence": 0.75, "samples": []}, 0.75),
        ({"confidence": 1}, 1.0),
        ({"confidence": 3.5}, 3.5),
        ({"confidence": None}, 0.0),
        ({}, 0.0),
    ],
)
def test_score_is_the_number_as_it_is(verdict: dict[str, object], score: float) -> None:
    """Nothing is clamped, and a verifier that gives none is not sure at all."""
    assert VerdictScore(verdict)(INPUTS) == score


@pytest.mark.parametrize("told", ["0.9", True, [0.9], {"value": 0.9}])
def test_what_is_no_number_is_a_failure(told: object) -> None:
    """It is not guessed at, and not shown."""
    with pytest.raises(GraphFailed, match=r"^the verifier.s confidence is no number$"):
        VerdictScore({"confidence": told})(INPUTS)


def test_member_may_have_another_name() -> None:
    """As the service has it."""
    assert VerdictScore({"score": 0.5, "confidence": 1}, "score")(INPUTS) == 0.5
