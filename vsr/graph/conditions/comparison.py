"""Conditions `equals`, `score_at_least` and `content_matches`: a value against a given one."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeGuard

import attrs
import re2

from vsr.graph.conditions.condition import Condition
from vsr.graph.expression import check_expression
from vsr.graph.reading import MaybeText, success_of, text_of
from vsr.graph.value import BranchOutcome, Failure, Inputs
from vsr.registry import Extension


@attrs.frozen
class Equals:
    """Holds if `value` is the same as `to`.

    Numbers compare by value, a boolean equals only a boolean, lists of any kind member by member,
    mappings whatever their order. A failure equals nothing that a document can say.
    """

    value: object
    to: object

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether they are equal."""
        return _is_same(self.value, self.to)


@attrs.frozen
class ScoreAtLeast:
    """Holds for a number that reaches the threshold; a missing one does not."""

    value: float | BranchOutcome[float] | Failure | None
    threshold: float

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether the score is there and high enough."""
        score = success_of(self.value)
        return isinstance(score, int | float) and score >= self.threshold


@attrs.frozen
class ContentMatches:
    """Holds if the RE2 expression is found somewhere in a text; of a reply, in its content.

    A missing value matches nothing, not even an empty expression.

    Raises:
        PatternError: RE2 refuses the expression.
    """

    value: MaybeText
    pattern: str = attrs.field(validator=partial(check_expression, groups=None))
    case_sensitive: bool = True

    def __call__(self, _inputs: Inputs, /) -> bool:
        """Return whether the text is there and has a match."""
        text = text_of(self.value)
        if text is None:
            return False
        options = re2.Options()
        options.case_sensitive = self.case_sensitive
        options.log_errors = False
        return re2.compile(self.pattern, options).search(text) is not None


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if _is_list(one) and _is_list(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    return one == other


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


EQUALS = Extension[Condition](name="equals", config=Equals)
SCORE_AT_LEAST = Extension[Condition](name="score_at_least", config=ScoreAtLeast)
CONTENT_MATCHES = Extension[Condition](name="content_matches", config=ContentMatches)
