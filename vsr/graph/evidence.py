"""Makes the record of what a graph's calls came to out of its ledger; pure."""

from collections.abc import Iterator, Sequence

import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import (
    AnswerNotTranslatable,
    DeadlineExceeded,
    GraphFailed,
    UpstreamAnswerTooLarge,
    UpstreamProtocolError,
    VsrError,
)
from vsr.graph.ledger import Ledger, LedgerEntry, Verdict, VerifierCall
from vsr.graph.remom_round import is_usable
from vsr.routing.budget import Reservation
from vsr.routing.execution import (
    AttemptTrace,
    ExecutedCall,
    Execution,
    Reason,
    as_cost,
    bounded,
    cut,
)
from vsr.routing.outcome import Cause, Outcome, Terminal
from vsr.routing.trace import TracedCall

_UNREADABLE = frozenset(
    {
        AnswerNotTranslatable.code,
        GraphFailed.code,
        UpstreamAnswerTooLarge.code,
        UpstreamProtocolError.code,
    }
)
"""Failures of a call that has got an answer, or a part of one."""
_REASONS = {
    Cause.CLIENT_GONE: Reason.REQUEST_CANCELLED,
    Cause.DRAIN: Reason.REQUEST_CANCELLED,
    Cause.DEADLINE: Reason.DEADLINE_EXCEEDED,
    Cause.BUDGET: Reason.BUDGET_EXHAUSTED,
    Cause.LOST: Reason.LOST,
}


class Ended(msgspec.Struct, frozen=True):
    """How a graph ended, as who ran it knows; times are monotonic seconds."""

    algorithm: str
    terminal: Terminal
    cause: Cause | None
    started_at: float
    ended_at: float
    answer: object = None
    """What it answered with."""
    error: str = ""
    """Code of what it failed with."""
    trace_id: str | None = None


def execution_of(ledger: Ledger, ended: Ended) -> Execution:
    """Return what the calls in `ledger` came to.

    A call that has not ended counts as ended with the graph.
    """
    chosen = _chosen(ledger, ended.answer)
    calls = tuple(
        _model_call(each, ordinal, ended, is_chosen=each.ordinal in chosen)
        if isinstance(each, LedgerEntry)
        else _verifier_call(each, ordinal, ended)
        for ordinal, each in enumerate(_in_order(ledger), 1)
    )
    return Execution(
        ended.algorithm,
        ended.terminal,
        ended.cause,
        ended.started_at,
        ended.ended_at,
        calls,
        ledger.usage,
        bounded(ended.algorithm, [call.evidence for call in calls], ended.trace_id),
        ended.error,
    )


def _in_order(ledger: Ledger) -> Iterator[LedgerEntry | VerifierCall]:
    """Yield calls to models and verifiers in the order of their starts."""
    waiting = list(reversed(ledger.verifier_calls or ()))
    for entry in ledger.entries:
        while waiting and waiting[-1].behind < entry.ordinal:
            yield waiting.pop()
        yield entry
    yield from reversed(waiting)


def _chosen(ledger: Ledger, answer: object) -> frozenset[int]:
    """Return the ordinals of the calls whose replies are the answer, or parts of it."""
    parts = answer if isinstance(answer, tuple) else (answer,)
    bodies = {id(each.body) for each in parts if isinstance(each, Reply) and each.body}
    return frozenset(
        entry.ordinal
        for entry in ledger.entries
        if entry.reply is not None and entry.reply.body and id(entry.reply.body) in bodies
    )


def _model_call(entry: LedgerEntry, ordinal: int, ended: Ended, *, is_chosen: bool) -> ExecutedCall:
    outcome = entry.outcome or Outcome(ended.terminal, ended.cause)
    tries, error = outcome.attempts, entry.error or _error_of(outcome)
    last = tries[-1] if tries else None
    last_ended_at = None if last is None else last.ended_at
    ended_at = _first_known(entry.ended_at, last_ended_at, ended.ended_at)
    is_tail = entry.ended_at is None and outcome.terminal is Terminal.SUCCEEDED
    usable = None if entry.reply is None else _says_something(entry.reply)
    is_selected = is_chosen or is_tail
    price, reservation = entry.price, entry.reservation
    usage, verdict = entry.usage, entry.verdict
    accepted = None if verdict is None else verdict.is_accepted
    nano = None if price is None or usage is None else price.of(usage)
    first_byte_at = None if last is None else last.head_at
    evidence = AttemptTrace(
        ordinal=ordinal,
        stage=stage_of(entry.step),
        model=cut(entry.model),
        status=outcome.terminal,
        reason=_reason(outcome, error, usable=usable) or _reason_of_verdict(verdict),
        usable=usable,
        accepted=accepted,
        selected=is_selected,
        discarded=(usable is False or accepted is False) and not is_selected,
        score=None if verdict is None else verdict.score,
        threshold=None if verdict is None else verdict.threshold,
        reserved_tokens=_output_tokens(reservation),
        estimated_tokens=reservation.tokens,
        usage=usage,
        estimated_cost=as_cost(reservation.cost_nano_usd),
        actual_cost=as_cost(nano),
        currency=None if price is None else price.currency,
        queue_latency_ms=_ms(entry.started_at, tries[0].started_at) if tries else None,
        first_byte_latency_ms=_ms(entry.started_at, first_byte_at),
        total_latency_ms=_ms(entry.started_at, ended_at) or 0,
    )
    return ExecutedCall(
        evidence,
        entry.step,
        entry.started_at,
        ended_at,
        outcome.cause,
        outcome.status if last is None or outcome.status is not None else last.status,
        error,
        tries,
        _traced(entry),
        nano,
    )


def _verifier_call(call: VerifierCall, ordinal: int, ended: Ended) -> ExecutedCall:
    terminal, cause = call.terminal or ended.terminal, call.cause
    if call.terminal is None:
        cause = ended.cause
    ended_at = _first_known(call.ended_at, ended.ended_at)
    evidence = AttemptTrace(
        ordinal=ordinal,
        stage=stage_of(call.step),
        status=terminal,
        reason=_reason(Outcome(terminal, cause), call.error, usable=None),
        verifier_type=call.kind,
        total_latency_ms=_ms(call.started_at, ended_at) or 0,
    )
    return ExecutedCall(evidence, call.step, call.started_at, ended_at, cause, None, call.error)


def stage_of(path: str) -> str:
    """Return the id of the step at `path`, without the number of a round or branch."""
    return cut(path.rpartition("/")[2].partition("[")[0])


def _says_something(reply: Reply) -> bool:
    return reply.has_tool_calls or is_usable(reply)


def _reason(outcome: Outcome, error: str, *, usable: bool | None) -> Reason | None:
    if outcome.cause is not None:
        return _REASONS[outcome.cause]
    if outcome.terminal is Terminal.SUCCEEDED:
        return Reason.UNUSABLE_RESPONSE if usable is False else None
    if error == VsrError.code:
        return Reason.INTERNAL_ERROR
    return Reason.INVALID_RESPONSE if error in _UNREADABLE else Reason.UPSTREAM_ERROR


def _reason_of_verdict(verdict: Verdict | None) -> Reason | None:
    if verdict is None or verdict.threshold is None:
        return None
    return Reason.THRESHOLD_MET if verdict.is_accepted else Reason.THRESHOLD_NOT_MET


def _error_of(outcome: Outcome) -> str:
    """Return the code of a failure that the call itself does not tell, as of one cut off."""
    if outcome.terminal is Terminal.TIMED_OUT:
        return DeadlineExceeded.code
    has_failed = outcome.terminal is Terminal.FAILED and bool(outcome.attempts)
    return outcome.attempts[-1].error if has_failed else ""


def _output_tokens(reservation: Reservation) -> int | None:
    return None if reservation.tokens is None else reservation.tokens - reservation.prompt_tokens


def _traced(entry: LedgerEntry) -> TracedCall | None:
    """Return the ids of its spans; it is sent once at most, and last on its part of the trace."""
    calls: Sequence[TracedCall] = () if entry.trace is None else entry.trace.calls
    return calls[-1] if calls else None


def _first_known(*times: float | None) -> float:
    """Return the first time that there is; the last one always is."""
    return next(each for each in times if each is not None)


def _ms(start: float, end: float | None) -> int | None:
    return None if end is None else max(round((end - start) * 1000), 0)
