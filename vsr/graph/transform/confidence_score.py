"""Transformers `confidence_settings` and `confidence_score`: may a cascade stop at an answer?"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs
import msgspec

from vsr.codec.chat_reply import Reply, TokenLogprob
from vsr.errors import GraphFailed
from vsr.graph.argument_spans import argument_spans
from vsr.graph.token_scores import (
    has_margins,
    logprob_score,
    margin_score,
    mean_logprob,
    mean_margin,
)
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension

ConfidenceMethod: TypeAlias = Literal[
    "avg_logprob", "margin", "hybrid", "self_verify", "automix_entailment"
]
TokenFilter: TypeAlias = Literal["all", "tool_call_args"]
"""`tool_call_args`: only tokens with a part of an argument's value count, if there are any."""
Scorer: TypeAlias = Literal["logprobs", "self_verify", "entailment"]


class ConfidenceSettings(msgspec.Struct, frozen=True):
    """What a confidence method asks of the steps that use it."""

    threshold: float
    """An answer whose score is at least this is accepted."""
    scorer: Scorer
    """Who gives the score: the answer's own token logprobs, its model, or a verifier."""
    top_logprobs: int | None
    """How many alternatives per token the call asks for; None: no logprobs at all."""
    stream: Literal["never", "follow"]
    """Of the call; logprobs are read from whole answers only."""


_DEFAULTS: dict[str, ConfidenceSettings] = {
    "avg_logprob": ConfidenceSettings(-1.0, "logprobs", 1, "never"),
    "margin": ConfidenceSettings(0.5, "logprobs", 2, "never"),
    "hybrid": ConfidenceSettings(0.5, "logprobs", 2, "never"),
    "self_verify": ConfidenceSettings(0.7, "self_verify", None, "follow"),
    "automix_entailment": ConfidenceSettings(0.7, "entailment", None, "follow"),
}
"""Source: the reference. The -1 of `avg_logprob` accepts every answer that has logprobs."""


@attrs.frozen
class MakeConfidenceSettings:
    """Says what a method needs, and which threshold holds: the given one, else the method's own."""

    method: ConfidenceMethod = "avg_logprob"
    threshold: float | None = None
    """0 is not set either. Source: the reference."""

    def __call__(self, _inputs: Inputs, /) -> ConfidenceSettings:
        """Return the method's settings."""
        settings = _DEFAULTS[self.method]
        return msgspec.structs.replace(settings, threshold=self.threshold or settings.threshold)


@attrs.frozen
class ConfidenceScore:
    """Scores an answer by its token logprobs, from 0 to 1.

    Source: the reference's confidence evaluation.
    """

    reply: Reply
    method: ConfidenceMethod = "avg_logprob"
    token_filter: TokenFilter = "all"  # noqa: S105  # tokens of a text
    logprob_weight: float = attrs.field(
        default=0.5, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )
    """Of `hybrid`; as it is, so 0 means 0. The two together are 1."""
    margin_weight: float = attrs.field(
        default=0.5, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )

    def __call__(self, _inputs: Inputs, /) -> float:
        """Return the score.

        Raises:
            GraphFailed: the answer lacks the logprobs that the method reads, or the method does not
                read any.
        """
        tokens = self._check_evidence()
        if self.token_filter == "tool_call_args":  # noqa: S105  # tokens of a text
            tokens = _argument_tokens(tokens) or tokens
        if self.method == "avg_logprob":
            return logprob_score(mean_logprob(tokens))
        by_margin = margin_score(mean_margin(tokens))
        if self.method == "margin":
            return by_margin
        by_logprob = logprob_score(mean_logprob(tokens))
        return self.logprob_weight * by_logprob + self.margin_weight * by_margin

    def _check_evidence(self) -> Sequence[TokenLogprob]:
        """Return all tokens; also those that the filter leaves out must have what is needed."""
        needs = _DEFAULTS[self.method]
        tokens = self.reply.logprobs
        if needs.scorer != "logprobs":
            raise self._failure(f'confidence method "{self.method}" does not read token logprobs')
        wanted = f'required by confidence method "{self.method}"'
        if not tokens:
            raise self._failure(f"backend returned no token logprobs {wanted}")
        if self.method != "avg_logprob" and not has_margins(tokens):
            raise self._failure(f"backend returned no complete top-logprob alternatives {wanted}")
        return tokens

    def _failure(self, reason: str) -> GraphFailed:
        return GraphFailed(f'confidence evaluation for model "{self.reply.model}" failed: {reason}')


def _argument_tokens(tokens: Sequence[TokenLogprob]) -> list[TokenLogprob]:
    """Return the tokens that hold at least a character of an argument's value."""
    text = "".join(token.token for token in tokens)
    marks = bytearray(len(text))
    for start, end in argument_spans(text):
        marks[start:end] = b"\1" * (end - start)
    found = []
    start = 0
    for token in tokens:
        end = start + len(token.token)
        if marks.find(1, start, end) >= 0:
            found.append(token)
        start = end
    return found


CONFIDENCE_SETTINGS = Extension[Transformer](
    name="confidence_settings", config=MakeConfidenceSettings
)
CONFIDENCE_SCORE = Extension[Transformer](name="confidence_score", config=ConfidenceScore)
