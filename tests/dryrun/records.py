"""Records of runs that tests write down."""

import msgspec

from vsr.dryrun.record import AnswerRecord, AttemptRecord, CallRecord, Record, Reserved, Totals
from vsr.routing.outcome import Cause, Terminal

ANSWER = AnswerRecord(200, (), "Yes.", "{}", (), 3.0, 3.0, "whole")


def call(
    ordinal: int, model: str, span: tuple[float, float], *, cause: Cause | None = None
) -> CallRecord:
    """Return a call of one attempt that succeeded, or that was cancelled for `cause`."""
    start, end = span
    attempt = AttemptRecord("backend", start, end, None if cause else 200, "", "")
    return CallRecord(
        ordinal=ordinal,
        step=f"panel[{ordinal - 1}]/answer",
        model=model,
        started_s=start,
        ended_s=end,
        terminal=Terminal.CANCELLED if cause else Terminal.SUCCEEDED,
        cause=cause,
        status=None if cause else 200,
        attempts=(attempt,),
        reserved=(Reserved(None, None),),
        prompt_tokens=None if cause else 10,
        completion_tokens=None if cause else 5,
        nano_usd=None if cause else 1_000_000,
    )


def record(*calls: CallRecord, answer: AnswerRecord = ANSWER) -> Record:
    """Return a run of these calls."""
    totals = Totals(attempts=len(calls), tokens=15 * len(calls), nano_usd=1_000_000 * len(calls))
    return Record("test", 0, answer, calls=calls, totals=totals)


def answered(*, status: int | None = 200, end: str = "whole", ended_s: float = 3.0) -> AnswerRecord:
    """Return the answer with changes."""
    return msgspec.structs.replace(ANSWER, status=status, end=end, ended_s=ended_s)
