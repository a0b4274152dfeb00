"""Transformer `remom_trace`: the member `reasoning_mom_responses` of an answer."""

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.graph.remom_round import RoundRecord, size_bytes, text_of
from vsr.graph.transform.compaction import BYTES_PER_TOKEN, Compaction, compacted
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


class TracedReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reply as the client sees it."""

    model: str
    content: str
    reasoning: str = ""
    compacted_content: str = ""
    """What was shown to the next round."""
    token_count: int = 0
    """Estimated from the length of the whole text."""


class TracedRound(msgspec.Struct, frozen=True):
    """One round that was kept."""

    round: int
    """From 1."""
    breadth: int
    """Planned calls."""
    responses: tuple[TracedReply, ...]


@attrs.frozen
class RemomTrace:
    """Shows all rounds that were kept.

    Source: looper-algorithms 8.6.
    """

    rounds: tuple[RoundRecord, ...]
    include: bool = True
    compaction: Compaction = "full"
    compaction_tokens: int | None = None

    def __call__(self, _inputs: Inputs, /) -> tuple[TracedRound, ...] | None:
        """Return the rounds in order, None where they are not to be shown."""
        if not self.include:
            return None
        return tuple(
            TracedRound(
                round=record.number,
                breadth=record.breadth,
                responses=tuple(self._traced(reply) for reply in record.kept),
            )
            for record in self.rounds
            if not record.has_failed
        )

    def _traced(self, reply: Reply) -> TracedReply:
        text = text_of(reply)
        return TracedReply(
            model=reply.model,
            content=reply.content,
            reasoning=reply.reasoning,
            compacted_content=compacted(text, self.compaction, self.compaction_tokens),
            token_count=size_bytes(text) // BYTES_PER_TOKEN,
        )


REMOM_TRACE = Extension[Transformer](name="remom_trace", config=RemomTrace)
