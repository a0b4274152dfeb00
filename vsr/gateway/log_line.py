"""The access log's line of a request that has ended."""

from typing import TYPE_CHECKING

from vsr.routing.outcome import Cause, Outcome
from vsr.routing.plan import UNROUTED
from vsr.telemetry.access_log import AccessLine

if TYPE_CHECKING:
    from vsr.gateway.handler import RequestRun


def access_line(run: "RequestRun", outcome: Outcome) -> AccessLine:
    """Return the line of `run`, which has ended with `outcome`."""
    exchange, request, upstream_s = run.exchange, run.request, run.upstream_s
    head, log, first_byte_s = exchange.head, run.access_log, run.first_byte_s
    label = UNROUTED if run.plan is None else run.plan.label
    text, usage = head.text(), outcome.usage
    # Times are cut to three decimals by hand: `round` costs ten times as much.
    return AccessLine(
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
        listener=run.listener_name,
        recipe=label.recipe,
        decision=label.decision,
        model=label.model,
        config_version=0 if run.generation is None else run.generation.version,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        first_byte_ms=None if first_byte_s is None else int(first_byte_s * 1e6) / 1e3,
    )


def _body_bytes(run: "RequestRun") -> int:
    """Return how much of a body of no declared length was read, as far as it is known."""
    if run.source is not None:
        return run.source.size_bytes
    return 0 if run.request is None else len(run.request.body)


def _flags(run: "RequestRun", outcome: Outcome) -> str:
    if outcome.cause is Cause.CLIENT_GONE:
        return "DC"
    return run.error.flag if run.error is not None else "-"
