"""One request's passage through the routing core."""

from collections.abc import Callable

import attrs
import msgspec

from vsr.codec.chat import ChatRequest, read_chat
from vsr.codec.error_body import openai_error
from vsr.deadline import Deadline
from vsr.decision.evaluate import Verdict
from vsr.engine.endpoints import Endpoint, find_endpoint
from vsr.engine.entrypoint import Entrypoints
from vsr.engine.response_phase import debug_edits
from vsr.engine.target import DIAGNOSTIC_HEADERS, Keystone, Target
from vsr.errors import VsrError
from vsr.graph.budget import Budget
from vsr.graph.compile import CompiledGraph
from vsr.graph.context import NodeContext, TailCall
from vsr.graph.executor import execute
from vsr.graph.ledger import Ledger
from vsr.headers import Headers
from vsr.routing.effect import UNCHANGED, Effect, HeaderEdit, ImmediateResponse
from vsr.routing.evidence import Evidence
from vsr.routing.outcome import Outcome, Terminal
from vsr.routing.ports import Tasks
from vsr.routing.request import Request

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
_JSON = HeaderEdit(b"content-type", b"application/json")


def compile_settings(
    keystone: Keystone,
    entrypoints: Entrypoints,
    plain: CompiledGraph,
    model_list: bytes,
    clock: Callable[[], float],
) -> "Settings":
    """Work out once what every session of a configuration answers alike."""
    listing = ImmediateResponse(200, (_JSON, keystone.version_edit), model_list)
    upstream = keystone.edits(b"upstream")
    return Settings(
        entrypoints=entrypoints,
        plain=plain,
        model_list=Effect(immediate=listing),
        unrouted=Effect(DIAGNOSTIC_HEADERS, upstream),
        unrouted_stream=Effect(DIAGNOSTIC_HEADERS, upstream, stream_response=True),
        refusal_edits=(_JSON, *keystone.edits(b"error")),
        clock=clock,
    )


class _Opaque(msgspec.Struct):
    """The prompt of a request that routing does not read; a byte is at most one token."""

    token_count: int


@attrs.frozen
class Settings:
    """What all sessions of one configuration share."""

    entrypoints: Entrypoints
    plain: CompiledGraph
    model_list: Effect
    """Answers with the list of models."""
    unrouted: Effect
    """Marks an answer that has no target, or is no success."""
    unrouted_stream: Effect
    """The same for an event stream."""
    refusal_edits: tuple[HeaderEdit, ...]
    """Fields of an error that the core answers with."""
    clock: Callable[[], float]
    """Monotonic seconds."""


class RoutingSession(msgspec.Struct):
    """Implements `routing.session.Session` for one request."""

    settings: Settings
    request: Request
    tasks: Tasks
    deadline: Deadline
    endpoint: Endpoint = Endpoint.ELSEWHERE
    tail: TailCall | None = None
    target: Target | None = None
    _chat: ChatRequest | None = None
    _verdict: Verdict | None = None
    _context: NodeContext | None = None
    _latency_s: float = 0.0

    @property
    def wants_response_body(self) -> bool:
        """Return False: no plugin of this version reads it."""
        return False

    def request_headers(self) -> Effect:
        """Check method and path; answer the model list."""
        request = self.request
        try:
            self.endpoint = find_endpoint(request.method, request.target)
        except VsrError as error:
            return self._refuse(error)
        if self.endpoint is Endpoint.MODELS:
            return self.settings.model_list
        return _HYGIENE

    async def request_body(self) -> Effect:
        """Decide who serves the request and rewrite it for that backend."""
        if self.endpoint is not Endpoint.CHAT:
            return UNCHANGED
        started_at = self.settings.clock()
        try:
            chat = self._chat = read_chat(self.request.body)
            self.target, self._verdict = self.settings.entrypoints.choose(chat)
            await self.hand_out(self.target.alias)
        except VsrError as error:
            return self._refuse(error)
        effect = _dispatch(chat, self.target)
        self._latency_s = self.settings.clock() - started_at
        return effect

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
        """Say in headers what was decided; let event streams through as they come."""
        is_stream = b"text/event-stream" in headers.get(b"content-type").lower()
        target = self.target
        if target is None or not 200 <= status < 300:  # noqa: PLR2004  # the 2xx class
            return self.settings.unrouted_stream if is_stream else self.settings.unrouted
        answered = target.streamed if is_stream else target.answered
        latency = b"%.3f" % (self._latency_s * 1000)
        if self._chat is not None and self._is_debugging():
            edits = answered.completed(latency).all_edits()
            debug = debug_edits(self._verdict, self._chat)
            return Effect(answered.removes, (*edits, *debug), stream_response=is_stream)
        return answered.completed(latency)

    async def response_body(self, data: bytes, *, is_last: bool) -> Effect:
        """Leave the body as it is: no plugin of this version reads it."""
        del data, is_last
        return UNCHANGED

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
            reasoning_mode="off",
            signals=verdict.signals if verdict else {},
        )

    @property
    def budget(self) -> Budget | None:
        """Return the request's budget once its graph has run."""
        return self._context.budget if self._context is not None else None

    def finish(self, outcome: Outcome) -> None:
        """Close the tail call's ledger entry and settle its reservation."""
        if self.tail is not None and self._context is not None:
            self._context.close_call(self.tail.entry, outcome)

    def close(self) -> None:
        """End the session; a call that nobody made counts as failed."""
        self.finish(Outcome(Terminal.FAILED))

    def _is_debugging(self) -> bool:
        return self.request.headers.get(b"x-vsr-debug").strip().lower() == b"true"

    def _refuse(self, error: VsrError) -> Effect:
        extra = tuple(HeaderEdit(name, value) for name, value in error.headers)
        edits = (*self.settings.refusal_edits, *extra)
        return Effect(immediate=ImmediateResponse(error.status, edits, openai_error(error)))


def _dispatch(chat: ChatRequest, target: Target) -> Effect:
    """Return the effect that turns the client's request into the backend's."""
    if chat.envelope.raw("model") == target.model_json:
        return target.as_it_is
    body = chat.envelope.spliced({"model": target.model_json})
    return target.rewritten.completed(b"%d" % len(body), body=body)
