"""Transformer `fusion_reply`: what a call of fusion must have given for the run to go on."""

from typing import Literal

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import BudgetExhausted, GraphFailed
from vsr.graph.aggregate.fusion_panel import UNUSABLE_TEXT
from vsr.graph.reading import is_usable
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Failure, Inputs
from vsr.registry import Extension

_FAILED = {
    "panel": 'fusion panel model "{model}" failed: ',
    "final": 'fusion final synthesis failed for judge model "{model}": ',
    "fallback": 'fusion quorum fallback failed for model "{model}": ',
}
"""Source of the first two: looper-algorithms 19."""


@attrs.frozen
class RequireReply:
    """Passes a reply on, or names the model that failed.

    In a panel that skips failures, a failed member fails its branch with the bare cause, which is
    what the answer's record shows, and a reply without any text is passed on: the quorum does not
    count it. In a panel that does not, the text is needed.

    Source: looper-algorithms 9.2, steps 3 and 6, and 16.
    """

    reply: Reply | Failure
    model: str
    stage: Literal["panel", "final", "fallback"]
    on_failure: Literal["skip", "fail"] = "fail"
    """Of the panel; the other stages have no choice."""

    def __call__(self, inputs: Inputs, /) -> Reply:
        """Return the reply.

        Raises:
            GraphFailed: there is none, or none that is of use here.
            BudgetExhausted: the budget refused the call, which is no fault of the model's.
        """
        del inputs
        is_skipping = self.stage == "panel" and self.on_failure == "skip"
        prefix = "" if is_skipping else _FAILED[self.stage].format(model=self.model)
        if isinstance(self.reply, Failure):
            if self.reply.code == BudgetExhausted.code:
                raise BudgetExhausted
            raise GraphFailed(f"{prefix}{self.reply.message}")
        if not (is_skipping or self._is_enough(self.reply)):
            raise GraphFailed(f"{prefix}{UNUSABLE_TEXT}")
        return self.reply

    def _is_enough(self, reply: Reply) -> bool:
        match self.stage:
            case "panel":
                return is_usable(reply)
            case "fallback":
                return bool(reply.content.strip()) or reply.has_tool_calls
            case "final":
                return True


FUSION_REPLY = Extension[Transformer](name="fusion_reply", config=RequireReply)
