"""What a run has used and whom it has asked, as its answer tells."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from vsr.codec.chat_reply import Reply, ReplyUsage

Counted = Literal[
    "usage", "models_used", "distinct_models", "iterations", "attempted_models", "attempts"
]
"""What a call counts in: the last two when it begins, the others when it has succeeded.

`distinct_models` is `models_used` with each model once, where it was used first.
"""


class BestReply(msgspec.Struct, frozen=True):
    """The reply that a run answers with where its budget ends it before its last step."""

    reply: Reply
    ordinal: int
    """Of its call in the ledger; 0: of a run before this one."""


class Account(msgspec.Struct):
    """Sums over the calls of one run; see `Counted`."""

    usage: ReplyUsage = ReplyUsage()
    models_used: list[str] = []
    iterations: int = 0
    unknown: int = 0
    """Successful calls whose backend did not say what they used."""
    best: BestReply | None = None
    """Of the whole run, where it waits for the client's tools."""

    def copy(self) -> "Account":
        """Return what is counted so far."""
        return msgspec.structs.replace(self, models_used=list(self.models_used))

    def begin(self, model: str, counted: Sequence[Counted]) -> None:
        """Count a call that begins."""
        if "attempted_models" in counted:
            self.models_used.append(model)
        if "attempts" in counted:
            self.iterations += 1

    def add(self, model: str, usage: ReplyUsage | None, counted: Sequence[Counted]) -> None:
        """Count a call that has succeeded."""
        if "models_used" in counted:
            self.models_used.append(model)
        if "distinct_models" in counted and model not in self.models_used:
            self.models_used.append(model)
        if "iterations" in counted:
            self.iterations += 1
        if "usage" not in counted:
            return
        if usage is None:
            self.unknown += 1
            return
        self.usage = ReplyUsage(
            self.usage.prompt_tokens + usage.prompt_tokens,
            self.usage.completion_tokens + usage.completion_tokens,
            self.usage.total_tokens + usage.total_tokens,
        )
