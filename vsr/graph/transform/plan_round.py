"""Transformer `plan_round`: what is to happen in the next round of `remom`."""

import attrs

from vsr.graph.remom_round import RoundPlan, RoundRecord
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class PlanRound:
    """Counts rounds by the one before, which was kept, or else there would be no next.

    Source: looper-algorithms 8.1 (`min_successful_responses`), 8.4.
    """

    breadth: int = attrs.field(validator=attrs.validators.ge(1))
    """Calls of this round."""
    rounds: int = attrs.field(validator=attrs.validators.ge(1))
    """How many there are, the final one included."""
    previous: RoundRecord | None = None
    min_responses: int | None = None
    """Usable replies that are enough; without effect unless fewer than the calls."""

    def __call__(self, _inputs: Inputs, /) -> RoundPlan:
        """Return the round's plan."""
        number = 1 if self.previous is None else self.previous.number + 1
        enough = self.min_responses or 0
        return RoundPlan(
            number=number,
            breadth=self.breadth,
            quorum=enough if 0 < enough < self.breadth else None,
            is_final=number >= self.rounds,
        )


PLAN_ROUND = Extension[Transformer](name="plan_round", config=PlanRound)
