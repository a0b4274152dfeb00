"""Transformer `select_remom`: the answer of all rounds of `remom`."""

from collections.abc import Iterable, Iterator, Sequence

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.remom_round import RoundRecord, size_bytes
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


class Selection(msgspec.Struct, frozen=True):
    """The reply that is published, and what it was chosen from."""

    reply: Reply
    candidates: tuple[Reply, ...]
    """All kept replies of all rounds, in order; the final one is among them."""


@attrs.frozen
class SelectRemom:
    """Picks the final round's answer, or the longest before it; reasoning is never an answer.

    Source: looper-algorithms 8.5.
    """

    rounds: tuple[RoundRecord, ...]

    def __call__(self, _inputs: Inputs, /) -> Selection:
        """Return the answer.

        Raises:
            GraphFailed: no reply that was kept has content.
        """
        kept = [record for record in self.rounds if not record.has_failed]
        if not kept:
            raise GraphFailed("remom produced no responses")
        reply = _of_final_round(kept) or _longest(kept)
        if reply is None:
            raise GraphFailed("remom produced no assistant content")
        return Selection(reply, tuple(each for record in kept for each in record.kept))


def _of_final_round(kept: Sequence[RoundRecord]) -> Reply | None:
    if not kept[-1].is_final:
        return None
    return next(_with_content(kept[-1].kept), None)


def _longest(kept: Sequence[RoundRecord]) -> Reply | None:
    """Return the longest answer, of equal ones that of the latest round."""
    replies = [reply for record in reversed(kept) for reply in _with_content(record.kept)]
    return max(replies, key=lambda reply: size_bytes(reply.content.strip()), default=None)


def _with_content(replies: Iterable[Reply]) -> Iterator[Reply]:
    return (reply for reply in replies if reply.content.strip())


SELECT_REMOM = Extension[Transformer](name="select_remom", config=SelectRemom)
