"""Conditions `succeeded`, `usable` and `empty`: whether a step brought something."""

from collections.abc import Sized

import attrs

from vsr.graph.conditions.condition import Condition
from vsr.graph.reading import MaybeReply, is_usable, reply_of, success_of, text_of
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class Succeeded:
    """Holds unless `value` is missing or a failure; of a branch's outcome, its value counts.

    The list of a `parallel` step is a value, however its branches ended.
    """

    value: object

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether there is a value."""
        return success_of(self.value) is not None


@attrs.frozen
class Usable:
    """Holds for a reply that says something: content that is not blank, or else reasoning.

    Tool calls count only where `allow_tool_calls` says so: a panel is asked without tools, and a
    call that nobody can answer would be no answer of it.

    Source: the reference's usable replies; for tool calls, its fallback of a failed quorum.
    """

    value: MaybeReply
    allow_tool_calls: bool = False

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether there is a reply and it can be used."""
        reply = reply_of(self.value)
        if reply is None:
            return False
        return is_usable(reply) or (self.allow_tool_calls and reply.has_tool_calls)


@attrs.frozen
class Empty:
    """Holds for what has nothing in it.

    That is a missing value, a failure, a text of white space, a reply whose content is that
    (whatever its reasoning and its tool calls), and a list or mapping without members. A number, a
    boolean and a record are never empty.
    """

    value: object

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether nothing is there."""
        held = success_of(self.value)
        text = text_of(held)
        if text is not None:
            return not text.strip()
        return held is None or (isinstance(held, Sized) and len(held) == 0)


SUCCEEDED = Extension[Condition](name="succeeded", config=Succeeded)
USABLE = Extension[Condition](name="usable", config=Usable)
EMPTY = Extension[Condition](name="empty", config=Empty)
