"""One request's passage through the routing core."""

import attrs
import msgspec

from vsr.codec.chat import ChatRequest
from vsr.codec.stream_usage import StreamUsage
from vsr.codec.usage import read_usage
from vsr.deadline import Deadline
from vsr.decision.evaluate import NO_ANSWERS, Verdict
from vsr.engine.endpoints import Endpoint, Protocol, find_endpoint, protocol_of
from vsr.engine.entrypoint import Entrypoints
from vsr.engine.extensions import Surroundings
from vsr.engine.request_phase import Outgoing, as_chat, dispatch, read_request
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
    with_warnings,
)
from vsr.engine.target import DIAGNOSTIC_HEADERS, Keystone, Target
from vsr.errors import AnswerNotTranslatable, InvalidRequest, VsrError
from vsr.graph.budget import Budget
from vsr.graph.compile import CompiledGraph
from vsr.graph.context import NodeContext, TailCall
from vsr.graph.executor import execute
from vsr.graph.ledger import Ledger
from vsr.headers import Headers
from vsr.routing.effect import UNCHANGED, Effect, HeaderEdit, ImmediateResponse
from vsr.routing.evidence import Evidence
from vsr.routing.outcome import Outcome, Terminal, Usage
from vsr.routing.ports import Tasks
from vsr.routing.request import Request
from vsr.routing.session import BodyMode

INTERNAL_HEADERS = frozenset(
    {
        b"x-vsr-fusion-depth",
        b"x-vsr-internal-auth",
        b"x-vsr-looper-decision",
        b"x-vsr-looper-iteration",
        b"x-vsr-looper-request",
        b"x-vsr-selected-recipe",
    }
)
"""Names of the reference's hop protocol: ours runs in process, so a client's copy means nothing."""

_HYGIENE = Effect(removes=INTERNAL_HEADERS, edits=(HeaderEdit(b"accept-encoding", b"identity"),))
_BYPASS = Effect(removes=INTERNAL_HEADERS)
_STREAMED = Effect(stream_response=True)
_JSON = HeaderEdit(b"content-type", b"application/json")
_FIRST_ERROR = 400
_NOTHING: frozenset[bytes] = frozenset()
_NO_STREAM = "the answer cannot be streamed: what this decision does to it needs all of it"


@attrs.frozen
class Settings:
    """What all sessions of one configuration share."""

    entrypoints: Entrypoints
    plain: CompiledGraph
    keystone: Keystone
    model_list: Effect
    """Answers with the list of models."""
    unrouted: Effect
    """Marks an answer that has no target, or is neither success nor failure."""
    unrouted_stream: Effect
    """The same for an event stream."""
    refusal_edits: tuple[HeaderEdit, ...]
    """Fields of an error that the core answers with."""
    surroundings: Surroundings
    may_bypass: bool = False
    """Whether a header of the client takes its request past all routing."""


def compile_settings(
    keystone: Keystone,
    entrypoints: Entrypoints,
    plain: CompiledGraph,
    model_list: bytes,
    surroundings: Surroundings,
    *,
    may_bypass: bool,
) -> Settings:
    """Work out once what every session of a configuration answers alike."""
    listing = ImmediateResponse(200, (_JSON, keystone.version_edit), model_list)
    upstream = keystone.edits(b"upstream")
    return Settings(
        entrypoints=entrypoints,
        plain=plain,
        keystone=keystone,
        model_list=Effect(immediate=listing),
        unrouted=Effect(DIAGNOSTIC_HEADERS, upstream),
        unrouted_stream=Effect(DIAGNOSTIC_HEADERS, upstream, stream_response=True),
        refusal_edits=(_JSON, *keystone.edits(b"error")),
        surroundings=surroundings,
        may_bypass=may_bypass,
    )


class _Opaque(msgspec.Struct):
    """The prompt of a request that routing does not read; a byte is at most one token."""

    token_count: int


class RoutingSession(msgspec.Struct):
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
    _chat: ChatRequest | None = None
    _verdict: Verdict | None = None
    _outgoing: Outgoing | None = None
    _context: NodeContext | None = None
    _latency_s: float = 0.0
    _status: int = 0
    _described: frozenset[bytes] = frozenset()
    """Fields that go when the body is replaced."""
    _usage: Usage | None = None

    @property
    def wants_response_body(self) -> bool:
        """Return whether a body must be handed over at all."""
        return self.body_mode in {BodyMode.WHOLE, BodyMode.STREAM}

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that the backend reported."""
        return self._usage if self.stream is None else usage_of(self.stream.usage)

    @property
    def budget(self) -> Budget | None:
        """Return the request's budget once its graph has run."""
        return self._context.budget if self._context is not None else None

    def request_headers(self) -> Effect:
        """Check method and path; answer the model list."""
        request = self.request
        if self.settings.may_bypass and self._is_set(b"x-vsr-skip-processing"):
            self.endpoint = Endpoint.BYPASS
            return _BYPASS
        try:
            self.endpoint = find_endpoint(request.method, request.target)
        except VsrError as error:
            return self._refuse(error)
        if self.endpoint is Endpoint.MODELS:
            return self.settings.model_list
        return _HYGIENE

    async def request_body(self) -> Effect:
        """Decide who serves the request and rewrite it for that backend."""
        endpoint, clock = self.endpoint, self.settings.surroundings.monotonic
        if endpoint is not Endpoint.CHAT and endpoint is not Endpoint.MESSAGES:
            return UNCHANGED
        started_at = clock()
        try:
            chat = self._chat = read_request(endpoint, self.request.body)
            entrypoints = self.settings.entrypoints
            answers = NO_ANSWERS
            if entrypoints.is_learned and (asks := entrypoints.asks(chat)):
                answers = await self.settings.surroundings.runtime.evaluate(asks)
            self.target, self._verdict = entrypoints.choose(chat, answers)
            if self.target.chain.answer is not None:
                return self._answer(chat, self.target)
            if chat.is_streaming and self.target.chain.answer_edits:
                raise InvalidRequest(_NO_STREAM, code="stream_not_possible", param="stream")
            self._outgoing = dispatch(endpoint, self.request, chat, self.target)
            await self.hand_out(self.target.alias)
        except VsrError as error:
            return self._refuse(error)
        self._latency_s = clock() - started_at
        return self._outgoing.effect

    async def hand_out(self, model: str) -> None:
        """Run the request's graph, which hands out its tail call to `model`.

        Raises:
            VsrError: the graph failed.
        """
        self._context = NodeContext(
            tasks=self.tasks,
            deadline=self.deadline,
            budget=Budget(),
            ledger=Ledger(),
            params={"model": model},
            prompt=self._chat or _Opaque(len(self.request.body)),
        )
        plain = self.settings.plain
        if plain.tail is not None and not plain.steps:
            self.tail = plain.tail.hand_out(self._context)
            return
        result = await execute(plain, self._context)
        if isinstance(result, TailCall):
            self.tail = result

    def response_headers(self, status: int, headers: Headers) -> Effect:
        """Say in headers what was decided; settle what the body needs."""
        is_stream = b"text/event-stream" in headers.get(b"content-type").lower()
        target, chat, outgoing = self.target, self._chat, self._outgoing
        if target is None or chat is None or outgoing is None:
            return self._unrouted(is_stream=is_stream)
        client = self.endpoint.protocol
        if not 200 <= status < 300:  # noqa: PLR2004  # the 2xx class
            if status < _FIRST_ERROR:
                return self.settings.unrouted
            self.body_mode, self._status = BodyMode.WHOLE, status
            self._described = described(headers)
            return with_warnings(target.failed[client], outgoing.warnings)
        reply = target.replies[client]
        is_read = client is not target.protocol or bool(target.chain.answer_edits)
        if is_encoded(headers):
            if is_read:
                return self._refuse(AnswerNotTranslatable("it is compressed"))
            effect = reply.streamed if is_stream else reply.answered
        elif is_stream:
            self.body_mode = BodyMode.STREAM
            self.stream = stream_for(client, target, outgoing, chat, self._unix_s())
            effect = reply.streamed
        else:
            self.body_mode = BodyMode.WHOLE if is_read else BodyMode.WATCH
            self._described = described(headers) if is_read else _NOTHING
            effect = reply.answered
        effect = with_warnings(effect, outgoing.warnings) if outgoing.warnings else effect
        latency = b"%.3f" % (self._latency_s * 1000)
        if self._is_set(b"x-vsr-debug"):
            edits = effect.completed(latency).all_edits()
            debug = debug_edits(target, self._verdict, chat)
            return Effect(effect.removes, (*edits, *debug), stream_response=is_stream)
        return effect.completed(latency)

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
            return Effect(self._described, (_JSON,), body)
        self.watch(data)
        known = () if self._outgoing is None else self._outgoing.warnings
        try:
            body, edits = whole_answer(client, self.target, data, self._unix_s(), known)
        except VsrError as error:
            return self._refuse(error)
        return Effect(self._described, edits, body)

    def watch(self, body: bytes) -> None:
        """Read the usage in a whole answer."""
        if self.target is None or self.target.protocol is not Protocol.OPENAI:
            self._usage = reported_usage(body)
            return
        found = read_usage(body)
        if found is not None:
            self._usage = Usage(found.prompt_tokens, found.completion_tokens)

    def evidence(self) -> Evidence:
        """Return what was decided so far."""
        target, verdict = self.target, self._verdict
        if target is None:
            return Evidence()
        choice = target.choice
        return Evidence(
            recipe=choice.recipe,
            decision=choice.decision,
            confidence=verdict.confidence if verdict and choice.decision else None,
            model=target.alias,
            selection_method=choice.method,
            reasoning_mode=choice.reasoning_mode,
            signals=verdict.signals if verdict else {},
        )

    def finish(self, outcome: Outcome) -> None:
        """Close the tail call's ledger entry, settle its reservation, tell the observers."""
        if self.tail is not None and self._context is not None:
            self._context.close_call(self.tail.entry, outcome)
        if self.target is not None:
            for observe in self.target.chain.observers:
                observe(outcome)

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
        return self.request.headers.get(name).strip().lower() == b"true"

    def _unix_s(self) -> int:
        return int(self.settings.surroundings.unix())

    def _refuse(self, error: VsrError) -> Effect:
        extra = tuple(HeaderEdit(name, value) for name, value in error.headers)
        edits = (*self.settings.refusal_edits, *extra)
        body = error_body(protocol_of(self.request.target), error)
        return Effect(immediate=ImmediateResponse(error.status, edits, body))
