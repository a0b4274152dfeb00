"""Transformer `select_remom`."""

import pytest

from tests.graph.remom_replies import INPUTS, reply, round_of
from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.remom_round import RoundRecord
from vsr.graph.transform.select_remom import Selection, SelectRemom


def _select(*rounds: RoundRecord) -> Selection:
    return SelectRemom(rounds)(INPUTS)


def test_final_round_answers_with_its_first_content() -> None:
    """Length does not matter in the final round; a reply of reasoning alone is passed over."""
    first, second = reply("short", model="b"), reply("much longer")
    thinking = reply(" ", reasoning="deep")
    rounds = (round_of(reply("the longest by far")), round_of(thinking, first, second, number=2))

    selection = _select(rounds[0], RoundRecord(2, 3, is_final=True, kept=rounds[1].kept))

    assert selection.reply is first


def test_candidates_are_all_kept_replies_in_order() -> None:
    """A contract counts them from the first round on, the final reply among them."""
    early, late = reply("one"), reply("two")

    selection = _select(round_of(early), round_of(late, number=2, is_final=True))

    assert selection.candidates == (early, late)


def test_longest_earlier_answer_stands_in_for_reasoning() -> None:
    """White space around does not count as length; lengths are bytes."""
    padded, longer = reply("short" + " " * 20), reply("ééééé", model="b")
    thinking = reply("", reasoning="a very long and hidden thought")

    selection = _select(round_of(padded, longer), round_of(thinking, number=2, is_final=True))

    assert selection.reply is longer


@pytest.mark.parametrize(
    "last", [round_of(number=3, is_final=True), round_of(reply("hm"), number=3)]
)
def test_longest_answer_stands_in_for_rounds_that_did_not_happen(last: RoundRecord) -> None:
    """Of equally long ones the latest round's first has it; a failed round has none."""
    old, new, newer = reply("same"), reply("size"), reply("also")

    selection = _select(round_of(old), round_of(new, newer, number=2), last)

    assert selection.reply is new


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ((), "remom produced no responses"),
        ((reply("", reasoning="thought"),), "remom produced no assistant content"),
    ],
)
def test_no_answer_is_an_error(kept: tuple[Reply, ...], message: str) -> None:
    """Reasoning is never published. Source: looper-algorithms 19."""
    with pytest.raises(GraphFailed, match=f"^{message}$"):
        _select(round_of(*kept))
