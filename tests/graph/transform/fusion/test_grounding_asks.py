"""Transformer `fusion_grounding_asks`."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.graph.transform.fusion.grounding_asks import (
    AskGrounding,
    DetectorAsk,
    GroundingAsks,
    NliAsk,
    PairPlan,
)
from vsr.graph.transform.fusion.settings import GroundingSettings
from vsr.graph.value import Inputs

INPUTS = Inputs(ChatBody({}))


def _ask(contents: list[str], context: str = "", reference: str = "panel") -> GroundingAsks:
    panel = tuple(Reply(f"m{at}", content) for at, content in enumerate(contents))
    chosen = GroundingSettings(reference=reference)  # type: ignore[arg-type]
    return AskGrounding(panel, "the question", context, chosen)(INPUTS)


def test_short_replies_are_compared_as_they_are_in_both_directions() -> None:
    """Each reply is the hypothesis of each other one, once; 1600 characters still are short."""
    long = "x" * 1597

    asked = _ask(["one", long, "two"])

    assert asked.mode == "panel"
    assert asked.asks == (
        NliAsk(long, "one"),
        NliAsk("two", "one"),
        NliAsk("one", long),
        NliAsk("two", long),
        NliAsk("one", "two"),
        NliAsk(long, "two"),
    )
    assert asked.pairs[0] == PairPlan(premise=1, hypothesis=0, first=0, sentences=1, windows=1)
    assert [(p.premise, p.first) for p in asked.pairs] == [
        (1, 0), (2, 1), (0, 2), (2, 3), (0, 4), (1, 5),
    ]  # fmt: skip


def test_long_pair_is_cut_into_sentences_and_windows() -> None:
    """Sentences that are too short say nothing; long ones and long premises are cut off."""
    premise = "p" * 1200 + "q" * 1200 + "r"
    hypothesis = f"Too short. This one is long enough! Is it?\n {'z' * 700} ."

    asked = _ask([hypothesis, premise])

    pair = asked.pairs[0]
    assert (pair.sentences, pair.windows) == (2, 2)
    assert asked.asks[:4] == (
        NliAsk("p" * 1200, "This one is long enough"),
        NliAsk("q" * 1200, "This one is long enough"),
        NliAsk("p" * 1200, "z" * 600),
        NliAsk("q" * 1200, "z" * 600),
    )
    back = asked.pairs[1]
    assert (back.first, back.sentences, back.windows) == (4, 1, 1)
    assert asked.asks[4] == NliAsk(hypothesis, "p" * 600)


def test_long_hypothesis_gives_sixteen_sentences_of_twelve_characters_and_more() -> None:
    """What a long reply costs is bounded: the seventeenth sentence is not looked at."""
    sentences = [f"sentence{number:04d}" for number in range(200)]

    asked = _ask([". ".join(["elevenchars", *sentences]), "short"])

    assert [ask.hypothesis for ask in asked.asks[:16] if isinstance(ask, NliAsk)] == sentences[:16]
    assert asked.pairs[0].sentences == 16


def test_blank_window_of_a_premise_is_left_out() -> None:
    """There is nothing to find in white space, and a window need not be full."""
    asked = _ask(["Is this a sentence?", " " * 1200 + "tail" + "x" * 400])

    assert asked.asks[0] == NliAsk("tail" + "x" * 400, "Is this a sentence")
    assert asked.pairs[0].windows == 1


@pytest.mark.parametrize(
    ("hypothesis", "premise"), [("a. b! c?" * 300, "premise"), ("A long enough one", " " * 2000)]
)
def test_long_pair_without_parts_is_asked_whole(hypothesis: str, premise: str) -> None:
    """Where nothing is left after cutting, one plain question remains."""
    asked = _ask([hypothesis, premise])

    assert asked.asks[0] == NliAsk(premise, hypothesis)
    assert (asked.pairs[0].sentences, asked.pairs[0].windows) == (1, 1)


def test_single_reply_has_no_peers_to_ask_about() -> None:
    """It gets the middle score without any classifier."""
    assert _ask(["alone"]) == GroundingAsks("panel", ())


@pytest.mark.parametrize(
    ("reference", "context", "mode"),
    [
        ("hybrid", "the context", "context"),
        ("hybrid", " \n", "panel"),
        ("panel", "the context", "panel"),
        ("context", "", "context"),
    ],
)
def test_reference_decides_which_classifier_is_asked(
    reference: str, context: str, mode: str
) -> None:
    """`hybrid` takes the context where there is one, else the other replies."""
    asked = _ask(["one", "two"], context, reference)

    assert asked.mode == mode
    if mode == "context":
        assert asked.asks == (
            DetectorAsk(context, "the question", "one"),
            DetectorAsk(context, "the question", "two"),
        )


TEXTS = st.lists(
    st.text("ab.!? \n", max_size=8).flatmap(
        lambda part: st.integers(0, 400).map(lambda times: part * times)
    ),
    max_size=4,
)


@settings(max_examples=60)
@given(contents=TEXTS)
def test_every_ask_belongs_to_one_pair_and_is_bounded(contents: list[str]) -> None:
    """Whatever replies say, plans cover the asks without gap or overlap, and come back stored."""
    asked = _ask(contents)

    at = 0
    for pair in asked.pairs:
        assert pair.first == at
        assert 1 <= pair.sentences <= 16
        assert 1 <= pair.windows <= 2
        at += pair.sentences * pair.windows
    assert at == len(asked.asks)
    assert len(asked.pairs) == len(contents) * max(len(contents) - 1, 0)
    assert msgspec.json.decode(msgspec.json.encode(asked), type=GroundingAsks) == asked
