"""Expressions in fields."""

from functools import partial

import attrs
import pytest

from vsr.decision.signals.pattern_set import PatternError
from vsr.graph.expression import check_expression


@attrs.frozen
class Owner:
    """Has an expression with one group, maybe."""

    wanted: str | None = attrs.field(default=None, validator=partial(check_expression, groups=1))


def test_expression_may_be_left_out() -> None:
    """The field that is not set is not checked."""
    assert Owner().wanted is None
    assert Owner("(a)").wanted == "(a)"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("(?=a)(b)", "wanted is not valid RE2: invalid perl operator"),
        ("a", "wanted has 0 groups and needs 1"),
        ("(a)(b)", "wanted has 2 groups and needs 1"),
    ],
)
def test_refused_expression_is_told_with_its_field(expression: str, message: str) -> None:
    """A group that is not counted may still be there: `(?:a)`."""
    with pytest.raises(PatternError, match="^" + message.replace("(", r"\(")):
        Owner(expression)
