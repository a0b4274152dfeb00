"""When the steps of one run began and ended, and how; of their values only failures are kept."""

from collections.abc import Callable

import attrs

from vsr.graph.block import Suspension
from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import TailCall
from vsr.graph.value import Failure

MAX_SPANS = 1_000
"""Steps of one run that are kept where nobody wants all: those of a long loop are many."""


@attrs.define
class Span:
    """One step that has begun; times are monotonic seconds."""

    path: str
    type: str
    started_at: float
    ended_at: float | None = None
    """None while it runs, and for good where it was cancelled."""
    status: str = ""
    """See `status_of`; empty while it runs, and where it was cancelled."""
    failure: Failure | None = None
    tail: LedgerEntry | None = None
    """The call that it left to the Router to make."""


@attrs.define(eq=False)
class Timeline:
    """Implements `graph.run.Watch` for one run."""

    now: Callable[[], float]
    limit: int = MAX_SPANS
    spans: dict[str, Span] = attrs.field(factory=dict)
    """By path, in the order of their starts."""
    dropped: int = 0

    def began(self, path: str, kind: str) -> None:
        """Take note of a step's start."""
        if len(self.spans) >= self.limit and path not in self.spans:
            self.dropped += 1
        else:
            self.spans[path] = Span(path, kind, self.now())

    def ended(self, path: str, value: object) -> None:
        """Take note of a step's end."""
        span = self.spans.get(path)
        if span is None:
            return
        span.ended_at, span.status = self.now(), status_of(value)
        if isinstance(value, Failure):
            span.failure = value
        elif isinstance(value, TailCall) and span.type == "call":
            span.tail = value.entry


def status_of(value: object) -> str:
    """Return how a step has ended that came to `value`, in a word."""
    match value:
        case Failure():
            return "failed"
        case TailCall():
            return "handed_out"
        case Suspension():
            return "suspended"
        case None:
            return "ended"  # it has no value, or has failed and is skipped
        case _:
            return "succeeded"


def cut_at(path: str, timeline: Timeline, entries: list[LedgerEntry], end: float) -> float:
    """Return when a step was cancelled: when its calls were, or what is around it ended.

    Args:
        path: of the step.
        timeline: of its run.
        entries: calls of its run.
        end: of the run.
    """
    ends = [
        entry.ended_at
        for entry in entries
        if entry.ended_at is not None and is_inside(entry.step, path)
    ]
    if ends:
        return max(ends)
    around = [
        span.ended_at
        for span in timeline.spans.values()
        if span.ended_at is not None and is_inside(path, span.path)
    ]
    return min(around, default=end)


def end_of(entry: LedgerEntry) -> float | None:
    """Return when a call ended; one that the Router made ends with its last attempt."""
    attempts = () if entry.outcome is None else entry.outcome.attempts
    if entry.ended_at is None and attempts:
        return attempts[-1].ended_at
    return entry.ended_at


def is_inside(path: str, outer: str) -> bool:
    """Return whether the step at `path` is that at `outer`, or inside it."""
    return path == outer or path.startswith((f"{outer}/", f"{outer}["))
