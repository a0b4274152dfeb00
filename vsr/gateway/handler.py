"""Serves one request, from its head to its end in the log."""

import logging
import time
from collections.abc import Coroutine
from contextlib import suppress
from math import inf

import attrs
import trio

from vsr.codec.usage import read_usage
from vsr.deadline import Deadline
from vsr.errors import DeadlineExceeded, NotAdmitted, NotServing, RoutingFailed, VsrError
from vsr.gateway.auth import check_api_key
from vsr.gateway.connection import H1Exchange
from vsr.gateway.ingress import CLIENT_KEYS, ingress_headers
from vsr.gateway.probes import answer_probe
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.writer import render_error
from vsr.network.port import NetworkError
from vsr.resources.listener import Listener
from vsr.routing.effect import render_immediate
from vsr.routing.evidence import Evidence
from vsr.routing.generation import ActiveGeneration, Generation
from vsr.routing.outcome import Cause, Outcome, Terminal, Usage
from vsr.routing.plan import Call, Plan
from vsr.routing.ports import Admission, AdmitAll, Journal, UpstreamResponse
from vsr.routing.request import Request
from vsr.telemetry.access_log import AccessLine, AccessLog

COLLECT_BYTES = 262_144
"""Responses of a declared length up to this are sent whole, so that a backend that breaks off can
still be answered for; longer ones and those of no declared length pass through as they come."""
_FIRST_ERROR = 400
_ERROR_WRITE_S = 10.0
"""A client that does not even read an error is cut off: no deadline covers that write."""
_NO_EVIDENCE = Evidence()
_log = logging.getLogger("vsr.gateway")


@attrs.define(eq=False)
class Gateway:
    """What all listeners' requests share."""

    active: ActiveGeneration
    access_log: AccessLog
    admission: Admission = attrs.field(factory=AdmitAll)
    is_draining: bool = False

    def handler_for(self, listener: Listener) -> "ListenerHandler":
        """Return the handler of one listener's connections."""
        return ListenerHandler(self, listener.name)


class ListenerHandler:
    """Handles the requests of one listener."""

    def __init__(self, gateway: Gateway, listener_name: str) -> None:
        self.gateway = gateway
        self.listener_name = listener_name

    def __call__(self, exchange: H1Exchange) -> Coroutine[None, None, None]:
        """Answer one request, whatever happens; only cancellation passes.

        Hands back the coroutine that does it: each frame between the task and the socket costs at
        every wake-up.
        """
        gateway = self.gateway
        generation = gateway.active.current
        is_ready = generation is not None and not gateway.is_draining
        probe = answer_probe(exchange.head, is_ready=is_ready)
        if probe is not None:
            return exchange.respond(*probe)
        if generation is not None:
            generation.lease()
        return RequestRun(gateway, generation, self.listener_name, exchange).serve()

    def note_refusal(self, status: int) -> None:
        """Log a request whose head could not even be read."""
        log = self.gateway.access_log
        log.add(
            AccessLine(
                start_time=log.stamp(time.time_ns()),
                method="",
                path="",
                protocol="HTTP/1.1",
                response_code=status,
                response_flags="DPE",
                outcome=Terminal.FAILED,
                listener=self.listener_name,
            )
        )


class RequestRun:
    """One request under way; `serve` answers it and `finish` accounts for it, exactly once."""

    # Defaults stand on the class: a run is made per request, and most stay as they are.
    request: Request | None = None
    plan: Plan | None = None
    error: VsrError | None = None
    usage: Usage | None = None
    answered_at = 0.0
    upstream_s: float | None = None
    first_byte_s: float | None = None
    is_admitted = False

    def __init__(
        self,
        gateway: Gateway,
        generation: Generation | None,
        listener_name: str,
        exchange: H1Exchange,
    ) -> None:
        self.gateway = gateway
        self.generation = generation
        """Leased by the caller, given back by `finish`; None while nothing is active."""
        self.listener_name = listener_name
        self.exchange = exchange
        self.scope = RequestScope(exchange.life)
        self.journal = Journal()
        self.now = exchange.now
        self.started_at = self.now()
        self.wall_ns = time.time_ns()

    async def serve(self) -> None:
        """Answer the request; its work runs in a nursery of its own."""
        exchange, scope = self.exchange, self.scope
        exchange.bind(scope)
        try:
            error: VsrError | None = None
            async with trio.open_nursery() as tasks:
                scope.tasks = tasks
                try:
                    await self._answer()
                except VsrError as failure:
                    error = failure
            if error is None and tasks.cancel_scope.cancelled_caught:
                error = DeadlineExceeded() if scope.cause is Cause.DEADLINE else None
            if error is not None:
                # Outside the nursery: a deadline that passes meanwhile must not break the answer.
                await self._fail(error)
        except NetworkError:
            scope.end(Cause.CLIENT_GONE)
        except Exception as error:  # noqa: BLE001  # the request boundary, see `_answer_for_bug`
            await self._answer_for_bug(error)
        finally:
            exchange.bind(None)
            self.finish()

    async def _answer_for_bug(self, error: Exception) -> None:
        """Tell the client of a 500 and the log of the traceback, unless the client just left."""
        if isinstance(error, ExceptionGroup) and error.split(NetworkError)[1] is None:
            self.scope.end(Cause.CLIENT_GONE)
            return
        _log.error("request failed", exc_info=error)
        phase = "request" if self.upstream_s is None else "response"
        with suppress(NetworkError):
            await self._fail(RoutingFailed(phase=phase))

    def finish(self) -> None:
        """End the plan, write the log line, give the generation back."""
        outcome = self._outcome()
        try:
            if self.plan is not None:
                self.plan.finish(outcome)
        except Exception:  # noqa: BLE001  # accounting must not take the connection down with it
            _log.exception("settlement failed")
        if self.is_admitted and self.request is not None:
            self.gateway.admission.release(self.request)
        if self.generation is not None:
            self.generation.release()
        self.gateway.access_log.add(self._access_line(outcome))

    async def _answer(self) -> None:
        generation = self.generation
        if generation is None:
            raise NotServing
        listener = generation.listener(self.listener_name)
        request = await self._read_request(listener)
        if not self.gateway.admission.admit(request):
            raise NotAdmitted
        self.is_admitted = True
        self.plan = plan = await generation.engine.plan(request, self.scope)
        if plan.call is not None:
            await self._relay(generation, listener, plan, plan.call)
        elif plan.immediate is not None:
            status, lines = render_immediate(plan.immediate)
            await self.exchange.respond(status, lines, plan.immediate.body)

    async def _read_request(self, listener: Listener) -> Request:
        exchange = self.exchange
        removed: frozenset[bytes] = frozenset()
        if listener.api_keys:
            check_api_key(exchange.head.lines, listener.api_keys)
            removed = CLIENT_KEYS
        body = await exchange.read_body(listener.max_body_bytes)
        headers, request_id = ingress_headers(exchange.head, exchange.scheme, removed=removed)
        self.request = request = Request(
            method=exchange.head.method,
            target=exchange.head.target,
            authority=exchange.head.authority,
            scheme=exchange.scheme,
            headers=headers,
            body=body,
            id=request_id.decode("latin-1"),
            listener=listener.name,
            received_at=self.started_at,
        )
        return request

    async def _relay(
        self, generation: Generation, listener: Listener, plan: Plan, call: Call
    ) -> None:
        """Send the tail call and pass its response on."""
        upstream = generation.upstream
        cluster = upstream.cluster_for(call.route_key)
        listener_s = listener.call_timeout_s
        sent_at = self.now()
        deadline = Deadline.after(sent_at, cluster.total_s(listener_s))
        if deadline.at != inf:
            self.exchange.end_at(deadline.at)
        response = await upstream.send(
            call, deadline=deadline, idle_s=cluster.idle_s(listener_s), journal=self.journal
        )
        try:
            self.answered_at = self.now()
            self.upstream_s = self.answered_at - sent_at
            try:
                generation.engine.respond(plan, response.status, response.headers)
            except RoutingFailed:
                raise RoutingFailed(phase="response") from None
            if _is_collected(response):
                await self._send_whole(response)
            else:
                await self._send_as_it_comes(response)
        finally:
            response.close()

    async def _send_whole(self, response: UpstreamResponse) -> None:
        body = response.take()
        if not response.is_complete:
            parts = [body]
            while not response.is_complete:
                parts.append(await response.receive())
            body = b"".join(parts)
        self._note_usage(response, body)
        self.first_byte_s = self.answered_at - self.started_at
        response.close()  # the backend is done; a slow client must not hold its connection
        await self.exchange.respond(response.status, response.headers.lines, body)

    async def _send_as_it_comes(self, response: UpstreamResponse) -> None:
        exchange = self.exchange
        piece = response.take() or await response.receive()
        if not piece:
            await exchange.respond(response.status, response.headers.lines, b"")
            return
        self.first_byte_s = self.now() - self.started_at
        await exchange.start(response.status, response.headers.lines, response.length, piece)
        while not response.is_complete:
            await response.relay(exchange.try_write)
            await exchange.flush()
        await exchange.end()

    async def _fail(self, error: VsrError) -> None:
        """Answer with `error`, or break off what has been sent in part."""
        self.error = error
        if self.exchange.is_committed:
            self.exchange.abort()
            return
        with trio.move_on_after(_ERROR_WRITE_S):
            await self.exchange.respond(*render_error(error))
            return
        self.exchange.abort()

    def _note_usage(self, response: UpstreamResponse, body: bytes) -> None:
        if response.status >= _FIRST_ERROR or self.request is None:
            return
        found = read_usage(body)
        if found is not None:
            self.usage = Usage(found.prompt_tokens, found.completion_tokens)

    def _outcome(self) -> Outcome:
        exchange, cause = self.exchange, self.scope.cause
        status, attempts = exchange.status or None, tuple(self.journal.attempts)
        if isinstance(self.error, DeadlineExceeded):
            return Outcome(Terminal.TIMED_OUT, Cause.DEADLINE, status, None, attempts)
        if self.error is not None and (exchange.has_ended or cause is None):
            return Outcome(Terminal.FAILED, None, status, None, attempts)
        if not exchange.has_ended:
            return Outcome(Terminal.CANCELLED, cause, status, None, attempts)
        failed = status is not None and status >= _FIRST_ERROR
        terminal = Terminal.FAILED if failed else Terminal.SUCCEEDED
        return Outcome(terminal, None, status, self.usage, attempts)

    def _access_line(self, outcome: Outcome) -> AccessLine:
        exchange, head, request = self.exchange, self.exchange.head, self.request
        evidence = _NO_EVIDENCE if self.plan is None else self.plan.session.evidence()
        fields = head.fields
        usage, cause = outcome.usage, outcome.cause
        return AccessLine(
            start_time=self.gateway.access_log.stamp(self.wall_ns),
            method=head.method.decode("latin-1"),
            path=head.target.decode("latin-1"),
            protocol=exchange.protocol,
            response_code=exchange.status,
            bytes_received=head.length or 0,
            bytes_sent=exchange.bytes_sent,
            duration_ms=_ms(self.now() - self.started_at),
            upstream_service_time=None if self.upstream_s is None else _ms(self.upstream_s),
            x_forwarded_for=_text(fields, b"x-forwarded-for"),
            user_agent=_text(fields, b"user-agent"),
            request_id=_text(fields, b"x-request-id") if request is None else request.id,
            authority=head.authority.decode("latin-1"),
            upstream_host=self.journal.upstream_host,
            response_flags=self._flags(outcome),
            outcome=outcome.terminal,
            cause=cause,
            attempts=len(outcome.attempts),
            listener=self.listener_name,
            recipe=evidence.recipe,
            decision=evidence.decision,
            model=evidence.model,
            config_version=0 if self.generation is None else self.generation.version,
            prompt_tokens=usage.prompt_tokens if usage is not None else None,
            completion_tokens=usage.completion_tokens if usage is not None else None,
            first_byte_ms=None if self.first_byte_s is None else _ms(self.first_byte_s),
        )

    def _flags(self, outcome: Outcome) -> str:
        if outcome.cause is Cause.CLIENT_GONE:
            return "DC"
        return self.error.flag if self.error is not None else "-"


def _is_collected(response: UpstreamResponse) -> bool:
    if response.is_complete:
        return True
    return response.length is not None and response.length <= COLLECT_BYTES


def _text(fields: dict[bytes, bytes], name: bytes) -> str:
    return fields.get(name, b"").decode("latin-1")


def _ms(seconds: float) -> float:
    """Return milliseconds cut to three decimals (`round` costs ten times as much)."""
    return int(seconds * 1e6) / 1e3
