"""The record of a graph's calls, and its bounds."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from vsr.errors import BudgetExhausted, DeadlineExceeded, GraphFailed
from vsr.routing.execution import (
    MAX_ATTEMPTS,
    MAX_ATTEMPTS_BYTES,
    MAX_TEXT_BYTES,
    AttemptTrace,
    ExecutedCall,
    ExecutionTrace,
    GraphFailure,
    bounded,
    cut,
    known_usage,
    try_end,
)
from vsr.routing.outcome import Attempt, Cause, Terminal, Usage


def attempt(ordinal: int = 1, **more: object) -> AttemptTrace:
    """Return the evidence of a call that succeeded."""
    known: dict[str, object] = {"stage": "answer", "status": Terminal.SUCCEEDED, **more}
    return msgspec.convert({"ordinal": ordinal, "total_latency_ms": 1, **known}, AttemptTrace)


def test_trace_is_written_with_what_is_known_alone() -> None:
    """Unknown usage is no zero: it is not there."""
    trace = bounded(
        "debate", [attempt(model="m", usage={"prompt_tokens": 0, "completion_tokens": 2})]
    )

    assert msgspec.json.decode(msgspec.json.encode(trace)) == {
        "version": 1,
        "algorithm": "debate",
        "attempts": [
            {
                "ordinal": 1,
                "stage": "answer",
                "model": "m",
                "status": "succeeded",
                "usage": {"prompt_tokens": 0, "completion_tokens": 2},
                "total_latency_ms": 1,
            }
        ],
    }


def test_attempts_beyond_the_first_hundred_are_counted_and_summed() -> None:
    """As far as their usage is known; the last one that was chosen is named all the same."""
    usage = {"prompt_tokens": 2, "completion_tokens": 1}
    attempts = [attempt(number, usage=usage if number % 2 else None) for number in range(1, 106)]
    attempts.append(attempt(106, selected=True))

    trace = bounded("a", attempts)

    assert [each.ordinal for each in trace.attempts] == list(range(1, 101))
    assert (trace.attempts_truncated, trace.dropped_attempt_count) == (True, 6)
    assert trace.dropped_usage == Usage(6, 3)
    assert trace.final_attempt_ordinal == 106


def test_nothing_that_is_known_of_dropped_attempts_is_no_zero() -> None:
    """It is left out."""
    trace = bounded("a", [attempt(number) for number in range(1, 103)])

    assert (trace.dropped_attempt_count, trace.dropped_usage) == (2, None)


_LONG = st.text(max_size=400)


@given(st.lists(st.tuples(_LONG, _LONG), max_size=130))
def test_trace_keeps_its_bounds_whatever_its_texts_are(texts: list[tuple[str, str]]) -> None:
    """It is a prefix, as long as it may be, and nothing is lost of what it counts."""
    attempts = [
        attempt(number, stage=cut(stage), model=cut(model))
        for number, (stage, model) in enumerate(texts, 1)
    ]

    trace = bounded("a", attempts)

    kept = len(trace.attempts)
    assert list(trace.attempts) == attempts[:kept]
    assert kept + trace.dropped_attempt_count == len(attempts)
    assert kept <= MAX_ATTEMPTS
    assert len(msgspec.json.encode(trace.attempts)) <= MAX_ATTEMPTS_BYTES
    if trace.attempts_truncated and kept < MAX_ATTEMPTS:
        assert len(msgspec.json.encode(attempts[: kept + 1])) >= MAX_ATTEMPTS_BYTES
    assert msgspec.json.decode(msgspec.json.encode(trace), type=ExecutionTrace) == trace


def test_long_texts_meet_the_bound_in_bytes() -> None:
    """Where escapes make them longer than a hundred attempts may be."""
    attempts = [attempt(number, stage="\x01" * 256, model="\x02" * 256) for number in range(1, 101)]

    trace = bounded("a", attempts)

    assert 0 < len(trace.attempts) < 100
    assert trace.dropped_attempt_count == 100 - len(trace.attempts)


@given(st.text(max_size=600))
def test_text_is_trimmed_and_cut_between_characters(text: str) -> None:
    """It is a prefix of what was said, in at most so many bytes."""
    short = cut(text)

    assert text.strip().startswith(short)
    assert len(short.encode()) <= MAX_TEXT_BYTES
    assert short == text.strip() or len(short.encode()) > MAX_TEXT_BYTES - 4


def test_text_with_half_a_pair_is_still_a_text() -> None:
    """It cannot be written in UTF-8, so that half goes."""
    assert cut("x" * 70 + "\ud800" + "y") == "x" * 70 + "y"


def test_usage_is_the_sum_of_what_is_known() -> None:
    """And unknown where nothing is."""
    assert known_usage([Usage(1, 2), None, Usage(3, 4)]) == Usage(4, 6)
    assert known_usage([None]) is None
    assert known_usage([]) is None


def _call(status: Terminal, cause: Cause | None, *tries: Attempt) -> ExecutedCall:
    return ExecutedCall(attempt(status=status), "answer", 0.0, 1.0, cause, tries=tries)


def test_try_has_the_end_of_its_call_where_it_was_cut_off() -> None:
    """One before it has its own."""
    failed = Attempt("m", "e", "a:1", 0.0, status=503)
    late = Attempt("m", "e", "a:1", 0.0, error="deadline_exceeded")
    reset = Attempt("m", "e", "a:1", 0.0, status=200, error="upstream_reset")
    cut_off = Attempt("m", "e", "a:1", 0.0, error="cancelled")
    half_read = Attempt("m", "e", "a:1", 0.0, status=200)
    fine = Attempt("m", "e", "a:1", 0.0, status=200)
    gone = _call(Terminal.CANCELLED, Cause.CLIENT_GONE, failed, late, reset, cut_off)

    assert [try_end(each, gone) for each in gone.tries] == [
        (Terminal.FAILED, None),
        (Terminal.TIMED_OUT, Cause.DEADLINE),
        (Terminal.FAILED, None),
        (Terminal.CANCELLED, Cause.CLIENT_GONE),
    ]
    lost = _call(Terminal.CANCELLED, Cause.LOST, half_read)
    assert try_end(half_read, lost) == (Terminal.CANCELLED, Cause.LOST)
    ended = _call(Terminal.TIMED_OUT, Cause.DEADLINE, cut_off)
    assert try_end(cut_off, ended) == (Terminal.TIMED_OUT, Cause.DEADLINE)
    assert try_end(fine, _call(Terminal.SUCCEEDED, None, fine)) == (Terminal.SUCCEEDED, None)
    # An answer that nobody could read is a failure of the call, not of the try.
    assert try_end(fine, _call(Terminal.FAILED, None, fine)) == (Terminal.SUCCEEDED, None)


def test_failure_of_a_graph_is_an_end_of_its_request() -> None:
    """A deadline and a budget are causes."""
    ends = [
        GraphFailure.of(each).end
        for each in (DeadlineExceeded("graph"), BudgetExhausted(), GraphFailed("no"))
    ]

    assert ends == [
        (Terminal.TIMED_OUT, Cause.DEADLINE),
        (Terminal.FAILED, Cause.BUDGET),
        (Terminal.FAILED, None),
    ]
    assert GraphFailure.of(DeadlineExceeded("graph")).flag == "UT"
