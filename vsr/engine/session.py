"""One request's passage through the routing core."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from vsr.codec.chat import ChatRequest
from vsr.codec.stream_usage import StreamUsage
from vsr.codec.usage import read_usage
from vsr.deadline import Deadline
from vsr.decision.evaluate import NO_ANSWERS, Verdict
from vsr.decision.heard import Heard
from vsr.engine.endpoints import Endpoint, Protocol, find_endpoint, is_closed, protocol_of
from vsr.engine.graph_answer import run_graph, tail_edits
from vsr.engine.grounds import SessionGrounds, evidence_of, grounds_of
from vsr.engine.hygiene import HYGIENE, INTERNAL_HEADERS
from vsr.engine.plugins.plugin import tell_all
from vsr.engine.request_phase import Outgoing, as_chat, read_request
from vsr.engine.response_phase import (
    UsageStream,
    debug_edits,
    described,
    error_body,
    in_protocol,
    is_encoded,
    reported_usage,
    stream_for,
    usage_of,
    whole_answer,
    whole_failure,
    with_path,
    with_protocols,
    with_warnings,
)
from vsr.engine.settings import JSON, Settings
from vsr.engine.target import Target
from vsr.engine.user_key import dispatch_for
from vsr.errors import AnswerNotTranslatable, InvalidRequest, VsrError
from vsr.graph.budget import Budget
from vsr.graph.ledger import Ledger
from vsr.graph.run import GraphRun, OpaquePrompt, TailCall
from vsr.headers import Headers
from vsr.routing.effect import UNCHANGED, Effect, HeaderEdit, ImmediateResponse
from vsr.routing.evidence import Evidence
from vsr.routing.execution import Execution
from vsr.routing.outcome import Outcome, Terminal, Usage
from vsr.routing.plan import UNROUTED, Label
from vsr.routing.ports import GraphPorts, Tasks
from vsr.routing.request import Request
from vsr.routing.session import BodyMode
from vsr.routing.trace import Trace

if TYPE_CHECKING:
    from vsr.engine.graph_record import GraphRecord

BYPASS = b"x-vsr-skip-processing"
"""Header of a client that wants its request passed on untouched."""
INFERENCE = (Endpoint.CHAT, Endpoint.MESSAGES)
_BYPASS = Effect(removes=INTERNAL_HEADERS)
_STREAMED = Effect(stream_response=True)
GRAPH_AHEAD = Effect()
"""Says that the request's decision is answered by a graph, which has yet to run."""
_FIRST_ERROR = 400
_log = logging.getLogger("vsr.engine")
_NO_STREAM = "the answer cannot be streamed: what this decision does to it needs all of it"


class RoutingSession(msgspec.Struct, gc=False):
    """Implements `routing.session.Session` for one request."""

    settings: Settings
    request: Request
    tasks: Tasks
    deadline: Deadline
    endpoint: Endpoint = Endpoint.ELSEWHERE
    tail: TailCall | None = None
    target: Target | None = None
    body_mode: BodyMode = BodyMode.UNSEEN
    stream: UsageStream | None = None
    chat: ChatRequest | None = None
    verdict: Verdict | None = None
    outgoing: Outgoing | None = None
    run: GraphRun | None = None
    _latency_s: float = 0.0
    _status: int = 0
    _described: frozenset[bytes] = frozenset()
    """Fields that go when the body is replaced."""
    _usage: Usage | None = None
    ports: GraphPorts | None = None
    """The ways of graphs to the world; None where there are none."""
    graph: "GraphRecord | None" = None
    """Of the decision's graph, once it has begun."""
    execution: Execution | None = None
    """What its calls came to, once the request has ended."""
    trace: Trace | None = None
    """The request's; None where nothing is traced."""
    refusal: str = ""
    """Code of what the client was told instead of an answer."""
    path: tuple[str, ...] = ()
    """Models that were called, if more than one was; the last one serves."""

    @property
    def wants_response_body(self) -> bool:
        """Return whether a body must be handed over at all."""
        return self.body_mode in {BodyMode.WHOLE, BodyMode.STREAM}

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that the backend reported."""
        stream = self.stream
        if stream is None:
            return self._usage
        # What a stream has reported so far is not what it will have used.
        return usage_of(stream.usage) if stream.is_complete else None

    def request_headers(self) -> Effect:
        """Check method and path; answer the model list."""
        request = self.request
        may_bypass = self.settings.may_bypass and self._is_set(BYPASS)
        try:
            if may_bypass and not is_closed(request.target):
                self.endpoint = Endpoint.BYPASS
                return _BYPASS
            self.endpoint = find_endpoint(request.method, request.target)
        except VsrError as error:
            return self.refuse(error)
        if self.endpoint is Endpoint.MODELS:
            return self.settings.model_list
        return HYGIENE

    async def request_body(self) -> Effect:
        """Decide who serves the request and rewrite it for that backend."""
        effect = await self.judge()
        return await self.run_graph() if effect is GRAPH_AHEAD else effect

    async def judge(self) -> Effect:
        """Do the same but for a graph: `GRAPH_AHEAD` wants `run_graph` to be called."""
        if self.endpoint not in INFERENCE:
            return UNCHANGED
        if not self.settings.may_wait:
            return self.decide()
        started_at = self.settings.surroundings.monotonic()
        try:
            chat = self.chat = read_request(self.endpoint, self.request)
            heard: Heard = {}
            asks = self.settings.entrypoints.asks(chat, heard)
            effect = self._choose(chat, await self._ask(asks) if asks else NO_ANSWERS, heard)
            if self.target is not None and self.outgoing is not None:
                self.hand_out(self.target.alias)
        except VsrError as error:
            return self.refuse(error)
        self._latency_s = self.settings.surroundings.monotonic() - started_at
        return effect

    def decide(self) -> Effect:
        """Do what `judge` does for an inference request, where the runtime is not asked."""
        clock = self.settings.surroundings.monotonic
        started_at = clock()
        try:
            chat = self.chat = read_request(self.endpoint, self.request)
            effect = self._choose(chat)
            if self.target is not None and self.outgoing is not None:
                self.hand_out(self.target.alias)
        except VsrError as error:
            return self.refuse(error)
        self._latency_s = clock() - started_at
        return effect

    def _choose(
        self,
        chat: ChatRequest,
        answers: Mapping[str, bytes] = NO_ANSWERS,
        heard: Heard | None = None,
    ) -> Effect:
        """Choose the target; an answer of its own takes the place of a call."""
        target, self.verdict = self.settings.entrypoints.choose(chat, answers, heard)
        self.target = target
        if target.chain.answer is not None:
            return self._answer(chat, target)
        if target.graph is not None:
            return GRAPH_AHEAD
        if chat.is_streaming and target.chain.answer_edits:
            raise InvalidRequest(_NO_STREAM, code="stream_not_possible", param="stream")
        outgoing = self.outgoing = dispatch_for(self.endpoint, self.request, chat, target)
        return outgoing.effect

    async def _ask(self, asks: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Ask the model runtime; one that fails knows nothing, and no rule of its matches."""
        try:
            return await self.settings.surroundings.runtime.evaluate(asks)
        except Exception:  # noqa: BLE001  # whatever it is, the request goes on without
            _log.exception("the model runtime failed")
            return NO_ANSWERS

    def hand_out(self, model: str) -> None:
        """Run the graph of a plain request, which hands out its one call to `model`.

        Raises:
            BudgetExhausted: the budget refuses it.
        """
        run = self.run = GraphRun(
            tasks=self.tasks,
            deadline=self.deadline,
            budget=Budget(),
            ledger=Ledger(),
            prompt=self.chat or OpaquePrompt(len(self.request.body)),
        )
        self.tail = self.settings.plain.hand_out(run, model)

    async def run_graph(self) -> Effect:
        """Run the graph of the request's decision; see `decide`."""
        try:
            return await run_graph(self)
        except VsrError as error:
            return self.refuse(error)

    @property
    def is_debugging(self) -> bool:
        """Return whether the client wants diagnostic headers."""
        return self._is_set(b"x-vsr-debug")

    def debug_edits(self) -> list[HeaderEdit]:
        """Return the diagnostic headers of the decision."""
        if self.target is None or self.chat is None:
            return []
        return debug_edits(self.target, self.verdict, self.chat)

    @property
    def label(self) -> Label:
        """Return what logs call the request."""
        if self.graph is not None and self.tail is None:
            return self.graph.told_label
        return UNROUTED if self.target is None else self.target.label

    def note_usage(self, usage: Usage | None) -> None:
        """Take note of what all calls of a graph have used that answers by itself, or fails."""
        self._usage = usage

    def response_headers(self, status: int, headers: Headers) -> Effect:
        """Say in headers what was decided; settle what the body needs."""
        fields = headers.first_values()
        is_stream = b"text/event-stream" in fields.get(b"content-type", b"").lower()
        target, chat, outgoing = self.target, self.chat, self.outgoing
        if target is None or chat is None or outgoing is None:
            return self._unrouted(is_stream=is_stream)
        if status >= _FIRST_ERROR:
            self.body_mode, self._status = BodyMode.WHOLE, status
            self._described = described(headers)
            return self._completed(target.failed[self.endpoint.protocol], target, outgoing)
        if not 200 <= status < 300:  # noqa: PLR2004  # the 2xx class
            return self.settings.unrouted
        if not self._choose_body_mode(target, headers, is_stream=is_stream):
            return self.refuse(AnswerNotTranslatable("it cannot be read as it comes"))
        if self.body_mode is BodyMode.STREAM:
            client = self.endpoint.protocol
            self.stream = stream_for(client, target, outgoing, chat, self._unix_s())
        reply = target.replies[self.endpoint.protocol]
        effect = reply.streamed if is_stream else reply.answered
        return self._completed(effect, target, outgoing)

    def _choose_body_mode(self, target: Target, headers: Headers, *, is_stream: bool) -> bool:
        """Settle what the body of a success needs; return False if that can't be done to it."""
        edits = target.chain.answer_edits
        is_read = self.endpoint.protocol is not target.protocol or bool(edits)
        if is_encoded(headers):
            return not is_read
        if is_stream:
            self.body_mode = BodyMode.STREAM
            return not edits
        self.body_mode = BodyMode.WHOLE if is_read else BodyMode.WATCH
        if is_read:
            self._described = described(headers)
        return True

    def _completed(self, effect: Effect, target: Target, outgoing: Outgoing) -> Effect:
        """Return `effect` with what only this request is told."""
        is_debugging = self._is_set(b"x-vsr-debug")
        if not (is_debugging or outgoing.warnings or self.path or effect.last is None):
            return effect.completed(b"%.3f" % (self._latency_s * 1000))
        if outgoing.warnings:
            effect = with_warnings(effect, outgoing.warnings)
        if is_debugging:
            effect = with_protocols(effect, self.endpoint.protocol, target.protocol)
        if self.path:
            effect = with_path(effect, self.path)
        if effect.last is None:
            return effect
        effect = effect.completed(b"%.3f" % (self._latency_s * 1000))
        if is_debugging and self.chat is not None:
            debug = debug_edits(target, self.verdict, self.chat)
            edits = (*effect.all_edits(), *debug, *tail_edits(self.run, self.tail))
            return Effect(effect.removes, edits, stream_response=effect.stream_response)
        return effect

    async def response_body(self, data: bytes, *, is_last: bool) -> Effect:
        """Put the body into the client's protocol, piece by piece where it is streamed."""
        stream = self.stream
        if self.body_mode is BodyMode.STREAM and stream is not None:
            if isinstance(stream, StreamUsage):
                stream.holds_done = True
            out = stream.feed(data) if data else b""
            if is_last:
                out += stream.close()
            return UNCHANGED if out == data else Effect(body=out)
        if self.body_mode is BodyMode.WATCH:
            self.watch(data)
        if self.body_mode is not BodyMode.WHOLE or self.target is None:
            return UNCHANGED
        client = self.endpoint.protocol
        if self._status >= _FIRST_ERROR:
            body = whole_failure(client, self._status, data)
            return Effect(self._described, (JSON,), body)
        self.watch(data)
        known = () if self.outgoing is None else self.outgoing.warnings
        try:
            body, edits = whole_answer(client, self.target, data, self._unix_s(), known)
        except VsrError as error:
            return self.refuse(error)
        return Effect(self._described, edits, body)

    def watch(self, body: bytes) -> None:
        """Read the usage in a whole answer."""
        if self.target is None or self.target.protocol is not Protocol.OPENAI:
            self._usage = reported_usage(body)
            return
        found = read_usage(body)
        if found is not None:
            self._usage = Usage(found.prompt_tokens, found.completion_tokens)

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Reserve for one attempt more of the tail call; see `routing.budget.Spend`."""
        tail, run = self.tail, self.run
        if tail is None or run is None:
            return True
        if tail.hop is not None:
            return run.reopen_hop(tail.entry, tail.hop, is_known_zero=is_known_zero)
        return run.reopen_call(tail.entry, is_known_zero=is_known_zero)

    def evidence(self) -> Evidence:
        """Return what was decided so far."""
        return evidence_of(self.target, self.verdict)

    @property
    def grounds(self) -> SessionGrounds:
        """Return what is to be told of it."""
        return grounds_of(self)

    def finish(self, outcome: Outcome) -> None:
        """Close the tail call's ledger entry, settle its reservation, tell the observers."""
        if self.tail is not None and self.run is not None:
            self.run.close_tail(self.tail, outcome)
        if self.graph is not None:
            self.execution = self.graph.finish(outcome)
        if self.target is not None and self.target.chain.observers:
            tell_all(self.target.chain.observers, outcome)

    def close(self) -> None:
        """End the session; a call that nobody made counts as failed."""
        self.finish(Outcome(Terminal.FAILED))

    def _answer(self, chat: ChatRequest, target: Target) -> Effect:
        """Answer without a backend, as the decision's plugin wants."""
        assert target.chain.answer is not None  # noqa: S101  # the caller looked
        draft = as_chat(self.endpoint, self.request, chat)
        answer = target.chain.answer(draft, self._unix_s())
        client = self.endpoint.protocol
        return Effect(
            immediate=in_protocol(client, answer, target.alias, is_stream=chat.is_streaming)
        )

    def _unrouted(self, *, is_stream: bool) -> Effect:
        if self.endpoint is Endpoint.BYPASS:
            return _STREAMED if is_stream else UNCHANGED
        return self.settings.unrouted_stream if is_stream else self.settings.unrouted

    def _is_set(self, name: bytes) -> bool:
        value = self.request.headers.first_values().get(name)
        return value is not None and is_true(value)

    def _unix_s(self) -> int:
        return int(self.settings.surroundings.unix())

    def refuse(self, error: VsrError) -> Effect:
        """Return the answer that tells the client of `error`."""
        self.refusal = error.code
        extra = tuple(HeaderEdit(name, value) for name, value in error.headers)
        edits = (*self.settings.refusal_edits, *extra)
        body = error_body(protocol_of(self.request.target), error)
        return Effect(immediate=ImmediateResponse(error.status, edits, body))


def is_true(value: bytes) -> bool:
    """Return whether a header's value says yes."""
    return value.strip().lower() == b"true"
