"""Aggregate strategy `majority_choice`."""

import pytest

from tests.graph.transform.workflow_values import INPUTS, reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.majority_choice import MajorityChoiceOfBranches
from vsr.graph.transform.choice_contract import ChoiceSpec
from vsr.graph.value import BranchOutcome, Failure

CHOICE = ChoiceSpec(("A", "B"), template="It is {choice}.")


def test_majority_choice_takes_the_first_branch_that_voted_for_the_winner() -> None:
    """The reply keeps the model and the usage of a branch that said so."""
    outcomes = [
        BranchOutcome[object](0, reply("x", "A")),
        BranchOutcome[object](1, failure=Failure("e", "c")),
        BranchOutcome[object](2, reply("y", " B ", tokens=3)),
        BranchOutcome[object](3, reply("z", "", reasoning="B")),
    ]

    winner = MajorityChoiceOfBranches(CHOICE)(outcomes, INPUTS)

    assert (winner.model, winner.content) == ("y", "It is B.")
    assert winner.usage is not None


def test_majority_choice_fails_without_a_vote() -> None:
    """An answer that nobody gave is not made up."""
    outcomes = [BranchOutcome[object](0, reply("x", "maybe"))]

    with pytest.raises(GraphFailed):
        MajorityChoiceOfBranches(CHOICE)(outcomes, INPUTS)
