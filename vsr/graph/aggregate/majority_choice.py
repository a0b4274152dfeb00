"""Aggregate strategy `majority_choice`: the value that most branches state.

Source of the rules: looper-algorithms 13.2.
"""

from collections.abc import Sequence

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.transform.choice_contract import ChoiceSpec, reply_of_majority
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension


@attrs.frozen
class MajorityChoiceOfBranches:
    """Lets the branches vote on the values of a choice contract."""

    choice: ChoiceSpec

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Reply:
        """Return the first reply that states the winner, with the winner as its content.

        A branch votes with its content, or its reasoning where the content is blank; of values
        with as many votes the one seen first wins.

        Raises:
            GraphFailed: no branch states a value.
        """
        replies = [outcome.value for outcome in outcomes if isinstance(outcome.value, Reply)]
        winner = reply_of_majority(replies, self.choice)
        if winner is None:
            raise GraphFailed("no branch answered with one of the values")
        return winner


MAJORITY_CHOICE_OF_BRANCHES = Extension[Aggregate](
    name="majority_choice", config=MajorityChoiceOfBranches
)
