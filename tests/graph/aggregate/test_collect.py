"""Aggregate strategies `collect`, `collect_texts`, `collect_numbers` and `concat`."""

import pytest

from tests.graph.branch_ends import INPUTS, ends, failure, reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.collect import Collect, CollectNumbers, CollectTexts, Concat
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.value import Prompt


def test_collect_keeps_replies_of_successes() -> None:
    """In declared order."""
    found = Collect()(ends("b", failure(), "a", None), INPUTS)

    assert found == (reply("b"), reply("a"))


def test_collect_texts_takes_texts_of_any_kind() -> None:
    """The content of a reply, the text of a prompt; a blank one too."""
    found = CollectTexts()(ends("a", failure(), Prompt("b"), reply("")), INPUTS)

    assert found == ("a", "b", "")


def test_collect_numbers_takes_whole_ones_too() -> None:
    """0 is a number like any other."""
    assert CollectNumbers()(ends(0.5, failure(), 0, None, 2), INPUTS) == (0.5, 0.0, 2.0)


def test_concat_joins_texts_that_say_something() -> None:
    """As they are; blank ones leave no gap."""
    outcomes = ends(" a ", reply(" \n"), failure(), "b")

    assert Concat()(outcomes, INPUTS) == " a \n\nb"
    assert Concat(" | ")(outcomes, INPUTS) == " a  | b"


@pytest.mark.parametrize(
    ("strategy", "empty"),
    [(Collect(), ()), (CollectTexts(), ()), (CollectNumbers(), ()), (Concat(), "")],
)
def test_no_success_leaves_nothing(strategy: Aggregate, empty: object) -> None:
    """That is a value, and no error."""
    assert strategy(ends(failure(), None), INPUTS) == empty
    assert strategy([], INPUTS) == empty


@pytest.mark.parametrize(
    ("strategy", "value", "wanted"),
    [
        (Collect(), 1, "a reply"),
        (CollectTexts(), 1, "a text"),
        (Concat(), 1, "a text"),
        (CollectNumbers(), "1", "a number"),
        (CollectNumbers(), True, "a number"),
    ],
)
def test_another_kind_of_value_is_an_error(strategy: Aggregate, value: object, wanted: str) -> None:
    """It tells which branch brought what."""
    with pytest.raises(GraphFailed, match=f"^branch 1 brought a .* instead of {wanted}$"):
        strategy(ends(None, value), INPUTS)
