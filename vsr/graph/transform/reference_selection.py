"""Transformer `reference_selection`: puts the candidate that an answer names in its place."""

import re
from collections.abc import Sequence
from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.graph.remom_round import text_of
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension

ReferenceSource = Literal["content", "reasoning_content", "candidate_responses"]

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


@attrs.frozen
class ReferenceSelection:
    """Reads a number from 1 out of the answer; anything else leaves the answer as it is.

    Source: looper-algorithms 13.4.
    """

    reply: Reply
    candidates: tuple[Reply, ...] = ()
    id_format: Literal["index", "reference_number"] | None = None
    """`index`: a number alone; `reference_number`: the word reference before it; None: off."""
    sources: tuple[ReferenceSource, ...] = ("content",)
    """Where the number may stand, the first that has one counts; candidates name none."""
    dereference_selected_reference: bool = True

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the reply with the chosen candidate's text; its model and usage stay."""
        if self.id_format is None or not self.dereference_selected_reference:
            return self.reply
        for source in self.sources:
            chosen = self._chosen(source)
            if chosen is not None:
                return msgspec.structs.replace(self.reply, content=text_of(chosen).strip())
        return self.reply

    def _chosen(self, source: ReferenceSource) -> Reply | None:
        texts = {"content": self.reply.content, "reasoning_content": self.reply.reasoning}
        number = _number(texts.get(source, "").split(), self.id_format)
        return self.candidates[number - 1] if 1 <= number <= len(self.candidates) else None


def _number(words: Sequence[str], id_format: str | None) -> int:
    """Return the number that a text of these words is, 0 if it is none."""
    if id_format == "reference_number":
        if not words or words[0].lower() != "reference":
            return 0
        words = words[1:]
    if len(words) != 1 or not _INTEGER.fullmatch(words[0]):
        return 0
    return int(words[0])


REFERENCE_SELECTION = Extension[Transformer](name="reference_selection", config=ReferenceSelection)
