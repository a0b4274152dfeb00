"""What a run of a graph was: steps, calls, attempts, answer; times are seconds since its start."""

from collections.abc import Mapping, Sequence

import msgspec

from vsr.routing.outcome import Cause, Terminal


class AttemptRecord(msgspec.Struct, frozen=True):
    """One try of a call at one endpoint."""

    endpoint: str
    started_s: float
    ended_s: float
    status: int | None
    error: str
    """Code of the failure; empty while there is none."""
    stage: str
    """Which limit passed, where the failure is a timeout."""

    @property
    def end(self) -> str:
        """Return how it ended, in a word."""
        if self.error:
            return f"{self.error} ({self.stage})" if self.stage else self.error
        return "cut off" if self.status is None else str(self.status)


class Reserved(msgspec.Struct, frozen=True):
    """What one attempt might spend at most; None: no limit asked."""

    tokens: int | None
    nano_usd: int | None


class CallRecord(msgspec.Struct, frozen=True):
    """One entry of the ledger."""

    ordinal: int
    step: str
    model: str
    started_s: float
    ended_s: float
    terminal: Terminal | None
    """None: it had not ended when the client had its answer."""
    cause: Cause | None
    status: int | None
    attempts: tuple[AttemptRecord, ...]
    reserved: tuple[Reserved, ...]
    """For each attempt."""
    prompt_tokens: int | None
    """None: the backend did not say."""
    completion_tokens: int | None
    nano_usd: int | None
    """None: the model has no price, or the usage is unknown and nothing was reserved."""
    is_tail: bool = False
    """Whether the client got its answer as it came."""
    is_refused: bool = False
    """Whether the budget refused one attempt more."""

    @property
    def was_cancelled(self) -> bool:
        """Return whether somebody ended it before its time."""
        return self.terminal is Terminal.CANCELLED

    @property
    def end(self) -> str:
        """Return how it ended, in few words."""
        match self.terminal:
            case Terminal.SUCCEEDED:
                return "ok"
            case Terminal.CANCELLED:
                return f"cancelled: {self.cause}"
            case Terminal.TIMED_OUT:
                return "timed out"
            case None:
                return "still open"
        last = self.attempts[-1] if self.attempts else None
        return "failed" if last is None else f"failed: {last.end}"


class StepRecord(msgspec.Struct, frozen=True):
    """One step that began."""

    path: str
    type: str
    started_s: float
    ended_s: float
    failure: str | None = None
    """What the step says of its failure."""
    is_cut: bool = False
    """Whether it was cancelled."""


class AnswerRecord(msgspec.Struct, frozen=True):
    """What the client got."""

    status: int | None
    """None: nothing."""
    headers: tuple[tuple[str, str], ...]
    text: str
    """Of the answer's first choice, or of its error."""
    body: str
    tool_calls: tuple[tuple[str, str], ...]
    """Name and arguments."""
    first_byte_s: float | None
    ended_s: float
    end: str
    """`whole`, `cut`, `left` (the client did), `never`."""


class Ceilings(msgspec.Struct, frozen=True):
    """The limits of the run; None is none."""

    deadline_s: float | None = None
    max_hops: int | None = None
    max_tokens: int | None = None
    max_nano_usd: int | None = None


class Totals(msgspec.Struct, frozen=True):
    """What the run spent."""

    attempts: int = 0
    """That were reserved for, as `max_hops` counts them."""
    reserved_tokens: int | None = None
    tokens: int = 0
    reserved_nano_usd: int | None = None
    nano_usd: int | None = None
    """None: no model that was called has a price."""
    unknown_usage: int = 0
    """Calls whose backends did not say what they used, and that may have used something."""


class PolicyNote(msgspec.Struct, frozen=True):
    """What a policy of one model did beside retries."""

    model: str
    did: str
    """`refused` or `ejected`."""
    what: str
    """The limit that refused, or the endpoint that was ejected, with the reason."""
    count: int


class Record(msgspec.Struct, frozen=True):
    """One run."""

    graph: str
    seed: int
    answer: AnswerRecord
    steps: tuple[StepRecord, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    ceilings: Ceilings = Ceilings()
    totals: Totals = Totals()
    params: Mapping[str, object] = msgspec.field(default_factory=dict)
    decision: str | None = None
    assumed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Kinds of things, and the names of what was made up."""
    cut_delays_s: tuple[float, ...] = ()
    """Of the calls that were cancelled: from the reason to the closed connection at the backend."""
    open_calls: int = 0
    """That backends still worked on in the end; there should be none."""
    policies: tuple[PolicyNote, ...] = ()
    is_dry: bool = True
    """Whether nothing of it was real."""

    @property
    def latency_s(self) -> float:
        """Return how long the client waited for the end of its answer."""
        return self.answer.ended_s

    @property
    def has_succeeded(self) -> bool:
        """Return whether the client got a whole answer with status 200."""
        return self.answer.status == 200 and self.answer.end == "whole"  # noqa: PLR2004  # OK

    @property
    def remaining_s(self) -> float | None:
        """Return how much of the deadline was left; None where there is none."""
        deadline = self.ceilings.deadline_s
        return None if deadline is None else max(deadline - self.latency_s, 0.0)

    def models_called(self) -> dict[str, int]:
        """Return the number of calls by model, in the order of the first ones."""
        counts: dict[str, int] = {}
        for call in self.calls:
            counts[call.model] = counts.get(call.model, 0) + 1
        return counts


def in_tree_order(steps: Sequence[StepRecord]) -> list[StepRecord]:
    """Return steps with what is inside of each behind it, branch by branch, round by round.

    Args:
        steps: in the order of their starts.
    """
    ranks = {step.path: rank for rank, step in enumerate(steps)}

    def place(step: StepRecord) -> tuple[int, ...]:
        found: list[int] = []
        parts = step.path.split("/")
        for depth, part in enumerate(parts, 1):
            name, _, number = part.partition("[")
            found.append(ranks.get("/".join((*parts[: depth - 1], name)), 0))
            found.append(int(number[:-1]) if number[:-1].isdecimal() else 0)
        return tuple(found)

    return sorted(steps, key=place)


class Link(msgspec.Struct, frozen=True):
    """One part of the critical path."""

    started_s: float
    ended_s: float
    call: CallRecord | None
    """None: time in which no call ran that the answer waited for."""


_CLOSE_S = 1e-6


def critical_path(record: Record) -> tuple[Link, ...]:
    """Return the chain of calls that the end of the run waited for, in order of time.

    From the end back: the call that ended last before, then the one that ended last before that
    one began. A call that lost is never waited for.
    """
    waited = [call for call in record.calls if not call.was_cancelled]
    links: list[Link] = []
    at = record.latency_s
    while at > _CLOSE_S:
        before = [
            call
            for call in waited
            if call.ended_s <= at + _CLOSE_S and call.started_s < at - _CLOSE_S
        ]
        if not before:
            links.append(Link(0.0, at, None))
            break
        call = max(before, key=lambda each: (each.ended_s, each.ordinal))
        if call.ended_s < at - _CLOSE_S:
            links.append(Link(call.ended_s, at, None))
        links.append(Link(call.started_s, call.ended_s, call))
        at = call.started_s
    return tuple(reversed(links))
