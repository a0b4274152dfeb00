"""What a run's answer tells of its calls."""

from collections.abc import Sequence

import pytest

from vsr.codec.chat_reply import ReplyUsage
from vsr.graph.account import Account, Counted


@pytest.mark.parametrize(
    ("counted", "models"),
    [
        (("models_used",), ["b", "a", "b"]),
        (("distinct_models",), ["b", "a"]),
        (("attempted_models",), ["b", "failing", "a", "b"]),
        (("usage",), []),
    ],
)
def test_models_are_told_as_the_calls_say(counted: Sequence[Counted], models: list[str]) -> None:
    """Every success, every model once, or every attempt; in order."""
    account = Account()

    for model in ("b", "failing", "a", "b"):
        account.begin(model, counted)
        if model != "failing":
            account.add(model, ReplyUsage(1, 2, 3), counted)

    assert account.models_used == models


def test_usage_is_the_sum_of_what_was_reported() -> None:
    """A call whose backend said nothing is counted apart."""
    account = Account()

    account.add("a", ReplyUsage(1, 2, 4), ("usage", "iterations"))
    account.add("b", None, ("usage", "iterations"))
    account.add("c", ReplyUsage(10, 20, 40), ("usage", "iterations"))

    assert account.usage == ReplyUsage(11, 22, 44)
    assert (account.unknown, account.iterations) == (1, 3)
