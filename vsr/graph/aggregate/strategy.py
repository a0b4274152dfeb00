"""What an aggregate strategy provides."""

from collections.abc import Sequence
from typing import Protocol

from vsr.graph.value import BranchOutcome, Inputs


class Aggregate(Protocol):
    """Pure: its fields are its configuration, with every reference replaced by its value."""

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], inputs: Inputs, /) -> object:
        """Return the step's value; the annotation of what is returned is the step's type.

        Args:
            outcomes: in declared order of the branches.
            inputs: the request.

        Raises:
            GraphFailed: there is no value; the message is shown to the client.
        """
        ...
