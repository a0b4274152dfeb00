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
        (False, True, Outcome.OPEN),
        (False, False, Outcome.AGREED),
        (True, True, Outcome.AGREED),
    ],
)
def test_death_casts_doubt_on_what_it_may_be_the_fault_of(
    *, has_agreed: bool, was_ready: bool, outcome: Outcome
) -> None:
    """Who dies while it builds the version, not who had built it or had not begun to."""
    activation = Activation.of(1, 2, [1, 2])
    activation.agree(1)
    if has_agreed:
        activation.agree(2)

    activation.lose(2, was_ready=was_ready)

    assert activation.outcome is outcome
    assert activation.wants_trial is (outcome is Outcome.OPEN)
    assert activation.agreed == {1}


def test_nobody_left_of_those_who_agreed_is_a_refusal() -> None:
    """A version that nobody has built is not served."""
    activation = Activation.of(1, 2, [1])

    activation.agree(1)
    activation.lose(1, was_ready=True)

    assert activation.outcome is Outcome.REFUSED
    assert not activation.wants_trial


@pytest.mark.parametrize("workers", [[], [1], [1, 2]])
@pytest.mark.parametrize("was_ready", [False, True])
def test_process_on_trial_has_the_last_word(workers: list[int], *, was_ready: bool) -> None:
    """Where nobody else is left, whatever they died of; one is enough."""
    agreed, refused, ended = (Activation.of(1, 2, workers) for _ in range(3))
    for activation in (agreed, refused, ended):
        for worker in workers:
            activation.lose(worker, was_ready=was_ready)
        assert activation.wants_trial
        activation.join(7)
        assert (activation.outcome, activation.wants_trial) == (Outcome.OPEN, False)

    agreed.agree(7)
    refused.refuse(7, BAD)
    ended.lose(7, was_ready=False)

    assert (agreed.outcome, set(agreed.agreed)) == (Outcome.AGREED, {7})
    assert (refused.outcome, refused.refusal) == (Outcome.REFUSED, BAD)
    assert ended.outcome is Outcome.REFUSED
    assert not ended.wants_trial


def test_trial_clears_others_of_later_doubt() -> None:
    """It has shown that the version can be built; who serves the one before may die of that."""
    activation = Activation.of(1, 2, [1, 2, 3])

    activation.agree(1)
    activation.lose(2, was_ready=True)
    activation.join(7)
    activation.agree(7)
    before = activation.outcome
    activation.lose(3, was_ready=True)

    assert (before, activation.outcome) == (Outcome.OPEN, Outcome.AGREED)
    assert not activation.wants_trial


def test_only_what_all_reuse_is_reused() -> None:
    """A worker that has just begun may build what others keep."""
    activation = Activation.of(1, 2, [1, 2])

    activation.agree(1, ("signals", "upstream"))
    activation.agree(2, ("upstream",))

    assert activation.reused == ("upstream",)
