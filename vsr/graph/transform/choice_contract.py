"""Transformers `choice_contract` and `majority_choice`: the answer is one of a few values.

Source of the rules: looper-algorithms 13.2.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import text_of
from vsr.graph.value import Inputs
from vsr.registry import Extension

Source = Literal["content", "reasoning_content", "candidate_responses"]
_PLACES = ("{{choice}}", "{choice}")


@attrs.frozen
class ChoiceSpec:
    """The values an answer may have, where to look for one and how to show it."""

    values: tuple[str, ...]
    sources: tuple[Source, ...] = ("content",)
    """`candidate_responses` has no meaning here and is passed over."""
    template: str | None = None
    """Has `{choice}` or `{{choice}}` where the value goes; None shows the value alone."""


@attrs.frozen
class ChoiceContract:
    """Replaces the content by the value that the reply states."""

    reply: Reply
    choice: ChoiceSpec | None = None
    """None: there is no such contract, and the reply stays."""

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the reply with its value as content; unchanged if there is none, or tool calls."""
        reply, choice = self.reply, self.choice
        if choice is None or reply.has_tool_calls:
            return reply
        for source in choice.sources:
            value = value_in(_text_in(reply, source), choice)
            if value is not None:
                return msgspec.structs.replace(reply, content=rendered(value, choice))
        return reply


@attrs.frozen
class MajorityChoice:
    """Replaces a content that is no bare value by the value that most candidates state."""

    reply: Reply
    candidates: tuple[Reply, ...]
    choice: ChoiceSpec | None = None

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the reply with the majority's value as content; unchanged if nobody voted."""
        reply, choice = self.reply, self.choice
        if choice is None or reply.has_tool_calls or value_in(reply.content, choice) is not None:
            return reply
        value = majority_of(self.candidates, choice)
        if value is None:
            return reply
        return msgspec.structs.replace(reply, content=rendered(value, choice))


def value_in(text: str, choice: ChoiceSpec) -> str | None:
    """Return the value that the trimmed text is, None if it is none; case matters."""
    trimmed = text.strip()
    return trimmed if trimmed in choice.values else None


def majority_of(candidates: Iterable[Reply], choice: ChoiceSpec) -> str | None:
    """Return the value with the most votes, the one seen first on a tie; None if nobody voted."""
    votes = Counter(
        value
        for value in (value_in(text_of(reply), choice) for reply in candidates)
        if value is not None
    )
    # Values of equal count come in the order in which they were seen.
    return votes.most_common(1)[0][0] if votes else None


def reply_of_majority(candidates: Sequence[Reply], choice: ChoiceSpec) -> Reply | None:
    """Return the first candidate that states the majority's value, with that as its content."""
    value = majority_of(candidates, choice)
    if value is None:
        return None
    voter = next(reply for reply in candidates if value_in(text_of(reply), choice) == value)
    return msgspec.structs.replace(voter, content=rendered(value, choice))


def rendered(value: str, choice: ChoiceSpec) -> str:
    """Return the value as the contract shows it."""
    text = choice.template
    if text is None:
        return value
    for place in _PLACES:
        text = text.replace(place, value)
    return text


def _text_in(reply: Reply, source: Source) -> str:
    if source == "content":
        return reply.content
    return reply.reasoning if source == "reasoning_content" else ""


CHOICE_CONTRACT = Extension[Transformer](name="choice_contract", config=ChoiceContract)
MAJORITY_CHOICE = Extension[Transformer](name="majority_choice", config=MajorityChoice)
