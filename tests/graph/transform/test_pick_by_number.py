"""Transformer `pick_by_number`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.remom_replies import INPUTS, reply
from vsr.errors import GraphFailed
from vsr.graph.transform.pick_by_number import PickByNumber

CANDIDATES = tuple(reply(f"answer {number}") for number in range(1, 4))


@settings(max_examples=30)
@given(before=st.text(), number=st.integers(1, 3), after=st.text(alphabet=" \n.*)!"))
def test_last_number_of_the_verdict_picks(before: str, number: int, after: str) -> None:
    """Whatever the judge says before it, numbers included."""
    verdict = reply(f"{before}\nBest: {number}{after}")

    assert PickByNumber(CANDIDATES, verdict)(INPUTS) is CANDIDATES[number - 1]


@pytest.mark.parametrize("content", ["Best: 2.0", "**2**", "candidate #2", "3 is 10% worse than 2"])
def test_number_may_be_written_in_several_ways(content: str) -> None:
    """Judges do not keep to the form."""
    assert PickByNumber(CANDIDATES, reply(content))(INPUTS) is CANDIDATES[1]


@pytest.mark.parametrize("content", ["", "none", "the second"])
def test_verdict_without_a_number_fails(content: str) -> None:
    """No candidate is taken by chance."""
    with pytest.raises(GraphFailed, match=r"^the verdict names no candidate$"):
        PickByNumber(CANDIDATES, reply(content))(INPUTS)


@pytest.mark.parametrize("content", ["0", "4", "1.5", "-1", "1e400", "1e999"])
def test_number_of_nobody_fails(content: str) -> None:
    """Places are counted from 1, and only whole ones are."""
    with pytest.raises(GraphFailed, match=r"^the verdict names none of 3 candidates$"):
        PickByNumber(CANDIDATES, reply(content))(INPUTS)


def test_reasoning_is_no_verdict() -> None:
    """What a judge thinks on the way is not what it says."""
    with pytest.raises(GraphFailed, match="no candidate"):
        PickByNumber(CANDIDATES, reply("", reasoning="2"))(INPUTS)
