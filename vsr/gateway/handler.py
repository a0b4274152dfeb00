"""Serves one request, from its head to its end in the log."""

import logging
import time
from collections.abc import Coroutine
from functools import partial
from math import inf

import msgspec
import trio

from vsr.deadline import NO_DEADLINE, Deadline
from vsr.errors import (
    BodyTooLarge,
    DeadlineExceeded,
    NotAdmitted,
    NotServing,
    RoutingFailed,
    VsrError,
)
from vsr.gateway.accounting import access_line, outcome_of
from vsr.gateway.auth import check_api_key
from vsr.gateway.client_body import ClientBody, start_total
from vsr.gateway.commented_exchange import ERROR_WRITE_S, CommentedExchange
from vsr.gateway.exchange import Exchange
from vsr.gateway.ingress import (
    ANTHROPIC_CLIENT_KEYS,
    CLIENT_KEYS,
    IngressRules,
    ingress_headers,
)
from vsr.gateway.relay import is_short, pass_as_it_comes, pass_stream, pass_whole, replaced
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.requests import Requests
from vsr.gateway.writer import render_error
from vsr.headers import Headers
from vsr.network.port import NetworkError
from vsr.resources.listener import Listener
from vsr.routing.effect import ImmediateResponse, render_immediate
from vsr.routing.generation import Generation
from vsr.routing.outcome import Attempt, Cause
from vsr.routing.plan import Ahead, Alternatives, Call, Plan
from vsr.routing.ports import Admission, Journal, UpstreamResponse
from vsr.routing.request import MESSAGES_PATH, Request
from vsr.routing.session import BodyMode
from vsr.telemetry.access_log import AccessLog

_log = logging.getLogger("vsr.gateway")


class RequestRun(msgspec.Struct, eq=False):
    """One request under way: `work` answers it, `finish` accounts for it, exactly once."""

    requests: Requests
    """Knows this one until `finish`."""
    access_log: AccessLog
    admission: Admission
    generation: Generation | None
    """Leased by the caller, given back by `finish`; None while nothing is active."""
    exchange: Exchange
    scope: RequestScope
    started_at: float
    listener: Listener
    rules: IngressRules
    wall_ns: int = msgspec.field(default_factory=time.time_ns)
    journal: Journal = msgspec.field(default_factory=Journal)
    needs_end: bool = False
    failure: Exception | None = None
    """What the work ended with; the answer to it is given when the nursery has ended."""
    error: VsrError | None = None
    """What the client was told of."""
    request: Request | None = None
    answered_at: float = 0.0
    upstream_s: float | None = None
    first_byte_s: float | None = None
    served: Attempt | None = None
    is_admitted: bool = False
    source: ClientBody | None = None
    """The body, where it is passed on as it comes."""
    commented: CommentedExchange | None = None
    """The exchange, where its client is told of the graph that answers."""

    @property
    def plan(self) -> Plan | None:
        """Return what is planned, from when the planning began."""
        return self.journal.plan

    async def work(self) -> None:
        """Answer the request, in its nursery; only cancellation passes."""
        try:
            await self._answer()
        except NetworkError:
            self.scope.end(Cause.CLIENT_GONE)
        except Exception as failure:  # noqa: BLE001  # the request boundary, see `conclude`
            self.failure = failure
            self.needs_end = True

    async def conclude(self, failure: Exception | None) -> None:
        """Tell the client what went wrong, once nothing is left of the request's work.

        Outside the nursery: a deadline that passes meanwhile must not break the answer.
        """
        error = self.failure or failure
        if error is None and self.scope.cause is Cause.DEADLINE and not self.exchange.has_ended:
            error = DeadlineExceeded().after(len(self.journal.attempts))
        try:
            if isinstance(error, VsrError):
                await self._fail(error)
            elif error is not None:
                await self._answer_for_bug(error)
        except NetworkError:
            self.scope.end(Cause.CLIENT_GONE)

    async def _answer_for_bug(self, error: Exception) -> None:
        """Tell the client of a 500 and the log of the traceback, unless the client just left."""
        if isinstance(error, ExceptionGroup) and error.split(NetworkError)[1] is None:
            self.scope.end(Cause.CLIENT_GONE)
            return
        _log.error("request failed", exc_info=error)
        if self.exchange.has_ended:
            return  # the client has a whole answer; only what ran beside it failed
        phase = "request" if self.upstream_s is None else "response"
        await self._fail(RoutingFailed(phase=phase))

    def finish(self) -> None:
        """End the plan, write the log line, give the generation back."""
        outcome, plan = outcome_of(self), self.journal.plan
        try:
            if plan is not None:
                plan.settlement.finish(outcome)
        except Exception:  # noqa: BLE001  # accounting must not take the connection down with it
            _log.exception("settlement failed")
        if self.is_admitted and self.request is not None:
            self.admission.release(self.request)
        if self.generation is not None:
            self.generation.release()
        line = access_line(self, outcome)
        self.access_log.add(line)
        self.requests.end(self, line, outcome)

    async def _answer(self) -> None:
        generation, exchange, listener = self.generation, self.exchange, self.listener
        if generation is None:
            raise NotServing
        head = exchange.head
        removed: frozenset[bytes] = frozenset()
        if listener.api_keys:
            is_anthropic = head.target.startswith(MESSAGES_PATH)
            check_api_key(head.lines, listener.api_keys, is_anthropic=is_anthropic)
            removed = ANTHROPIC_CLIENT_KEYS if is_anthropic else CLIENT_KEYS
        headers, request_id = ingress_headers(
            head,
            exchange.scheme,
            self.rules,
            removed=removed,
            peer=exchange.peer if listener.identity.is_trusted else "",
        )
        source = None if head.body is not None else self._passed_on(generation, listener, headers)
        body = b"" if source is not None else await exchange.read_body(listener.max_body_bytes)
        self.request = request = Request(
            head.method,
            head.target,
            head.authority,
            exchange.scheme,
            headers,
            body,
            request_id.decode("latin-1"),
            listener.name,
            received_at=self.started_at,
            timeout_s=listener.call_timeout_s,
        )
        if not self.admission.admit(request):
            raise NotAdmitted
        self.is_admitted = True
        if generation.engine.may_wait and listener.call_timeout_s is not None:
            # Of all work before the call, whose own timeout takes its place.
            exchange.end_at(self.started_at + listener.call_timeout_s)
            self.scope.move_end = exchange.end_at
        plan = await generation.engine.plan(request, self.scope, self.journal)
        if plan.call is not None:
            if source is not None:
                self.source = source
                await self._attach(generation, plan.call, source)
            await self._relay(generation, listener, plan, plan.call)
        else:
            await self._answer_without_call(generation, listener, plan)

    async def _answer_without_call(
        self, generation: Generation, listener: Listener, plan: Plan
    ) -> None:
        """Send what was answered at once, or what a graph comes to that has yet to run."""
        if plan.ahead is not None:
            plan = await self._run_ahead(plan.ahead)
        if plan.call is not None:
            await self._relay(generation, listener, plan, plan.call)
        elif plan.immediate is not None:
            status, lines = render_immediate(plan.immediate)
            await self.exchange.respond(status, lines, plan.immediate.body)

    async def _run_ahead(self, ahead: Ahead) -> Plan:
        """Let a graph run, and its client be told until there is something of an answer."""
        on_gone = partial(self.scope.end, Cause.CLIENT_GONE)
        told = CommentedExchange(self.exchange, ahead.comments, ahead.lines, on_gone)
        self.exchange = self.commented = told
        self.scope.start_soon(told.run)
        return await ahead.run(told.tell)

    def _passed_on(
        self, generation: Generation, listener: Listener, headers: Headers
    ) -> ClientBody | None:
        """Return the body of a request if it goes on unread, None if it is read first.

        Judged by the headers that routing sees: else a body could go on that routing wants to read.

        Raises:
            BodyTooLarge: more is announced than the listener takes.
        """
        head = self.exchange.head
        if head.length == 0:
            return None
        if not generation.engine.passes_body(head.method, head.target, headers.first_values()):
            return None
        if head.length is not None and head.length > listener.max_body_bytes:
            raise BodyTooLarge(listener.max_body_bytes)
        return ClientBody(self.exchange, self.scope, listener.max_body_bytes, head.length)

    async def _attach(self, generation: Generation, call: Call, source: ClientBody) -> None:
        """Give `call` its body: whole if it is short enough to be sent again, else as it comes."""
        self.exchange.end_at(inf)  # routing is done, and a slow client has its own limit
        cluster = generation.upstream.cluster_for(call.route_key)
        whole = await source.gather(cluster.replay_bytes)
        if whole is None:
            call.source = source
        else:
            call.body = whole

    async def _relay(
        self, generation: Generation, listener: Listener, plan: Plan, call: Call
    ) -> None:
        """Send the tail call and pass its response on."""
        if plan.alternatives is not None:
            await self._relay_along(generation, listener, plan, call, plan.alternatives)
            return
        exchange = self.exchange
        cluster = generation.upstream.cluster_for(call.route_key)
        total_s, idle_s = cluster.timeouts(call, listener.call_timeout_s)
        sent_at = exchange.now()
        deadline = NO_DEADLINE
        if total_s is not None:
            if call.source is None:
                deadline = Deadline(sent_at + total_s)
            else:
                call.source.on_end(partial(start_total, call.source, exchange, total_s))
        exchange.end_at(deadline.at)
        response = await cluster.send(
            call, now=sent_at, deadline=deadline, idle_s=idle_s, journal=self.journal
        )
        if call.source is not None and total_s is not None and not call.source.has_ended:
            exchange.end_at(exchange.now() + total_s)  # the backend has answered without the rest
        try:
            self.upstream_s = self._note_head(response) - sent_at
            await self._answer_with(generation, plan, response)
        finally:
            response.close()

    async def _relay_along(
        self,
        generation: Generation,
        listener: Listener,
        plan: Plan,
        call: Call,
        alternatives: Alternatives,
    ) -> None:
        """Send the tail call, then calls to other models while it fails; pass the answer on."""
        exchange = self.exchange
        sent_at = exchange.now()
        exchange.end_at(inf)  # every call has its own limit until there is an answer
        served = await generation.upstream.send_along(
            call,
            alternatives,
            listener_s=listener.call_timeout_s,
            started_at=self.started_at,
            journal=self.journal,
        )
        if isinstance(served, ImmediateResponse):
            status, lines = render_immediate(served)
            await exchange.respond(status, lines, served.body)
            return
        response = served.response
        try:
            exchange.end_at(served.total_at)
            plan.label = served.label or plan.label
            self.upstream_s = self._note_head(response) - sent_at
            await self._answer_with(generation, plan, response)
        finally:
            response.close()

    def _note_head(self, response: UpstreamResponse) -> float:
        attempt = self.served = response.attempt
        self.answered_at = attempt.head_at or self.exchange.now()
        return self.answered_at

    def _answer_with(
        self, generation: Generation, plan: Plan, response: UpstreamResponse
    ) -> Coroutine[None, None, None]:
        """Run the response-header phase; return what sends the client its answer."""
        try:
            mode = generation.engine.respond(plan, response.status, response.headers)
        except RoutingFailed:
            raise RoutingFailed(phase="response") from None
        if mode is BodyMode.WATCH and is_short(response):
            self.first_byte_s = self.answered_at - self.started_at
            return pass_whole(self.exchange, response, plan.session.watch)
        return self._pass_on(generation, plan, response, mode)

    async def _pass_on(
        self, generation: Generation, plan: Plan, response: UpstreamResponse, mode: BodyMode
    ) -> None:
        """Send the client its answer, in the way its body needs."""
        exchange, session = self.exchange, plan.session
        if mode is BodyMode.REPLACED and plan.immediate is not None:
            response.close()
            status, lines = render_immediate(plan.immediate)
            await exchange.respond(status, lines, plan.immediate.body)
        elif mode is BodyMode.WHOLE:
            answer = await replaced(generation.engine, plan, response)
            self._note_first_byte()
            await exchange.respond(answer.status, answer.headers.lines, answer.body)
        elif mode is BodyMode.STREAM and session.stream is not None:
            await pass_stream(exchange, response, session.stream, self._note_first_byte)
        elif is_short(response):
            self.first_byte_s = self.answered_at - self.started_at
            watch = session.watch if mode is BodyMode.WATCH else None
            await pass_whole(exchange, response, watch)
        else:
            watch = session.watch if mode is BodyMode.WATCH else None
            await pass_as_it_comes(exchange, response, self._note_first_byte, watch)

    def _note_first_byte(self) -> None:
        self.first_byte_s = self.exchange.now() - self.started_at

    async def _fail(self, error: VsrError) -> None:
        """Answer with `error`, or break off what has been sent in part."""
        self.error = error
        if self.exchange.is_committed:
            self._tell_in_stream()
            self.exchange.abort()
            return
        with trio.move_on_after(ERROR_WRITE_S):
            if self.commented is not None:
                await self.commented.fail(error)
            else:
                await self.exchange.respond(*render_error(error, self.exchange.head.target))
            return
        self.exchange.abort()

    def _tell_in_stream(self) -> None:
        """Send the event that the client's protocol has for a failure, if one fits in here."""
        exchange, plan = self.exchange, self.journal.plan
        stream = None if plan is None else plan.session.stream
        if stream is None or exchange.has_ended or exchange.is_behind:
            return
        if event := stream.break_off():
            exchange.try_write(event)
