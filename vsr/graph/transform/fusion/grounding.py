"""Transformer `fusion_grounding`: scores of a panel's replies, and what becomes of the panel."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeVar

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.transform.fusion.grounding_asks import GroundingAsks, PairPlan
from vsr.graph.transform.fusion.settings import GroundingSettings
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Failure, Inputs
from vsr.registry import Extension

Answers = Sequence[Mapping[str, object] | None]
"""One for each ask, in order; None where the classifier is missing or failed."""

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]

_FLAGGED_FROM = 0.5
"""Least probability of a contradiction that counts. Source: looper-algorithms 10, step 3."""


class NliAnswer(msgspec.Struct, frozen=True):
    """How probably the premise entails and contradicts the hypothesis."""

    entailment: Probability
    contradiction: Probability

    @property
    def margin(self) -> float:
        """Return by how much it entails more than it contradicts."""
        return self.entailment - self.contradiction


class DetectorAnswer(msgspec.Struct, frozen=True):
    """What of an answer has no support in the context."""

    unsupported_spans: tuple[str, ...]


class ReplyScore(msgspec.Struct, frozen=True, omit_defaults=True):
    """How well a reply is supported; the form in which the client's record shows it."""

    model: str
    score: float
    """From 0 to 1."""
    flagged_spans: tuple[str, ...] = ()
    """`context`: spans without support; `panel`: models whose reply contradicts this one."""
    dropped: bool = False


class Grounded(msgspec.Struct, frozen=True):
    """The panel that goes on, and why."""

    panel: tuple[Reply, ...]
    """`filter`: by score, best first, without the dropped ones; else as it was."""
    scores: tuple[ReplyScore, ...] = ()
    """In the order of the panel before."""
    mode: Literal["context", "panel"] | None = None
    """None where no grounding took place."""
    policy: Literal["weight", "annotate", "filter"] | None = None


T = TypeVar("T", NliAnswer, DetectorAnswer)


@attrs.frozen
class ScoreGrounding:
    """Scores the replies of a panel by what classifiers said; without settings it does nothing.

    Source: looper-algorithms 10, steps 2 to 6.
    """

    panel: tuple[Reply, ...]
    settings: GroundingSettings | None = None
    asks: GroundingAsks | None = None
    answers: Answers | Failure = ()

    def __call__(self, inputs: Inputs, /) -> Grounded:
        """Return the panel with its scores; untouched where answers are missing and may be.

        Raises:
            GraphFailed: an answer is missing, and `on_error` of the settings is `fail`.
        """
        del inputs
        if self.settings is None or self.asks is None:
            return Grounded(self.panel)
        try:
            scores = _score(self.panel, self.asks, self.answers, self.settings.penalty)
        except _Unanswered as error:
            if self.settings.on_error == "fail":
                raise GraphFailed(f"fusion grounding failed: {error}") from error
            return Grounded(self.panel)
        if self.settings.policy == "filter":
            return _filter(self.panel, scores, self.asks, self.settings)
        return Grounded(self.panel, scores, self.asks.mode, self.settings.policy)


class _Unanswered(Exception):
    """A classifier is missing, or its answer makes no sense."""


def _score(
    panel: tuple[Reply, ...], asks: GroundingAsks, answers: Answers | Failure, penalty: float
) -> tuple[ReplyScore, ...]:
    if isinstance(answers, Failure):
        raise _Unanswered(answers.message)
    if len(answers) != len(asks.asks):
        raise _Unanswered(f"{len(asks.asks)} classifications asked for, {len(answers)} answered")
    if asks.mode == "context":
        found = [_read(answer, DetectorAnswer).unsupported_spans for answer in answers]
        return tuple(
            ReplyScore(reply.model, 1 / (1 + len(spans)), spans)
            for reply, spans in zip(panel, found, strict=True)
        )
    said = [_read(answer, NliAnswer) for answer in answers]
    signals = [(pair, _signal(pair, said)) for pair in asks.pairs]
    return tuple(
        _score_by_peers(
            reply.model,
            {panel[pair.premise].model: it for pair, it in signals if pair.hypothesis == at},
            penalty,
        )
        for at, reply in enumerate(panel)
    )


def _read(answer: Mapping[str, object] | None, form: type[T]) -> T:
    if answer is None:
        raise _Unanswered("a classifier gave no answer")
    try:
        return msgspec.convert(answer, form)
    except msgspec.ValidationError as error:
        raise _Unanswered(f"a classifier's answer is malformed: {error}") from error


def _signal(pair: PairPlan, answers: Sequence[NliAnswer]) -> NliAnswer:
    """Return the mean over the sentences, each by the window that supports it most."""
    best = []
    for sentence in range(pair.sentences):
        start = pair.first + sentence * pair.windows
        best.append(max(answers[start : start + pair.windows], key=lambda answer: answer.margin))
    return NliAnswer(
        sum(answer.entailment for answer in best) / len(best),
        sum(answer.contradiction for answer in best) / len(best),
    )


def _score_by_peers(model: str, peers: Mapping[str, NliAnswer], penalty: float) -> ReplyScore:
    """Return the score of a reply; `peers` says by model what each of the others makes of it."""
    gains = [signal.entailment - penalty * signal.contradiction for signal in peers.values()]
    raw = sum(gains) / len(gains) if gains else 0.0
    score = min(max((raw + penalty) / (1 + penalty), 0.0), 1.0)
    flagged = tuple(peer for peer, signal in peers.items() if _contradicts(signal))
    return ReplyScore(model, score, flagged)


def _contradicts(signal: NliAnswer) -> bool:
    return signal.contradiction > signal.entailment and signal.contradiction >= _FLAGGED_FROM


def _filter(
    panel: tuple[Reply, ...],
    scores: tuple[ReplyScore, ...],
    asks: GroundingAsks,
    settings: GroundingSettings,
) -> Grounded:
    ranked = sorted(range(len(panel)), key=lambda at: -scores[at].score)
    kept = [
        at
        for rank, at in enumerate(ranked)
        if rank < settings.min_keep or scores[at].score >= settings.min_score
    ]
    marked = (
        score if at in kept else msgspec.structs.replace(score, dropped=True)
        for at, score in enumerate(scores)
    )
    return Grounded(tuple(panel[at] for at in kept), tuple(marked), asks.mode, settings.policy)


FUSION_GROUNDING = Extension[Transformer](name="fusion_grounding", config=ScoreGrounding)
