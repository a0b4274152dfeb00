"""What a client is told of a graph's steps and calls: short lines of names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.graph import FakePrompt, FakeTasks
from vsr.codec.sse import encode_comment, parse_event
from vsr.deadline import NO_DEADLINE
from vsr.engine.graph_progress import watch_progress
from vsr.graph.block import BROKEN
from vsr.graph.budget import Budget
from vsr.graph.ledger import Ledger, LedgerEntry
from vsr.graph.run import GraphRun, TailCall
from vsr.graph.value import Failure
from vsr.routing.budget import Reservation
from vsr.routing.outcome import Cause, Outcome, Terminal

SECRET = "what a model said"
LONGEST = 260


def run() -> GraphRun:
    """Return a run that nobody watches."""
    return GraphRun(FakeTasks(), NO_DEADLINE, Budget(), Ledger(), FakePrompt())


def entry(model: str = "small", step: str = "panel[0]/answer") -> LedgerEntry:
    """Return the second call of a run."""
    return LedgerEntry(model, Reservation(model, None), ordinal=2, step=step)


def told_of(value: object) -> list[str]:
    """Return what is told of a step with this value."""
    told: list[str] = []
    watched = run()
    watch_progress(watched, told.append)
    assert watched.watch is not None
    watched.watch.began("panel[0]/answer", "call")
    watched.watch.ended("panel[0]/answer", value)
    return told


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (SECRET, "succeeded"),
        (BROKEN, "succeeded"),
        (None, "ended"),
        (Failure(SECRET, "call_failed"), "failed"),
        (TailCall("small", entry()), "handed_out"),
    ],
)
def test_step_is_told_of_twice_and_its_value_never(value: object, status: str) -> None:
    """A step without a value may have been skipped, so nothing is claimed of it."""
    assert told_of(value) == [
        "step=panel[0]/answer type=call status=started",
        f"step=panel[0]/answer status={status}",
    ]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (None, "started"),
        (Outcome(Terminal.SUCCEEDED, None, 200), "succeeded"),
        (Outcome(Terminal.CANCELLED, Cause.LOST), "cancelled cause=lost"),
    ],
)
def test_call_is_told_of_with_its_model(outcome: Outcome | None, status: str) -> None:
    """And with the number that it has in the ledger."""
    told: list[str] = []
    watched, call = run(), entry()
    watch_progress(watched, told.append)
    call.outcome = outcome

    watched.ledger.tell(call)

    assert told == [f"step=panel[0]/answer call=2 model=small status={status}"]


def test_who_watches_already_goes_on_watching() -> None:
    """A dry run does."""
    told: list[str] = []
    seen: list[object] = []

    class Watcher:
        def began(self, path: str, kind: str) -> None:
            seen.append((path, kind))

        def ended(self, path: str, value: object) -> None:
            seen.append((path, value))

    watched, call = run(), entry()
    watched.watch, watched.ledger.watch = Watcher(), seen.append
    watch_progress(watched, told.append)

    watched.watch.began("a", "call")
    watched.watch.ended("a", SECRET)
    watched.ledger.tell(call)

    assert seen == [("a", "call"), ("a", SECRET), call]
    assert len(told) == 3


@given(step=st.text(max_size=400), model=st.text(max_size=400))
def test_line_is_bounded_and_no_event_whatever_the_names(step: str, model: str) -> None:
    """Names are words: no blank, no line break, none longer than some."""
    told: list[str] = []
    watched = run()
    watch_progress(watched, told.append)

    watched.ledger.tell(entry(model, step))

    [line] = told
    assert len(line) < LONGEST
    assert [word.partition("=")[0] for word in line.split(" ")] == [
        "step",
        "call",
        "model",
        "status",
    ]
    comment = encode_comment(line)
    assert comment.count(b"\n") == 2
    assert parse_event(comment).data is None
