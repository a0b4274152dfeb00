"""Conditions `logprob_at_least`, `tool_calls`, `has_tools` and `resumed`."""

import attrs
import msgspec

from tests.graph.branch_ends import INPUTS, ends, failure, reply, scored
from vsr.graph.conditions.reply_facts import HasTools, LogprobAtLeast, Resumed, ToolCalls


def test_mean_logprob_on_the_threshold_is_enough() -> None:
    """It is the mean itself and no score."""
    answer = scored(("a", -1.0), ("b", -2.0))
    (won,) = ends(answer)

    assert LogprobAtLeast(answer, -1.5)(INPUTS)
    assert LogprobAtLeast(won, -1.5)(INPUTS)  # type: ignore[arg-type]
    assert not LogprobAtLeast(answer, -1.4)(INPUTS)


def test_reply_without_logprobs_reaches_no_threshold() -> None:
    """However low it is."""
    assert not LogprobAtLeast(reply("a"), -1e9)(INPUTS)
    assert not LogprobAtLeast(None, -1e9)(INPUTS)
    assert not LogprobAtLeast(failure(), -1e9)(INPUTS)


def test_reply_that_calls_a_tool() -> None:
    """Also in the legacy way, which leaves no call in the list."""
    calling = msgspec.structs.replace(reply("a"), has_tool_calls=True)

    assert ToolCalls(calling)(INPUTS)
    assert not ToolCalls(reply("a"))(INPUTS)
    assert not ToolCalls(None)(INPUTS)
    assert not ToolCalls(failure())(INPUTS)


def test_has_tools_says_what_the_request_says() -> None:
    """It is the name of a fact."""
    assert HasTools(True)(INPUTS)  # noqa: FBT003  # as the document says it
    assert not HasTools(False)(INPUTS)  # noqa: FBT003


def test_run_that_goes_on_is_told_from_one_that_begins() -> None:
    """Either can be asked for."""
    resumed = attrs.evolve(INPUTS, is_resumed=True)

    assert [Resumed(value)(INPUTS) for value in (True, False)] == [False, True]
    assert [Resumed(value)(resumed) for value in (True, False)] == [True, False]
