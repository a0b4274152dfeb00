"""Replies, rounds and inputs for the tests of `remom`."""

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.graph.remom_round import RoundRecord
from vsr.graph.value import Inputs

INPUTS = Inputs(ChatBody({}))


def reply(content: str, *, model: str = "a", reasoning: str = "") -> Reply:
    """Return a reply that says `content`."""
    return Reply(model=model, content=content, reasoning=reasoning)


def round_of(*kept: Reply, number: int = 1, is_final: bool = False) -> RoundRecord:
    """Return the record of a round that kept these replies."""
    return RoundRecord(
        number=number, breadth=len(kept), is_final=is_final, kept=kept, completed=kept
    )
