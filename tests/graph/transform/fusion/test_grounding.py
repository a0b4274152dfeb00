"""Transformer `fusion_grounding`."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.transform.fusion.grounding import Answers, Grounded, ReplyScore, ScoreGrounding
from vsr.graph.transform.fusion.grounding_asks import AskGrounding, GroundingAsks
from vsr.graph.transform.fusion.settings import GroundingSettings
from vsr.graph.value import Failure, Inputs

INPUTS = Inputs(ChatBody({}))
PANEL = (Reply("a", "one"), Reply("b", "two"), Reply("c", "three"))


def _nli(entailment: float, contradiction: float) -> Mapping[str, object]:
    return {"entailment": entailment, "contradiction": contradiction}


def _spans(*spans: str) -> Mapping[str, object]:
    return {"unsupported_spans": list(spans)}


def _ask(panel: tuple[Reply, ...], context: str = "") -> GroundingAsks:
    return AskGrounding(panel, "q", context, GroundingSettings())(INPUTS)


def _ground(
    answers: Answers | Failure,
    settings: GroundingSettings,
    panel: tuple[Reply, ...] = PANEL,
    context: str = "",
) -> Grounded:
    return ScoreGrounding(panel, settings, _ask(panel, context), answers)(INPUTS)


# In the order of asks: b about a, c about a, a about b, c about b, a about c, b about c.
SIX = (_nli(0.5, 0.0), _nli(0.0, 0.5), _nli(1, 0), _nli(0.8, 0), _nli(0.2, 0.6), _nli(0.7, 0.6))


def test_panel_score_is_the_mean_of_what_peers_say() -> None:
    """Entailment counts for a reply, contradiction against it; it is scaled to 0..1."""
    grounded = _ground(SIX, GroundingSettings(policy="annotate"))

    assert [score.score for score in grounded.scores] == pytest.approx([0.5, 0.95, 0.425])
    assert [score.flagged_spans for score in grounded.scores] == [("c",), (), ("a",)]
    assert grounded.panel == PANEL
    assert (grounded.mode, grounded.policy) == ("panel", "annotate")


def test_penalty_weighs_contradictions() -> None:
    """Twice the penalty takes twice as much and widens the scale as well."""
    panel = PANEL[:2]
    answers = [_nli(0.2, 0.4), _nli(0, 1)]

    grounded = _ground(answers, GroundingSettings(penalty=2.0), panel)

    assert [score.score for score in grounded.scores] == pytest.approx([1.4 / 3, 0.0])


@pytest.mark.parametrize(
    ("entailment", "contradiction", "is_flagged"),
    [(0.4, 0.5, True), (0.4, 0.49, False), (0.5, 0.5, False), (0.6, 0.55, False)],
)
def test_contradiction_is_flagged_where_it_prevails(
    entailment: float, contradiction: float, *, is_flagged: bool
) -> None:
    """A peer is flagged when it contradicts at least with 0.5, and more than it entails."""
    answers = [_nli(entailment, contradiction), _nli(0, 0)]

    grounded = _ground(answers, GroundingSettings(), PANEL[:2])

    assert bool(grounded.scores[0].flagged_spans) == is_flagged


def test_lone_reply_has_the_middle_score() -> None:
    """Without peers nothing speaks for or against it."""
    grounded = _ground([], GroundingSettings(penalty=3.0), PANEL[:1])

    assert grounded.scores == (ReplyScore("a", 0.75),)


def test_long_pair_takes_the_best_window_of_each_sentence() -> None:
    """A sentence is supported if one window supports it; sentences are averaged; first of ties."""
    panel = (Reply("a", "First long sentence. Second long sentence."), Reply("b", "w" * 2400))
    answers = [
        _nli(0.9, 0.5), _nli(0.75, 0.0),
        _nli(0.5, 0.25), _nli(0.25, 0.0),
        _nli(0.0, 0.0),
    ]  # fmt: skip

    grounded = _ground(answers, GroundingSettings(penalty=2.0), panel)

    raw = (0.75 + 0.5) / 2 - 2 * (0.0 + 0.25) / 2
    assert grounded.scores[0].score == pytest.approx((raw + 2) / 3)


def test_detector_score_falls_with_each_unsupported_span() -> None:
    """The spans are what is shown of the doubt."""
    answers = [_spans(), _spans("x"), _spans("y", "z")]

    grounded = _ground(answers, GroundingSettings(), context="the context")

    assert grounded.mode == "context"
    assert grounded.scores == (
        ReplyScore("a", 1.0),
        ReplyScore("b", 0.5, ("x",)),
        ReplyScore("c", 1 / 3, ("y", "z")),
    )


def test_filter_ranks_and_drops() -> None:
    """The best comes first; scores stay in the panel's order and say who was dropped."""
    grounded = _ground(SIX, GroundingSettings(policy="filter", min_score=0.5))

    assert [reply.model for reply in grounded.panel] == ["b", "a"]
    assert [(s.model, s.dropped) for s in grounded.scores] == [
        ("a", False), ("b", False), ("c", True),
    ]  # fmt: skip


def test_filter_keeps_the_least_number_whatever_their_scores() -> None:
    """A judge never gets an empty panel; equal scores keep the panel's order."""
    answers = [_spans("x"), _spans("y"), _spans("z")]
    rule = GroundingSettings(policy="filter", min_score=0.9, min_keep=2)

    grounded = _ground(answers, rule, context="the context")

    assert [reply.model for reply in grounded.panel] == ["a", "b"]


@pytest.mark.parametrize(
    "answers",
    [
        Failure("no classifier", "runtime"),
        [],
        [_nli(0, 0), None],
        [_nli(0, 0), {"entailment": 0}],
        [_nli(0, 0), _nli(0, 1.5)],
        [_nli(0, 0), _nli(math.nan, 0)],
        [_nli(0, 0), {"entailment": "much", "contradiction": 0}],
    ],
    ids=["failure", "no answers", "missing", "half", "over 1", "not a number", "text"],
)
def test_missing_answer_switches_grounding_off_or_fails(answers: Answers | Failure) -> None:
    """Scores of a part of the panel would be unfair, so one missing answer spoils all."""
    panel = PANEL[:2]
    skipping = GroundingSettings(policy="filter", min_score=1.0)

    assert _ground(answers, skipping, panel) == Grounded(panel)
    with pytest.raises(GraphFailed, match=r"^fusion grounding failed: \w"):
        _ground(answers, GroundingSettings(on_error="fail"), panel)


def test_malformed_detector_answer_is_a_missing_one() -> None:
    """The detector's answer is checked like the other classifier's."""
    answers = [_spans(), {"unsupported_spans": 3}, _spans()]

    assert _ground(answers, GroundingSettings(), context="x") == Grounded(PANEL)


def test_grounding_that_is_off_does_nothing() -> None:
    """Without settings the panel goes on as it is, and nothing is shown."""
    assert ScoreGrounding(PANEL)(INPUTS) == Grounded(PANEL)


PROBABILITIES = st.floats(0, 1)


@hypothesis_settings(max_examples=60)
@given(
    data=st.data(),
    size=st.integers(1, 4),
    min_keep=st.integers(1, 5),
    min_score=PROBABILITIES,
    penalty=st.floats(0.01, 50),
)
def test_filter_keeps_whom_it_must(
    data: st.DataObject, size: int, min_keep: int, min_score: float, penalty: float
) -> None:
    """Scores stay within 0..1, `min_keep` is kept, no dropped reply outscores a kept one."""
    panel = tuple(Reply(f"m{at}", "text") for at in range(size))
    asks = _ask(panel)
    answers = [_nli(data.draw(PROBABILITIES), data.draw(PROBABILITIES)) for _ in asks.asks]
    rule = GroundingSettings(
        policy="filter", min_score=min_score, min_keep=min_keep, penalty=penalty
    )

    grounded = _ground(answers, rule, panel)

    score_of = {score.model: score.score for score in grounded.scores}
    kept = [score_of[reply.model] for reply in grounded.panel]
    dropped = [score.score for score in grounded.scores if score.dropped]
    assert all(0 <= score <= 1 for score in score_of.values())
    assert kept == sorted(kept, reverse=True)
    assert len(kept) >= min(min_keep, size)
    assert len(kept) + len(dropped) == size
    assert all(score < min_score for score in dropped)
    assert not dropped or max(dropped) <= min(kept)
