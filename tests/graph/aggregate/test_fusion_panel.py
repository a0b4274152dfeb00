"""Aggregate strategy `fusion_panel`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.errors import BudgetExhausted, GraphFailed
from vsr.graph.aggregate.fusion_panel import FailedModel, FusionPanel, Panel
from vsr.graph.value import BranchOutcome, Failure, Inputs

INPUTS = Inputs(ChatBody({}))
MODELS = ("a", "b", "c")
LATE = FailedModel("panel", "context deadline exceeded")


def _said(index: int, content: str = "text", reasoning: str = "") -> BranchOutcome[object]:
    return BranchOutcome(index, Reply(MODELS[index], content, reasoning), rank=index)


def _failed(index: int) -> BranchOutcome[object]:
    return BranchOutcome(index, failure=Failure(f"why {index}", "upstream"), rank=index)


def _lost(index: int) -> BranchOutcome[object]:
    return BranchOutcome(index)


def test_panel_keeps_declared_order_and_names_the_failed() -> None:
    """The first to come is not the first in a prompt; who was cut off did not fail."""
    outcomes = [
        BranchOutcome[object](0, Reply("a", "one"), rank=2),
        BranchOutcome[object](1, failure=Failure("status 429", "upstream"), rank=0),
        BranchOutcome[object](2, Reply("c", "three"), rank=1),
    ]

    panel = FusionPanel(MODELS, 2)(outcomes, INPUTS)

    assert panel == Panel(
        (Reply("a", "one"), Reply("c", "three")), (FailedModel("b", "status 429"),)
    )


def test_panel_passes_over_who_was_cut_off_by_the_quorum() -> None:
    """A member that was no longer needed is neither a failure nor a sign of lateness."""
    panel = FusionPanel(MODELS, 1, on_failure="fail")([_lost(0), _said(1), _lost(2)], INPUTS)

    assert panel == Panel((Reply("b", "text"),))


def test_panel_counts_reasoning_but_no_blank_reply() -> None:
    """A judge can use a bare thought; it can do nothing with white space."""
    outcomes = [_said(0, " \n", "because"), _said(1, " ", "\t"), _said(2)]

    panel = FusionPanel(MODELS, 2)(outcomes, INPUTS)

    assert [reply.model for reply in panel.replies] == ["a", "c"]
    assert panel.failed == (FailedModel("b", "the reply has neither content nor reasoning"),)


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        (
            [_said(0), _failed(1), _said(2, "")],
            "fusion panel quorum not met: got 1 usable response(s), require 2",
        ),
        (
            [_said(0, ""), _failed(1), _failed(2)],
            "fusion panel quorum not met: got 0 usable response(s), require 2",
        ),
        (
            [_failed(0), _failed(1), _failed(2)],
            "fusion panel failed: all 3 analysis models failed",
        ),
        ([_failed(0), _lost(1), _lost(2)], "context deadline exceeded"),
        (
            [_said(0), _lost(1), _lost(2)],
            "fusion panel quorum not met: got 1 usable response(s), require 2",
        ),
    ],
    ids=["short", "nothing usable", "all failed", "late with none", "late with some"],
)
def test_panel_says_why_it_is_too_small(
    outcomes: list[BranchOutcome[object]], message: str
) -> None:
    """No judge is asked about too few replies; the text tells the cases apart."""
    with pytest.raises(GraphFailed) as caught:
        FusionPanel(MODELS, 2)(outcomes, INPUTS)

    assert str(caught.value) == message


def _refused(index: int) -> BranchOutcome[object]:
    failure = Failure(str(BudgetExhausted()), BudgetExhausted.code)
    return BranchOutcome(index, failure=failure, rank=index)


def test_panel_that_the_budget_kept_small_tells_of_the_budget() -> None:
    """Unless it would have been too small anyway, or there is a fallback."""
    outcomes = [_said(0), _failed(1), _refused(2)]

    with pytest.raises(BudgetExhausted):
        FusionPanel(MODELS, 2)(outcomes, INPUTS)
    with pytest.raises(GraphFailed, match="got 1 usable"):
        FusionPanel(MODELS, 3)(outcomes, INPUTS)
    assert len(FusionPanel(MODELS, 1)(outcomes, INPUTS).failed) == 2
    assert not FusionPanel(MODELS, 2, on_quorum_failure="fallback")(outcomes, INPUTS).is_quorum_met


def test_panel_that_may_not_fail_fails_by_lateness() -> None:
    """Under `fail` a cut-off member is a failure, and no fallback makes up for it."""
    strict = FusionPanel(MODELS, 2, on_failure="fail", on_quorum_failure="fallback")

    with pytest.raises(GraphFailed) as caught:
        strict([_said(0), _lost(1), _lost(2)], INPUTS)

    assert str(caught.value) == "context deadline exceeded"


def test_panel_leaves_the_answer_to_a_fallback() -> None:
    """With a fallback a small panel is a value: what there is, and what went wrong."""
    strategy = FusionPanel(MODELS, 3, on_quorum_failure="fallback")

    late = strategy([_said(0), _failed(1), _lost(2)], INPUTS)
    failed = strategy([_failed(0), _failed(1), _failed(2)], INPUTS)

    assert late == Panel(
        (Reply("a", "text"),), (FailedModel("b", "why 1"), LATE), is_quorum_met=False
    )
    assert not failed.is_quorum_met
    assert [entry.model for entry in failed.failed] == ["a", "b", "c"]


@settings(max_examples=60)
@given(kinds=st.tuples(*[st.sampled_from([_said, _failed, _lost])] * 3), quorum=st.integers(1, 3))
def test_panel_never_passes_below_its_quorum(kinds: tuple[object, ...], quorum: int) -> None:
    """Either at least `quorum` replies go on, or the run fails."""
    outcomes = [kind(at) for at, kind in enumerate(kinds)]  # type: ignore[operator]
    usable = kinds.count(_said)

    try:
        panel = FusionPanel(MODELS, quorum)(outcomes, INPUTS)
    except GraphFailed:
        assert usable < quorum
    else:
        assert len(panel.replies) == usable >= quorum
        assert LATE not in panel.failed
