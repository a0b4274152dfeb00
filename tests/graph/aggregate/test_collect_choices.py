"""Aggregate strategy `collect_choices`."""

import msgspec
import pytest

from tests.graph.branch_ends import INPUTS, ends, failure, reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.collect_choices import Choice, Choices, CollectChoices


def test_successes_are_numbered_anew_in_declared_order() -> None:
    """Whichever came first; an empty answer stays a choice, a branch cut off is none."""
    outcomes = ends(reply("a", "m1"), failure(), None, reply("", "m4"), reply("a", "m1"))

    found = CollectChoices()(outcomes, INPUTS)

    assert found.choices == (Choice(0, "m1", "a"), Choice(1, "m4", ""), Choice(2, "m1", "a"))
    assert found.model == "m1"
    assert found.models == ("m1", "m4", "m1")


def test_model_is_that_of_the_last_choice() -> None:
    """Not of the last branch."""
    outcomes = ends(reply("a", "m1"), reply("b", "m2"), failure())

    assert CollectChoices()(outcomes, INPUTS).model == "m2"


def test_fail_names_the_lowest_failed_branch() -> None:
    """By its index from 0, whatever else succeeded; one that was cut off did not fail."""
    outcomes = ends("secret", None, failure("reset"), failure("late"))

    with pytest.raises(GraphFailed) as failed:
        CollectChoices("fail")(outcomes, INPUTS)

    assert str(failed.value) == "model 2 failed: reset"


def test_fail_goes_on_where_nothing_failed() -> None:
    """It is about failures alone."""
    assert CollectChoices("fail")(ends("a", None), INPUTS).choices == (Choice(0, "alpha", "a"),)


@pytest.mark.parametrize(
    ("values", "message"),
    [((failure("x"), None), "all models failed"), ((), "no models configured")],
)
def test_nothing_to_choose_from_is_an_error(values: tuple[object, ...], message: str) -> None:
    """Of its own for a run without candidates."""
    with pytest.raises(GraphFailed) as failed:
        CollectChoices()(ends(*values), INPUTS)

    assert str(failed.value) == message


def test_choices_can_be_stored() -> None:
    """A suspended run keeps them as JSON."""
    found = CollectChoices()(ends("a", "b"), INPUTS)

    assert msgspec.json.decode(msgspec.json.encode(found), type=Choices) == found
