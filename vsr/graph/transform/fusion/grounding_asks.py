"""Transformer `fusion_grounding_asks`: what local classifiers are asked about a panel's replies."""

from collections.abc import Sequence
from itertools import product
from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.graph.transform.fusion.settings import GroundingSettings
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension

# What one classification takes in, in characters. Source: looper-algorithms 10, step 4.
_MAX_PAIR = 1600
_MIN_SENTENCE = 12
_MAX_SENTENCE = 600
_MAX_SENTENCES = 16
_WINDOW = 1200
_MAX_WINDOWS = 2
_SENTENCE_ENDS = str.maketrans(dict.fromkeys(".!?", "\n"))


class NliAsk(msgspec.Struct, frozen=True, tag_field="kind", tag="nli"):
    """Does the premise entail or contradict the hypothesis?"""

    premise: str
    hypothesis: str


class DetectorAsk(msgspec.Struct, frozen=True, tag_field="kind", tag="detector"):
    """Which spans of the answer does the context not support?"""

    context: str
    question: str
    answer: str


class PairPlan(msgspec.Struct, frozen=True):
    """Which asks make up the signal of one ordered pair of replies.

    The ask of sentence s and window w is number `first + s * windows + w`.
    """

    premise: int
    """Index of the reply in the panel."""
    hypothesis: int
    first: int
    sentences: int
    windows: int


class GroundingAsks(msgspec.Struct, frozen=True):
    """The asks, and how scores are made of their answers."""

    mode: Literal["context", "panel"]
    asks: tuple[NliAsk | DetectorAsk, ...]
    """`context`: one for each reply, in order."""
    pairs: tuple[PairPlan, ...] = ()
    """`panel`: by hypothesis, then by premise, in order."""


@attrs.frozen
class AskGrounding:
    """Asks the detector about each reply where there is a context, else compares the replies.

    Source: looper-algorithms 10, steps 1 to 4.
    """

    panel: tuple[Reply, ...]
    question: str
    context: str
    """System and tool messages, as text."""
    settings: GroundingSettings

    def __call__(self, inputs: Inputs, /) -> GroundingAsks:
        """Return the asks; one reply by itself has no peer to be compared with, so none."""
        del inputs
        contents = [reply.content for reply in self.panel]
        reference = self.settings.reference
        if reference == "context" or (reference == "hybrid" and self.context.strip()):
            asks = (DetectorAsk(self.context, self.question, content) for content in contents)
            return GroundingAsks("context", tuple(asks))
        return _compare(contents)


def _compare(contents: Sequence[str]) -> GroundingAsks:
    asks: list[NliAsk] = []
    pairs = []
    for hypothesis, premise in product(range(len(contents)), repeat=2):
        if hypothesis == premise:
            continue
        windows, sentences = _parts(contents[premise], contents[hypothesis])
        pairs.append(PairPlan(premise, hypothesis, len(asks), len(sentences), len(windows)))
        asks += [NliAsk(window, sentence) for sentence in sentences for window in windows]
    return GroundingAsks("panel", tuple(asks), tuple(pairs))


def _parts(premise: str, hypothesis: str) -> tuple[list[str], list[str]]:
    """Return windows of the premise and sentences of the hypothesis, or both as they are."""
    if len(premise) + len(hypothesis) > _MAX_PAIR:
        windows = _windows(premise)
        sentences = _sentences(hypothesis)
        if windows and sentences:
            return windows, sentences
    return [premise], [hypothesis]


def _windows(text: str) -> list[str]:
    cuts = (text[at : at + _WINDOW] for at in range(0, _MAX_WINDOWS * _WINDOW, _WINDOW))
    return [window for window in cuts if window.strip()]


def _sentences(text: str) -> list[str]:
    pieces = (piece.strip() for piece in text.translate(_SENTENCE_ENDS).split("\n"))
    long_enough = (piece[:_MAX_SENTENCE] for piece in pieces if len(piece) >= _MIN_SENTENCE)
    return list(long_enough)[:_MAX_SENTENCES]


FUSION_GROUNDING_ASKS = Extension[Transformer](name="fusion_grounding_asks", config=AskGrounding)
