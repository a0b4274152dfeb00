"""The spans of a graph's execution and its calls.

Source of names and attributes: the reference's attempt evidence (looper-algorithms 15).
"""

from collections.abc import Callable, Iterator
from typing import assert_never

import msgspec

from vsr.gateway.failure_reason import FailureReason
from vsr.routing.execution import AttemptTrace, ExecutedCall, Execution, Reason
from vsr.routing.outcome import Cause, Terminal
from vsr.routing.trace import Trace, TracedAttempt, new_span_id
from vsr.telemetry.spans import AttributeValue, Span, SpanKind

_EXECUTE = "looper.execute"
_ATTEMPT = "looper.attempt"
_ALGORITHM_KEY = "looper.algorithm"
_FAILURE_KEY = "error.type"

OfTry = Callable[[TracedAttempt, bytes, int, float], Span]
"""From a try, its parent's id, its number from 1, and its end to its span."""


class GraphSpans(msgspec.Struct, frozen=True, eq=False):
    """Makes the spans of one request's graph, as many as its trace has room for."""

    execution: Execution
    trace: Trace
    ns: Callable[[float], int]
    """From monotonic seconds to nanoseconds since 1970."""
    of_try: OfTry

    def all(self) -> Iterator[Span]:
        """Yield every span, parents first."""
        own_id = new_span_id(self.trace.rng)
        yield self._of_execution(own_id)
        for call in self.execution.kept_calls():
            traced = call.traced
            call_id = new_span_id(self.trace.rng) if traced is None else traced.span_id
            yield self._of_call(call, call_id, own_id)
            for ordinal, each in enumerate(() if traced is None else traced.attempts, 1):
                ended_at = each.attempt.ended_at
                until = call.ended_at if ended_at is None else ended_at
                yield self.of_try(each, call_id, ordinal, until)

    def _of_execution(self, own_id: bytes) -> Span:
        execution = self.execution
        attributes: dict[str, AttributeValue] = {_ALGORITHM_KEY: execution.trace.algorithm}
        if execution.trace.dropped_attempt_count:
            attributes["looper.dropped_attempt_count"] = execution.trace.dropped_attempt_count
        failure = _why_failed(execution)
        if failure:
            attributes[_FAILURE_KEY] = execution.error or failure
        return Span(
            _EXECUTE,
            own_id,
            self.trace.span_id,
            self.ns(execution.started_at),
            self.ns(execution.ended_at),
            attributes,
            SpanKind.INTERNAL,
            failure,
        )

    def _of_call(self, call: ExecutedCall, own_id: bytes, parent_id: bytes) -> Span:
        evidence = call.evidence
        attributes = _attributes(evidence)
        attributes[_ALGORITHM_KEY] = self.execution.trace.algorithm
        has_failed = evidence.status is not Terminal.SUCCEEDED and evidence.reason != Reason.LOST
        failure = str(evidence.reason or evidence.status) if has_failed else ""
        if has_failed:
            attributes[_FAILURE_KEY] = call.error or failure
        return Span(
            _ATTEMPT,
            own_id,
            parent_id,
            self.ns(call.started_at),
            self.ns(call.ended_at),
            attributes,
            SpanKind.CLIENT,
            failure,
        )


def _why_failed(execution: Execution) -> str:
    match execution.terminal:
        case Terminal.SUCCEEDED:
            return ""
        case Terminal.TIMED_OUT:
            return FailureReason.DEADLINE
        case Terminal.CANCELLED:
            return FailureReason.CANCELLED
        case Terminal.FAILED:
            is_budget = execution.cause is Cause.BUDGET
            return FailureReason.BUDGET if is_budget else FailureReason.STEP_FAILED
        case _:
            assert_never(execution.terminal)


def _attributes(evidence: AttemptTrace) -> dict[str, AttributeValue]:
    """Return what is known of a call; what is not has no attribute."""
    usage = evidence.usage
    known: dict[str, AttributeValue | None] = {
        "ordinal": evidence.ordinal,
        "stage": evidence.stage,
        "role": evidence.role,
        "model": evidence.model,
        "status": str(evidence.status),
        "reason": None if evidence.reason is None else str(evidence.reason),
        "total_latency_ms": evidence.total_latency_ms,
        "first_byte_latency_ms": evidence.first_byte_latency_ms,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "completion_tokens": None if usage is None else usage.completion_tokens,
        "usable": evidence.usable,
        "accepted": evidence.accepted,
        "score": evidence.score,
        "threshold": evidence.threshold,
    }
    return {f"{_ATTEMPT}.{name}": value for name, value in known.items() if value is not None}
