"""Aggregate strategy `collect_choices`: every success side by side, for the client to compare."""

from collections.abc import Sequence
from typing import Literal

import attrs
import msgspec

from vsr.errors import GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.aggregate.successes import find_failures, find_replies
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension


class Choice(msgspec.Struct, frozen=True):
    """One answer among several; it has neither tool calls nor reasoning."""

    index: int
    """Among the choices, from 0."""
    model: str
    content: str
    """Possibly empty."""


class Choices(msgspec.Struct, frozen=True):
    """At least one choice, in declared order of the branches."""

    choices: tuple[Choice, ...]

    @property
    def model(self) -> str:
        """Return the model of the last choice: the one a whole answer names."""
        return self.choices[-1].model

    @property
    def models(self) -> tuple[str, ...]:
        """Return the model of each choice; joined by commas, the one a streamed answer names."""
        return tuple(choice.model for choice in self.choices)


@attrs.frozen
class CollectChoices:
    """Makes a choice of every reply, numbered anew over the successes. Nobody judges.

    Source: the reference's ratings.
    """

    on_failure: Literal["skip", "fail"] = "skip"
    """What one failed branch does to the whole; the step waits for all branches either way."""

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Choices:
        """Return the choices.

        Raises:
            GraphFailed: there is no branch, none succeeded, or one failed under `fail`; then the
                failed one that comes first in declared order is named, by its index from 0.
        """
        if not outcomes:
            raise GraphFailed("no models configured")
        failures = find_failures(outcomes)
        if failures and self.on_failure == "fail":
            index, failure = failures[0]
            raise GraphFailed(f"model {index} failed: {failure.message}")
        replies = [reply for _, reply in find_replies(outcomes)]
        if not replies:
            raise GraphFailed("all models failed")
        return Choices(
            tuple(Choice(i, reply.model, reply.content) for i, reply in enumerate(replies))
        )


COLLECT_CHOICES = Extension[Aggregate](name="collect_choices", config=CollectChoices)
