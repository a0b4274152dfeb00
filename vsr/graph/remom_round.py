"""What the rounds of `remom` pass on: the plan of a round, and what came of it."""

import msgspec

from vsr.codec.chat_reply import Reply

UNUSABLE = "returned no usable content or reasoning"
"""What is said of a reply that is not usable. Source: looper-algorithms 8.4 d."""


class RoundPlan(msgspec.Struct, frozen=True):
    """One round before its calls."""

    number: int
    """From 1."""
    breadth: int
    """Planned calls."""
    quorum: int | None = None
    """Usable replies that end the round; None where it waits for every call."""
    is_final: bool = False


class RoundRecord(msgspec.Struct, frozen=True):
    """One round after its calls."""

    number: int
    """From 1."""
    breadth: int
    """Planned calls, however many were completed."""
    is_final: bool = False
    kept: tuple[Reply, ...] = ()
    """Usable replies in the order in which they are shown; empty where the round failed."""
    completed: tuple[Reply, ...] = ()
    """All replies, usable or not, in order of arrival: they were paid for."""

    @property
    def has_failed(self) -> bool:
        """Return whether nothing of the round can be used."""
        return not self.kept


def text_of(reply: Reply) -> str:
    """Return what a reply says: its content, or its reasoning if the content is blank."""
    return reply.content if reply.content.strip() else reply.reasoning


def is_usable(reply: Reply) -> bool:
    """Return whether a reply says anything at all.

    Source: looper-algorithms 8.4 c.
    """
    return bool(text_of(reply).strip())


def size_bytes(text: str) -> int:
    """Return how long `text` is in UTF-8; a lone half of a pair counts as three bytes."""
    return len(text.encode("utf-8", "surrogatepass"))
