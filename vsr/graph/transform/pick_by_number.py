"""Transformer `pick_by_number`: the candidate whose number a judge names."""

from decimal import Decimal

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.answer import answer_key
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class PickByNumber:
    """Reads the last number of a verdict as the place of a candidate, from 1.

    A judge may say why before it names one, so the last number counts.
    """

    candidates: tuple[Reply, ...]
    verdict: Reply

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the candidate.

        Raises:
            GraphFailed: the verdict has no number, or no candidate has it.
        """
        number = answer_key(self.verdict.content, "number")
        if not isinstance(number, Decimal):
            raise GraphFailed("the verdict names no candidate")
        if number not in range(1, len(self.candidates) + 1):
            raise GraphFailed(f"the verdict names none of {len(self.candidates)} candidates")
        return self.candidates[int(number) - 1]


PICK_BY_NUMBER = Extension[Transformer](name="pick_by_number", config=PickByNumber)
