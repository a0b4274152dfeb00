"""Transformer `require_usable`: fails where a reply says nothing, if that is to be a failure."""

from typing import Literal

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.remom_round import UNUSABLE, is_usable
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class RequireUsable:
    """Ends a branch early whose reply has neither content nor reasoning.

    Source: looper-algorithms 8.4 c, d.
    """

    reply: Reply
    failures: Literal["skip", "fail"] = "fail"
    """`skip`: such a reply is a value like others, which was paid for."""
    allow_tool_calls: bool = False
    """Whether calls of the client's tools say enough."""
    needs_content: bool = False
    """Whether reasoning alone is nothing, since a client never sees it."""

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the reply.

        Raises:
            GraphFailed: it says nothing, and that is a failure.
        """
        if self.failures == "skip" or (self.allow_tool_calls and self.reply.has_tool_calls):
            return self.reply
        if self.needs_content and not self.reply.content.strip():
            raise GraphFailed("returned no content")
        if not is_usable(self.reply):
            raise GraphFailed(UNUSABLE)
        return self.reply


REQUIRE_USABLE = Extension[Transformer](name="require_usable", config=RequireUsable)
