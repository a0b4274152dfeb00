"""Transformer `verdict_score`: the number in what a verifier says."""

from collections.abc import Mapping

import attrs

from vsr.errors import GraphFailed
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class VerdictScore:
    """Reads the score in the object that a verifier answers with.

    A missing one, and null, is 0; what is out of range is taken as it is.

    Source: the reference's entailment verification.
    """

    verdict: Mapping[str, object]
    member: str = "confidence"

    def __call__(self, _inputs: Inputs, /) -> float:
        """Return the score.

        Raises:
            GraphFailed: the member is no number.
        """
        score = self.verdict.get(self.member)
        if score is None:
            return 0.0
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise GraphFailed(f"the verifier's {self.member} is no number")
        return float(score)


VERDICT_SCORE = Extension[Transformer](name="verdict_score", config=VerdictScore)
