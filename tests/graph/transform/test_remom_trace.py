"""Transformer `remom_trace`."""

import msgspec

from tests.graph.remom_replies import INPUTS, reply, round_of
from vsr.graph.remom_round import RoundRecord
from vsr.graph.transform.remom_trace import RemomTrace


def _shown(step: RemomTrace) -> object:
    return msgspec.json.decode(msgspec.json.encode(step(INPUTS)))


def test_trace_shows_kept_rounds() -> None:
    """Counts are of the whole text; what is empty or zero is left out; failed rounds are, too."""
    rounds = (
        RoundRecord(1, 4, kept=(reply("AAAA-aaaa-1234567"), reply("xyz", model="b"))),
        RoundRecord(2, 1, is_final=True),
    )

    shown = _shown(RemomTrace(rounds, compaction="last_n_tokens", compaction_tokens=2))

    assert shown == [
        {
            "round": 1,
            "breadth": 4,
            "responses": [
                {
                    "model": "a",
                    "content": "AAAA-aaaa-1234567",
                    "compacted_content": "-1234567",
                    "token_count": 4,
                },
                {"model": "b", "content": "xyz", "compacted_content": "xyz"},
            ],
        }
    ]


def test_trace_counts_reasoning_where_there_is_no_content() -> None:
    """The content is then empty, and the text that was passed on is the reasoning."""
    shown = _shown(RemomTrace((round_of(reply("", reasoning="thoughts")),)))

    wanted = {
        "model": "a",
        "content": "",
        "reasoning": "thoughts",
        "compacted_content": "thoughts",
        "token_count": 2,
    }
    assert shown == [{"round": 1, "breadth": 1, "responses": [wanted]}]


def test_trace_is_nothing_unless_it_is_asked_for() -> None:
    """An answer has no such member then, not an empty one."""
    assert RemomTrace((round_of(reply("x")),), include=False)(INPUTS) is None
