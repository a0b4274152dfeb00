"""Drives a case through an engine as standalone mode does, and records it."""

from vsr.errors import RoutingFailed, VsrError
from vsr.headers import Headers
from vsr.routing.effect import (
    UNCHANGED,
    Effect,
    ImmediateResponse,
    apply_body,
    apply_headers,
    render_immediate,
)
from vsr.routing.engine import Engine
from vsr.routing.outcome import Outcome, Terminal
from vsr.routing.parity.case import AUTHORITY, SCHEME, Case
from vsr.routing.parity.record import ClientResponse, Phase, Record, UpstreamMessage
from vsr.routing.parity.tap import Tap
from vsr.routing.plan import Call, Plan
from vsr.routing.ports import Journal, Tasks

_LENGTH = b"content-length"


async def record_in_process(engine: Engine, case: Case, tasks: Tasks) -> Record:
    """Return what `case` comes to; a failure of routing is part of the record.

    Args:
        engine: opens its sessions by its own method `open`.
        case: its canned response stands for the backend.
        tasks: where the request's graph may start tasks.
    """
    record = Record(case.name)
    tap = Tap(engine, record)
    try:
        await _serve(tap, case, tasks)
    except VsrError as error:
        record.error = error.code
    if tap.session is not None:
        record.evidence = tap.session.evidence()
    return record


async def _serve(tap: Tap, case: Case, tasks: Tasks) -> None:
    journal, terminal = Journal(), Terminal.FAILED
    try:
        plan = await tap.engine.plan(case.request(case.body), tasks, journal)
        if plan.immediate is not None:
            tap.record.response = _immediate(plan.immediate)
        elif plan.call is not None:
            tap.record.route = plan.call.route_key
            tap.record.upstream = _sent(plan.call)
            tap.record.response = await _respond(tap, plan, case)
        terminal = Terminal.SUCCEEDED
    finally:
        if journal.plan is not None:
            journal.plan.finish(Outcome(terminal))


def _immediate(answer: ImmediateResponse) -> ClientResponse:
    status, lines = render_immediate(answer)
    return ClientResponse(status, lines, [answer.body])


def _sent(call: Call) -> UpstreamMessage:
    lines = [
        (b":method", call.method),
        (b":authority", AUTHORITY),
        (b":scheme", SCHEME),
        (b":path", call.target),
        *call.headers.lines,
    ]
    # A call leaves its framing to the upstream layer, which counts the body it sends.
    if call.body and _LENGTH not in call.headers:
        lines.append((_LENGTH, b"%d" % len(call.body)))
    return UpstreamMessage(lines, call.body)


async def _respond(tap: Tap, plan: Plan, case: Case) -> ClientResponse | None:
    canned = case.canned
    if canned is None:
        return None
    headers = canned.headers()
    tap.engine.respond(plan, canned.status, headers)
    noted = tap.record.effects(Phase.RESPONSE_HEADERS)
    effect = noted[-1].effect if noted else UNCHANGED
    if effect.immediate is not None:
        return _immediate(effect.immediate)
    if not case.is_answered_with_body:
        return _answer(canned.status, headers, [b""])
    if effect.stream_response:
        chunks = await _streamed(plan, canned.chunks)
        return _answer(canned.status, headers, chunks, is_streamed=True)
    last = UNCHANGED
    if plan.session.wants_response_body:
        last = await plan.session.response_body(canned.body, is_last=True)
    if last.immediate is not None:
        return _immediate(last.immediate)
    apply_headers(headers, last)
    return _answer(canned.status, headers, [apply_body(headers, canned.body, last)])


async def _streamed(plan: Plan, chunks: tuple[bytes, ...]) -> list[bytes]:
    """Return what is delivered; header changes come too late in a stream and do not count."""
    delivered: list[bytes] = []
    for index, chunk in enumerate((*chunks, b"")):
        effect = Effect()
        if plan.session.wants_response_body:
            effect = await plan.session.response_body(chunk, is_last=index == len(chunks))
        if effect.immediate is not None:
            raise RoutingFailed
        delivered.append(chunk if effect.body is None else effect.body)
    return [chunk for chunk in delivered if chunk]


def _answer(
    status: int, headers: Headers, chunks: list[bytes], *, is_streamed: bool = False
) -> ClientResponse:
    changed = headers.get(b":status")
    lines = [line for line in headers.lines if line[0][:1] != b":"]
    return ClientResponse(int(changed) if changed else status, lines, chunks, is_streamed)
