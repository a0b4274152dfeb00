"""Rule trees: the conditions of decisions."""

from typing import Literal

from vsr.config.document.objects import DocumentObject

SignalType = Literal[
    "authz",
    "classifier",
    "complexity",
    "context",
    "conversation",
    "domain",
    "embedding",
    "event",
    "fact_check",
    "input_modality",
    "jailbreak",
    "kb",
    "keyword",
    "language",
    "metadata",
    "modality",
    "pii",
    "preference",
    "reask",
    "safety",
    "structure",
    "user_feedback",
    "projection",
]
"""Types of the leaves of a rule tree."""


class NumericPredicate(DocumentObject, frozen=True):
    """Bounds that a value must hold."""

    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None


class RuleNode(DocumentObject, frozen=True):
    """`routing.decisions[].rules` and its conditions: a leaf (`type`) or a composite."""

    type: SignalType | None = None
    name: str | None = None
    label: str | None = None
    predicate: NumericPredicate | None = None
    on_error: Literal["no_match", "match"] | None = None
    on_unknown: Literal["no_match", "match", "fail_request"] | None = None
    operator: str | None = None
    conditions: "tuple[RuleNode, ...] | None" = None
