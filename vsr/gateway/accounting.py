"""How a request has ended, and its line in the access log."""

from typing import TYPE_CHECKING

from vsr.errors import DeadlineExceeded
from vsr.routing.execution import ExecutedCall, Execution, cut, try_end
from vsr.routing.outcome import Cause, Outcome, Terminal
from vsr.routing.plan import UNROUTED
from vsr.telemetry.access_log import AccessLine, CallLine, TryLine

if TYPE_CHECKING:
    from vsr.gateway.handler import RequestRun

_FIRST_ERROR = 400


def outcome_of(run: "RequestRun") -> Outcome:
    """Return how a request has ended whose work has."""
    exchange, error, plan = run.exchange, run.error, run.journal.plan
    attempts = tuple(run.journal.attempts)
    status = exchange.status or None
    usage = None if plan is None else plan.session.usage
    if run.served is not None:
        run.served.usage = usage
    if error is None and exchange.has_ended:
        if plan is not None and plan.failure is not None:
            terminal, reason = plan.failure.end
            return Outcome(terminal, reason, status, usage, attempts)
        failed = exchange.status >= _FIRST_ERROR
        terminal = Terminal.FAILED if failed else Terminal.SUCCEEDED
        return Outcome(terminal, None, status, usage, attempts)
    cause = run.scope.cause
    if isinstance(error, DeadlineExceeded):
        return Outcome(Terminal.TIMED_OUT, Cause.DEADLINE, status, usage, attempts)
    if error is not None and (exchange.has_ended or cause is None):
        return Outcome(Terminal.FAILED, None, status, usage, attempts)
    return Outcome(Terminal.CANCELLED, cause, status, usage, attempts)


def access_line(run: "RequestRun", outcome: Outcome) -> AccessLine:
    """Return the line of a request that has been accounted for."""
    exchange, request, upstream_s = run.exchange, run.request, run.upstream_s
    head, log, first_byte_s = exchange.head, run.access_log, run.first_byte_s
    plan = run.journal.plan
    label = UNROUTED if plan is None else plan.label
    text, usage = head.text(), outcome.usage
    # Times are cut to three decimals by hand: `round` costs ten times as much.
    line = AccessLine(
        start_time=log.stamp(run.wall_ns),
        method=text.method,
        path=text.target,
        protocol=exchange.protocol,
        response_code=exchange.status,
        bytes_received=_body_bytes(run) if head.length is None else head.length,
        bytes_sent=exchange.bytes_sent,
        duration_ms=int((exchange.now() - run.started_at) * 1e6) / 1e3,
        upstream_service_time=None if upstream_s is None else int(upstream_s * 1e6) / 1e3,
        x_forwarded_for=text.forwarded_for,
        user_agent=text.user_agent,
        request_id=head.fields.get(b"x-request-id", b"").decode("latin-1")
        if request is None
        else request.id,
        authority=text.authority,
        upstream_host="" if run.served is None else run.served.address,
        response_flags=_flags(run, outcome),
        outcome=outcome.terminal,
        cause=outcome.cause,
        attempts=len(outcome.attempts),
        listener=run.listener.name,
        recipe=label.recipe,
        decision=label.decision,
        model=label.model,
        config_version=0 if run.generation is None else run.generation.version,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        first_byte_ms=None if first_byte_s is None else int(first_byte_s * 1e6) / 1e3,
    )
    execution = None if plan is None else plan.session.execution
    if execution is not None:
        _tell_calls(line, execution)
    return line


def _tell_calls(line: AccessLine, execution: Execution) -> None:
    """Say in a line what the request's graph has done."""
    usage = execution.usage
    line.algorithm = execution.algorithm
    line.calls = [_call(each) for each in execution.kept_calls()]
    line.calls_dropped = execution.trace.dropped_attempt_count
    line.prompt_tokens = None if usage is None else usage.prompt_tokens
    line.completion_tokens = None if usage is None else usage.completion_tokens


def _call(call: ExecutedCall) -> CallLine:
    evidence = call.evidence
    usage = evidence.usage
    return CallLine(
        step=cut(call.step),
        model=evidence.model,
        outcome=evidence.status,
        cause=call.cause,
        status=call.status,
        error=call.error or None,
        duration_ms=evidence.total_latency_ms,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        attempts=[
            TryLine(each.endpoint, *try_end(each, call), each.status, each.error or None)
            for each in call.tries
        ],
    )


def _body_bytes(run: "RequestRun") -> int:
    """Return how much of a body of no declared length was read, as far as it is known."""
    if run.source is not None:
        return run.source.size_bytes
    return 0 if run.request is None else len(run.request.body)


def _flags(run: "RequestRun", outcome: Outcome) -> str:
    if outcome.cause is Cause.CLIENT_GONE:
        return "DC"
    if run.error is not None:
        return run.error.flag
    plan = run.journal.plan
    return "-" if plan is None or plan.failure is None else plan.failure.flag
