"""What the calls of a request's graph came to: one record for logs, spans, metrics and replay.

Source of names, words and bounds: the reference's attempt evidence of multi-model algorithms
(looper-algorithms 15). What it calls an attempt is one call of a graph, with all of its tries.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, Self

import msgspec

from vsr.errors import BudgetExhausted, DeadlineExceeded, VsrError
from vsr.routing.outcome import CANCELLED, Attempt, Cause, Terminal, Usage
from vsr.routing.trace import TracedCall

VERSION: Final = 1
MAX_ATTEMPTS: Final = 100
MAX_ATTEMPTS_BYTES: Final = 64 * 1024
"""Of all attempts as JSON."""
MAX_TEXT_BYTES: Final = 256
_NANO = 1_000_000_000
_SUCCESS = range(100, 400)


class Reason(StrEnum):
    """Why an attempt ended as it did; an attempt that simply succeeded has none."""

    THRESHOLD_MET = "threshold_met"
    THRESHOLD_NOT_MET = "threshold_not_met"
    UNUSABLE_RESPONSE = "unusable_response"
    UPSTREAM_ERROR = "upstream_error"
    INVALID_RESPONSE = "invalid_response"
    REQUEST_CANCELLED = "request_cancelled"
    """The client left, or a drain ended the request."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    BUDGET_EXHAUSTED = "budget_exhausted"
    """Ours, as what follows: the graph's budget ended it."""
    LOST = "lost"
    """Another branch made it needless."""
    INTERNAL_ERROR = "internal_error"


class AttemptTrace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call of a graph; it holds no prompt, answer, address, key or error text.

    What is not known is None and not written; times are whole milliseconds.
    """

    ordinal: int
    """From 1, in the order of the starts."""
    stage: str
    """Id of the step."""
    role: str | None = None
    model: str | None = None
    """None for a verifier."""
    status: Terminal
    reason: Reason | None = None
    usable: bool | None = None
    """Whether the answer says anything."""
    accepted: bool | None = None
    """Whether the graph found it good enough, where it judges."""
    selected: bool = False
    """Whether it is the graph's answer, or a part of it."""
    synthesized: bool = False
    discarded: bool = False
    verifier_type: str | None = None
    verifier_version: str | None = None
    score: float | None = None
    threshold: float | None = None
    reserved_tokens: int | None = None
    """Of the answer, at most."""
    estimated_tokens: int | None = None
    """Of prompt and answer together."""
    usage: Usage | None = None
    estimated_cost: float | None = None
    """What is reserved for its last try, in `currency`, as is the next."""
    actual_cost: float | None = None
    currency: str | None = None
    queue_latency_ms: int | None = None
    """Up to the start of its first try."""
    first_byte_latency_ms: int | None = None
    """Up to the first byte of its last try's answer, which is that of the head."""
    total_latency_ms: int


class ExecutionTrace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a replay keeps of an execution, within bounds."""

    version: int
    trace_id: str | None = None
    algorithm: str
    attempts: tuple[AttemptTrace, ...]
    final_attempt_ordinal: int | None = None
    """Of the last attempt that was selected."""
    attempts_truncated: bool = False
    dropped_attempt_count: int = 0
    dropped_usage: Usage | None = None
    """Of the dropped attempts, as far as it is known."""


class GraphFailure(msgspec.Struct, frozen=True, gc=False):
    """What a graph has failed with; the error itself would keep the frames that it came through."""

    code: str
    flag: str
    """Response flag of the access log."""

    @classmethod
    def of(cls, error: VsrError) -> Self:
        """Return what is told of `error`."""
        return cls(error.code, error.flag)

    @property
    def end(self) -> tuple[Terminal, Cause | None]:
        """Return how the graph, and so its request, has ended."""
        if self.code == DeadlineExceeded.code:
            return Terminal.TIMED_OUT, Cause.DEADLINE
        return Terminal.FAILED, Cause.BUDGET if self.code == BudgetExhausted.code else None


class ExecutedCall(msgspec.Struct, frozen=True):
    """One call of a graph, with what has no place in a replay."""

    evidence: AttemptTrace
    step: str
    """Path of the step, with the number of each round and branch."""
    started_at: float
    """Monotonic seconds, as is `ended_at`."""
    ended_at: float
    cause: Cause | None = None
    status: int | None = None
    """Of the answer; None without one."""
    error: str = ""
    """Code of its failure."""
    tries: tuple[Attempt, ...] = ()
    traced: TracedCall | None = None
    """Its spans' ids, where the request is sampled."""
    nano_cost: int | None = None
    """Billionths of the currency."""


class Execution(msgspec.Struct, frozen=True):
    """One run of a decision's graph, from its first step to the end of its last call."""

    algorithm: str
    """Type of the decision's algorithm, or the name of its graph."""
    terminal: Terminal
    cause: Cause | None
    started_at: float
    """Monotonic seconds, as is `ended_at`."""
    ended_at: float
    calls: tuple[ExecutedCall, ...]
    """All of them, in the order of their starts."""
    usage: Usage | None
    """Of all calls together; None where one of them is unknown."""
    trace: ExecutionTrace
    error: str = ""
    """Code of what the graph failed with."""

    def kept_calls(self) -> Sequence[ExecutedCall]:
        """Return the calls that are within the bounds of `trace`."""
        return self.calls[: len(self.trace.attempts)]


def try_end(attempt: Attempt, call: ExecutedCall) -> tuple[Terminal, Cause | None]:
    """Return how one of a call's tries ended."""
    if attempt.error == DeadlineExceeded.code:
        return Terminal.TIMED_OUT, Cause.DEADLINE
    status = call.evidence.status
    was_cut = status is Terminal.CANCELLED or status is Terminal.TIMED_OUT
    if attempt.error == CANCELLED or (attempt is call.tries[-1] and was_cut and not attempt.error):
        return status, call.cause
    is_good = not attempt.error and attempt.status in _SUCCESS
    return Terminal.SUCCEEDED if is_good else Terminal.FAILED, None


def bounded(
    algorithm: str, attempts: Sequence[AttemptTrace], trace_id: str | None = None
) -> ExecutionTrace:
    """Return the record of attempts: the first ones, as many as its bounds allow."""
    kept = tuple(_within_bounds(attempts))
    dropped = attempts[len(kept) :]
    return ExecutionTrace(
        version=VERSION,
        trace_id=trace_id,
        algorithm=cut(algorithm),
        attempts=kept,
        final_attempt_ordinal=max(
            (each.ordinal for each in attempts if each.selected), default=None
        ),
        attempts_truncated=bool(dropped),
        dropped_attempt_count=len(dropped),
        dropped_usage=known_usage([each.usage for each in dropped]),
    )


def _within_bounds(attempts: Sequence[AttemptTrace]) -> Iterator[AttemptTrace]:
    size_bytes = len(b"[]")
    for each in attempts[:MAX_ATTEMPTS]:
        size_bytes += len(msgspec.json.encode(each)) + len(b",")
        if size_bytes > MAX_ATTEMPTS_BYTES:
            return
        yield each


def known_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the sum of what is known; None where nothing is."""
    known = [each for each in usages if each is not None]
    if not known:
        return None
    prompt = sum(each.prompt_tokens for each in known)
    return Usage(prompt, sum(each.completion_tokens for each in known))


def cut(text: str) -> str:
    """Return a text without space around it, cut to so many bytes between two characters."""
    text = text.strip()
    if len(text) * 4 <= MAX_TEXT_BYTES:
        return text
    return text.encode(errors="ignore")[:MAX_TEXT_BYTES].decode(errors="ignore")


def as_cost(nano: int | None) -> float | None:
    """Return billionths as a whole amount."""
    return None if nano is None else nano / _NANO
