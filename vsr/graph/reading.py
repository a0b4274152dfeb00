"""What extensions read out of a value of any step: its success, its reply, its text."""

from typing import TypeAlias

from vsr.codec.chat_reply import Reply
from vsr.graph.value import BranchOutcome, Failure, Prompt

MaybeReply: TypeAlias = Reply | BranchOutcome[Reply] | Failure | None
"""A reply, or what can stand where one is expected."""

MaybeText: TypeAlias = str | Prompt | MaybeReply
"""A text, or what has one."""


def success_of(value: object) -> object | None:
    """Return what a step brought, None if nothing; of a branch's outcome, what the branch did."""
    held = value.value if isinstance(value, BranchOutcome) else value
    return None if isinstance(held, Failure) else held


def reply_of(value: object) -> Reply | None:
    """Return the reply that `value` is or holds."""
    held = success_of(value)
    return held if isinstance(held, Reply) else None


def text_of(value: object) -> str | None:
    """Return the text that `value` is or holds; of a reply, its content."""
    held = success_of(value)
    match held:
        case str():
            return held
        case Reply():
            return held.content
        case Prompt():
            return held.text
        case _:
            return None


def is_usable(reply: Reply) -> bool:
    """Return whether `reply` says something: its content, else its reasoning, is not blank.

    Source: the reference's usable replies of panels and rounds, which are asked without tools.
    """
    return bool(reply.content.strip() or reply.reasoning.strip())
