"""The spans of a request that has ended, made of its journal and its trace.

Source of names and attributes: the reference's standalone mode, spans, and its tracing keys.
"""

from collections.abc import Iterator

import msgspec

from vsr.errors import DeadlineExceeded
from vsr.gateway.failure_reason import FailureReason
from vsr.gateway.handler import RequestRun
from vsr.routing.execution import Execution
from vsr.routing.outcome import Outcome, Terminal
from vsr.routing.trace import Trace, TracedAttempt, TracedCall
from vsr.telemetry.spans import AttributeValue, Span, SpanKind, SpanTree
from vsr.upstream.outcomes import failure_of

_REQUEST = "semantic_router.request"
_CALL = "semantic_router.upstream.request"
_ATTEMPT = "semantic_router.upstream.attempt"
_STATUS_KEY = "http.status_code"
_CLUSTER_KEY = "upstream.cluster"
_MAX_TEXT = 256
"""What comes from the client is cut there. Source: the reference's labels of evidence."""
_FIRST_CLIENT_ERROR = 400
_FIRST_SERVER_ERROR = 500


def spans_of(run: RequestRun, trace: Trace) -> SpanTree:
    """Return the spans of a sampled request that has just finished."""
    plan = run.plan
    execution = None if plan is None else plan.session.execution
    spans = _Spans(run, trace, run.exchange.now(), _outcome(run), execution)
    return SpanTree(trace.trace_id, trace.state, list(spans.all()))


class _Spans(msgspec.Struct, frozen=True, eq=False):
    run: RequestRun
    trace: Trace
    ended_at: float
    """Monotonic seconds, as all that end in `_at`."""
    outcome: Outcome
    execution: Execution | None = None
    """Of the request's graph."""

    def all(self) -> Iterator[Span]:
        """Yield every span, parents first."""
        yield self._of_request()
        if self.execution is not None:
            from vsr.gateway.graph_spans import GraphSpans  # noqa: PLC0415  # of graphs alone

            # Every call is the graph's, also the one that the Router has made for it.
            yield from GraphSpans(self.execution, self.trace, self._ns, self._of_attempt).all()
            return
        calls = self.trace.calls
        for at, call in enumerate(calls):
            is_last = at == len(calls) - 1
            # A call that got no attempt has ended when the next one began.
            until = self.ended_at if is_last else calls[at + 1].started_at
            ends = [each.attempt.ended_at or until for each in call.attempts]
            yield self._of_call(call, max(ends, default=until), is_last=is_last)
            for index, traced in enumerate(call.attempts):
                yield self._of_attempt(traced, call.span_id, index + 1, ends[index])

    def _of_request(self) -> Span:
        run, trace = self.run, self.trace
        return Span(
            _REQUEST,
            trace.span_id,
            trace.parent_id,
            run.wall_ns,
            self._ns(self.ended_at),
            _request_attributes(run, self.outcome),
            SpanKind.SERVER,
            self._why_request_failed(),
        )

    def _of_call(self, call: TracedCall, ended_at: float, *, is_last: bool) -> Span:
        attributes: dict[str, AttributeValue] = {
            _CLUSTER_KEY: call.cluster,
            "upstream.attempts": len(call.attempts),
        }
        if call.attempts and (status := call.attempts[-1].attempt.status) is not None:
            attributes[_STATUS_KEY] = status
        return Span(
            _CALL,
            call.span_id,
            self.trace.span_id,
            self._ns(call.started_at),
            self._ns(ended_at),
            attributes,
            failure=self._why_call_failed(call, is_last=is_last),
        )

    def _of_attempt(
        self, traced: TracedAttempt, parent_id: bytes, ordinal: int, ended_at: float
    ) -> Span:
        attempt, status = traced.attempt, traced.attempt.status
        has_failed = bool(attempt.error) or status is None
        outcome = failure_of(attempt).label if has_failed else f"{(status or 0) // 100}xx"
        attributes: dict[str, AttributeValue] = {
            _CLUSTER_KEY: attempt.cluster,
            "upstream.endpoint": attempt.endpoint,
            "endpoint.address": attempt.address,
            "upstream.attempt": ordinal,
            "upstream.outcome": outcome,
        }
        if status is not None:
            attributes[_STATUS_KEY] = status
        failure = outcome if has_failed else ""
        if not has_failed and (status or 0) >= _FIRST_CLIENT_ERROR:
            failure = FailureReason.STATUS
        return Span(
            _ATTEMPT,
            traced.span_id,
            parent_id,
            self._ns(attempt.started_at),
            self._ns(ended_at),
            attributes,
            failure=failure,
        )

    def _why_request_failed(self) -> str:
        """Return the reason; an error that is the client's own is no failure of ours.

        Source: OpenTelemetry semantic conventions, HTTP spans, status of a server's span.
        """
        if (ended_early := _why_ended_early(self.outcome)) is not None:
            return ended_early
        run = self.run
        is_broken = run.error is not None and not run.exchange.has_ended
        if not is_broken and run.exchange.status < _FIRST_SERVER_ERROR:
            return ""
        has_calls = bool(self.trace.calls if self.execution is None else self.execution.calls)
        return FailureReason.CALL_FAILED if has_calls else FailureReason.STEP_FAILED

    def _why_call_failed(self, call: TracedCall, *, is_last: bool) -> str:
        if is_last and (ended_early := _why_ended_early(self.outcome)) is not None:
            return ended_early
        if not call.attempts:
            return FailureReason.CALL_FAILED
        attempt = call.attempts[-1].attempt
        if attempt.error == DeadlineExceeded.code:
            return FailureReason.DEADLINE
        is_good = not attempt.error and (attempt.status or 0) in range(1, _FIRST_CLIENT_ERROR)
        return "" if is_good else FailureReason.CALL_FAILED

    def _ns(self, at: float) -> int:
        """Return monotonic seconds as nanoseconds since 1970."""
        return self.run.wall_ns + int((at - self.run.started_at) * 1e9)


def _request_attributes(run: RequestRun, outcome: Outcome) -> dict[str, AttributeValue]:
    head, plan, request = run.exchange.head, run.plan, run.request
    attributes: dict[str, AttributeValue] = {
        "http.method": _cut(head.method),
        "http.path": _cut(head.target.partition(b"?")[0]),
        "listener.name": run.listener.name,
        "request.outcome": str(outcome.terminal),
        "request.attempts": len(run.journal.attempts),
    }
    if request is not None:
        attributes["request.id"] = request.id[:_MAX_TEXT]
    if run.exchange.status:
        attributes[_STATUS_KEY] = run.exchange.status
    if outcome.cause is not None:
        attributes["request.cause"] = str(outcome.cause)
    if run.generation is not None:
        attributes["config.version"] = run.generation.version
    label = None if plan is None else plan.label
    if label is not None:
        named = {
            "model.name": label.model,
            "decision.name": label.decision,
            "recipe.name": label.recipe,
        }
        attributes.update({key: name for key, name in named.items() if name})
    execution = None if plan is None else plan.session.execution
    usage = outcome.usage if execution is None else execution.usage
    if usage is not None:
        attributes["model.token_count_prompt"] = usage.prompt_tokens
        attributes["model.token_count_completion"] = usage.completion_tokens
    return attributes


def _cut(text: bytes) -> str:
    return text[:_MAX_TEXT].decode("latin-1")


def _why_ended_early(outcome: Outcome) -> FailureReason | None:
    if outcome.terminal is Terminal.TIMED_OUT:
        return FailureReason.DEADLINE
    return FailureReason.CANCELLED if outcome.terminal is Terminal.CANCELLED else None


def _outcome(run: RequestRun) -> Outcome:
    """Return how a request ended, also one that ended before it had a plan."""
    found = None if run.plan is None else run.plan.settlement.outcome
    if found is not None:
        return found
    if run.error is None:
        return Outcome(Terminal.CANCELLED, run.scope.cause)
    is_late = isinstance(run.error, DeadlineExceeded)
    return Outcome(Terminal.TIMED_OUT if is_late else Terminal.FAILED)
