"""Steps of a run with their times, bounded; and when what was cut off has ended."""

import msgspec
import pytest

from vsr.codec.chat_reply import Reply
from vsr.graph.account import Account
from vsr.graph.block import BROKEN, Answer, Suspension
from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import TailCall
from vsr.graph.suspend.tool_ids import PendingToolCalls
from vsr.graph.timeline import Timeline, cut_at, end_of, is_inside, status_of
from vsr.graph.value import Failure
from vsr.routing.budget import Reservation
from vsr.routing.outcome import Attempt, Outcome, Terminal


def entry(step: str, ended_at: float | None = None) -> LedgerEntry:
    """Return a call of a step."""
    return LedgerEntry("m", Reservation("m", None), step=step, ended_at=ended_at)


def test_steps_are_kept_with_their_times_and_ends() -> None:
    """In the order of their starts."""
    at = iter(range(10))
    timeline = Timeline(lambda: float(next(at)))
    tail = TailCall("m", entry("b"))

    timeline.began("a", "call")
    timeline.began("b", "call")
    timeline.ended("a", Failure("no", "call_failed"))
    timeline.ended("b", tail)
    timeline.began("c", "loop")

    spans = list(timeline.spans.values())
    assert [(each.path, each.type, each.started_at, each.ended_at) for each in spans] == [
        ("a", "call", 0.0, 2.0),
        ("b", "call", 1.0, 3.0),
        ("c", "loop", 4.0, None),
    ]
    assert [each.status for each in spans] == ["failed", "handed_out", ""]
    assert spans[0].failure == Failure("no", "call_failed")
    assert spans[1].tail is tail.entry


def test_so_many_steps_are_kept_and_the_rest_is_counted() -> None:
    """A step that is run again takes its own place."""
    timeline = Timeline(lambda: 0.0, limit=2)

    for path in ("a", "b", "c", "a", "d"):
        timeline.began(path, "call")
        timeline.ended(path, 1)

    assert (list(timeline.spans), timeline.dropped) == (["a", "b"], 2)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (Failure("no", "x"), "failed"),
        (TailCall("m", entry("a")), "handed_out"),
        (None, "ended"),
        (BROKEN, "succeeded"),
        (Reply("m"), "succeeded"),
        (0, "succeeded"),
    ],
)
def test_value_tells_how_a_step_ended(value: object, status: str) -> None:
    """In a word."""
    assert status_of(value) == status


def test_suspended_run_has_not_ended() -> None:
    """It waits for its client."""
    pending = PendingToolCalls("", (), Reply("m"), msgspec.Raw(b"{}"), 0)
    waits = Suspension("a", msgspec.Raw(b"[]"), pending, Answer(200, b""), Account())

    assert status_of(waits) == "suspended"


def test_step_that_was_cut_off_ends_with_its_calls_or_with_what_is_around() -> None:
    """Else with the run."""
    timeline = Timeline(lambda: 5.0)
    timeline.began("outer", "parallel")
    timeline.began("outer[0]/inner", "call")
    timeline.ended("outer", 1)
    calls = [entry("outer[1]/inner", 2.0), entry("outer[1]/inner/deep", 3.0), entry("x")]

    assert cut_at("outer[1]/inner", timeline, calls, 9.0) == 3.0
    assert cut_at("outer[0]/inner", timeline, calls, 9.0) == 5.0
    assert cut_at("x", timeline, calls, 9.0) == 9.0


def test_call_of_the_router_ends_with_its_last_attempt() -> None:
    """Its own entry has no time."""
    attempt = Attempt("m", "e", "a:1", 1.0, ended_at=4.0)
    tail = entry("a")

    assert end_of(tail) is None
    tail.close(Outcome(Terminal.SUCCEEDED, attempts=(attempt,)))
    assert end_of(tail) == 4.0
    assert end_of(entry("a", 2.0)) == 2.0


@pytest.mark.parametrize(
    ("path", "is_in"),
    [("a", True), ("a/b", True), ("a[0]/b", True), ("ab", False), ("b/a", False), ("", False)],
)
def test_paths_tell_who_is_inside_of_whom(path: str, is_in: bool) -> None:  # noqa: FBT001
    """By whole names."""
    assert is_inside(path, "a") is is_in
