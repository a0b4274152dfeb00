"""Aggregate strategy `order_and_trim`."""

from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.remom_replies import INPUTS, reply
from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.order_and_trim import OrderAndTrim
from vsr.graph.remom_round import RoundPlan, RoundRecord
from vsr.graph.value import BranchOutcome, Failure

End = Reply | str | None
"""How a call ended: a reply, the message of a failure, or cut off."""


def _outcomes(*ends: End, ranks: Sequence[int] | None = None) -> list[BranchOutcome[object]]:
    places = iter(range(len(ends)) if ranks is None else ranks)
    outcomes: list[BranchOutcome[object]] = []
    for index, end in enumerate(ends):
        if end is None:
            outcomes.append(BranchOutcome(index))
        elif isinstance(end, str):
            failure = Failure(message=end, code="graph_failed")
            outcomes.append(BranchOutcome(index, failure=failure, rank=next(places)))
        else:
            outcomes.append(BranchOutcome(index, value=end, rank=next(places)))
    return outcomes


def _record(
    outcomes: Sequence[BranchOutcome[object]],
    *,
    number: int = 1,
    quorum: int | None = None,
    failures: Literal["skip", "fail"] = "skip",
) -> RoundRecord:
    plan = RoundPlan(number=number, breadth=len(outcomes), quorum=quorum)
    return OrderAndTrim(plan, failures=failures)(outcomes, INPUTS)


def test_replies_go_from_long_to_short_and_are_then_shuffled() -> None:
    """Lengths are bytes; reasoning counts where content is blank. Seed 42 is the order 3 0 1 2."""
    long, wide = reply("x" * 20), reply("é" * 6)
    thinking, short = reply(" ", reasoning="y" * 8), reply("z" * 5)
    step = OrderAndTrim(RoundPlan(1, 4), seed=42)

    record = step(_outcomes(short, thinking, wide, long), INPUTS)

    assert record.kept == (short, long, wide, thinking)


def test_equal_lengths_keep_the_order_of_arrival() -> None:
    """Seed 1 leaves three in their order; arrival, not declaration, comes before the shuffle."""
    first, second, third = reply("aa"), reply("bb"), reply("cc")
    step = OrderAndTrim(RoundPlan(1, 3), seed=1)

    record = step(_outcomes(first, second, third, ranks=[2, 0, 1]), INPUTS)

    assert record.kept == (second, third, first)
    assert record.completed == (second, third, first)


def test_no_more_than_max_responses_are_kept() -> None:
    """They are taken after the shuffle; all that came was paid for. Seed 0 turns three around."""
    replies = [reply("xxx"), reply("xx"), reply("x")]
    step = OrderAndTrim(RoundPlan(1, 3), seed=0, max_responses=2)

    record = step(_outcomes(*replies), INPUTS)

    assert [each.content for each in record.kept] == ["x", "xx"]
    assert len(record.completed) == 3


def test_record_says_which_round_it_was() -> None:
    """The planned breadth stands, whatever came of it."""
    plan = RoundPlan(number=3, breadth=4, is_final=True)

    record = OrderAndTrim(plan)(_outcomes(reply("x"), "down", None, None), INPUTS)

    assert (record.number, record.breadth, record.is_final) == (3, 4, True)


def test_skip_goes_on_with_what_can_be_used() -> None:
    """An unusable reply is paid for and not kept; a failure and a lost call are neither."""
    good, blank = reply("good"), reply(" \n")

    record = _record(_outcomes(blank, "down", good, None))

    assert record.kept == (good,)
    assert record.completed == (blank, good)


def test_nothing_usable_in_a_later_round_is_no_error_under_skip() -> None:
    """The rounds before have an answer; what was paid for is still told."""
    record = _record(_outcomes(reply(""), "down"), number=2)

    assert record.has_failed
    assert record.completed == (reply(""),)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (("down", None), "round 1: all model calls failed"),
        ((None, None), "round 1: all model calls failed"),
        (
            ("down", reply(" ", reasoning="\t")),
            "round 1: model calls returned no usable content or reasoning",
        ),
    ],
)
def test_nothing_usable_in_the_first_round_is_an_error(ends: tuple[End, ...], message: str) -> None:
    """Source: looper-algorithms 19."""
    with pytest.raises(GraphFailed) as raised:
        _record(_outcomes(*ends))

    assert str(raised.value) == message


def test_fail_names_the_first_failure_by_arrival() -> None:
    """The call's number counts from 0, the round's from 1."""
    outcomes = _outcomes("slow one", reply("fine"), "quick one", ranks=[2, 0, 1])

    with pytest.raises(GraphFailed) as raised:
        _record(outcomes, number=2, failures="fail")

    assert str(raised.value) == "round 2 failed: model call 2 failed: quick one"


def test_fail_takes_an_unusable_reply_for_a_failure() -> None:
    """Source: looper-algorithms 8.4 d."""
    with pytest.raises(GraphFailed) as raised:
        _record(_outcomes(reply("fine"), reply("")), failures="fail")

    wanted = "round 1 failed: model call 1 returned no usable content or reasoning"
    assert str(raised.value) == wanted


def test_fail_takes_a_lost_call_for_a_timeout() -> None:
    """Nothing failed and nothing was enough, so time cut the round off, even its first reply."""
    with pytest.raises(GraphFailed, match=r"^round 1 failed: the round timed out$"):
        _record(_outcomes(reply("fine"), None), failures="fail")


def test_timeout_is_told_as_the_parallel_step_tells_it() -> None:
    """A call that time cut off has a failure and no rank."""
    late = BranchOutcome[object](1, failure=Failure("context deadline exceeded", "late"))

    with pytest.raises(GraphFailed, match=r"^round 1 failed: context deadline exceeded$"):
        _record([*_outcomes(reply("fine")), late], failures="fail")


def test_failure_that_stands_for_a_value_is_a_failure() -> None:
    """A step may have one in the place of its reply."""
    outcome = BranchOutcome[object](0, value=Failure("down", "graph_failed"), rank=0)

    with pytest.raises(GraphFailed, match=r"^round 1 failed: model call 0 failed: down$"):
        _record([outcome], failures="fail")


@pytest.mark.parametrize("failures", ["skip", "fail"])
def test_quorum_ends_the_round(failures: Literal["skip", "fail"]) -> None:
    """What arrived behind the quorum is paid for, but is neither kept nor a failure."""
    quick, late = reply("quick"), reply("late but longer")
    outcomes = _outcomes(late, quick, "down", None, ranks=[1, 0, 2])

    record = _record(outcomes, quorum=1, failures=failures)

    assert record.kept == (quick,)
    assert record.completed == (quick, late)


_ENDS = st.sampled_from([reply("a"), reply("bb"), reply(""), "down", None])


@settings(max_examples=80)
@given(st.lists(_ENDS, min_size=1, max_size=6), st.integers(0, 6), st.integers(0, 3))
def test_kept_replies_are_some_of_the_completed(ends: list[End], quorum: int, most: int) -> None:
    """Whatever comes, no more is kept than allowed, and nothing that was not received."""
    plan = RoundPlan(2, len(ends), quorum=quorum or None)

    record = OrderAndTrim(plan, max_responses=most)(_outcomes(*ends), INPUTS)

    assert all(each in record.completed for each in record.kept)
    assert all(each.content for each in record.kept)
    assert len(record.kept) <= (most or len(ends))
    assert len(record.kept) <= (quorum or len(ends))
