"""Two-phase activation: when it is agreed on, and when it is refused."""

import pytest

from vsr.errors import Problem
from vsr.workers.activation import Activation, Outcome, Refusal

BAD = Refusal((Problem("listeners", "bad"),))


def test_is_agreed_on_when_the_last_one_agrees() -> None:
    """Not before, and not by somebody who does not take part, or says it twice."""
    activation = Activation.of(1, 2, [1, 2])

    outcomes = []
    for worker in (1, 1, 3, 2):
        activation.agree(worker)
        outcomes.append(activation.outcome)

    assert outcomes == [Outcome.OPEN] * 3 + [Outcome.AGREED]
    assert activation.agreed == {1, 2}


def test_one_refusal_is_enough_and_the_first_one_counts() -> None:
    """Whatever the others say."""
    activation = Activation.of(1, 2, [1, 2, 3])

    activation.agree(1)
    activation.refuse(2, BAD)
    activation.refuse(3, Refusal(text="late"))

    assert activation.outcome is Outcome.REFUSED
    assert activation.refusal == BAD


@pytest.mark.parametrize(
    ("has_agreed", "was_ready", "outcome"),
    [
        (False, True, Outcome.REFUSED),
        (False, False, Outcome.AGREED),
        (True, True, Outcome.AGREED),
    ],
)
def test_death_refuses_what_it_may_be_the_fault_of(
    *, has_agreed: bool, was_ready: bool, outcome: Outcome
) -> None:
    """Who dies while it builds the version, not who had built it or had not begun to."""
    activation = Activation.of(1, 2, [1, 2])
    activation.agree(1)
    if has_agreed:
        activation.agree(2)

    activation.lose(2, was_ready=was_ready)

    assert activation.outcome is outcome
    assert activation.agreed == {1}


@pytest.mark.parametrize("workers", [[], [1]])
def test_nobody_left_is_a_refusal(workers: list[int]) -> None:
    """A version that nobody has built is not served."""
    activation = Activation.of(1, 2, workers)
    for worker in workers:
        activation.agree(worker)
        activation.lose(worker, was_ready=True)

    assert activation.outcome is Outcome.REFUSED


def test_only_what_all_reuse_is_reused() -> None:
    """A worker that has just begun may build what others keep."""
    activation = Activation.of(1, 2, [1, 2])

    activation.agree(1, ("signals", "upstream"))
    activation.agree(2, ("upstream",))

    assert activation.reused == ("upstream",)
