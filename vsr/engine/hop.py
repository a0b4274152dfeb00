"""Calls of graph steps: a chat completion that a graph has written, as a routing session's call."""

from collections.abc import Callable

import msgspec

from vsr.codec.chat import ChatRequest, read_chat
from vsr.codec.chat_body import ChatBody
from vsr.engine.calls import call_of
from vsr.engine.endpoints import Endpoint, Protocol
from vsr.engine.hygiene import HYGIENE
from vsr.engine.renditions import renditions
from vsr.engine.request_phase import Outgoing
from vsr.engine.response_phase import stream_for, whole_answer
from vsr.engine.target import Target
from vsr.engine.user_key import dispatch_for
from vsr.errors import GraphFailed
from vsr.graph.budget import DEFAULT_OUTPUT_TOKENS
from vsr.headers import Headers
from vsr.resources.cluster import Pricing
from vsr.resources.reliability import CallOverride
from vsr.routing.budget import Price
from vsr.routing.plan import Hop
from vsr.routing.request import Request

CHAT_PATH = b"/v1/chat/completions"
_OF_THE_CLIENT = frozenset(
    {b"content-length", b"content-type", b"content-encoding", b"accept", b"x-vsr-debug"}
)
"""Headers of the client's that tell of its own body or answer."""
_LIMITS = ("max_completion_tokens", "max_tokens")


class HopModel(msgspec.Struct, frozen=True):
    """A model that the steps of one decision's graph may call."""

    target: Target
    price: Price | None = None
    max_output_tokens: int | None = None


def price_of(pricing: Pricing) -> Price:
    """Return what a model's calls cost, as budgets count it."""
    return Price(pricing.prompt_per_1m, pricing.completion_per_1m, pricing.currency)


class HopSource(msgspec.Struct, gc=False):
    """One hop's request, in the place of a client's."""

    endpoint: Endpoint
    request: Request
    chat: ChatRequest


class EngineHop(Hop, gc=False):
    """A hop, and what its answer's way to the client must know where it is handed out."""

    target: Target | None = None
    outgoing: Outgoing | None = None
    chat: ChatRequest | None = None


class SessionHops(msgspec.Struct, frozen=True, eq=False):
    """Implements `routing.ports.Hops` for one request."""

    request: Request
    """The client's."""
    model_of: Callable[[str], HopModel]
    unix: Callable[[], float]
    static_headers: tuple[tuple[bytes, bytes], ...] = ()
    """Set on every hop before its credential."""
    is_strict: bool = False
    """Whether a prompt counts with its bytes, not with the estimate of its tokens."""

    def open(
        self, model: str, body: ChatBody, *, reliability: CallOverride | None, is_bounded: bool
    ) -> EngineHop:
        """Return the call to `model`; see `routing.ports.Hops`."""
        known = self.model_of(model)
        output_tokens = 0
        if is_bounded:
            body, output_tokens = _bounded(body, known.max_output_tokens)
        data = body.with_member("model", model).encode()
        chat = read_chat(data)
        source = HopSource(Endpoint.CHAT, self._request(data, chat), chat)
        outgoing = dispatch_for(Endpoint.CHAT, source.request, chat, known.target)
        hop = EngineHop(
            call_of(source.request, HYGIENE, outgoing.effect),
            bytes_of,
            known.price,
            target=known.target,
            outgoing=outgoing,
            chat=chat,
        )
        hop.read = _Reader(hop, self.unix).read
        if is_bounded:
            hop.prompt_bound_tokens = len(data) if self.is_strict else chat.token_count
            hop.output_bound_tokens = output_tokens
        hop.call.policy = known.target.policy_with(reliability)
        if known.target.variants:

            def commit(variant: Target, made: Outgoing) -> None:
                hop.target, hop.outgoing = variant, made

            hop.call.renditions = renditions(source, known.target, outgoing, commit)
        return hop

    def _request(self, body: bytes, chat: ChatRequest) -> Request:
        client = self.request
        kept = [line for line in client.headers.lines if line[0] not in _OF_THE_CLIENT]
        accept = b"text/event-stream" if chat.is_streaming else b"application/json"
        own = (
            (b"content-type", b"application/json"),
            (b"accept", accept),
            (b"content-length", b"%d" % len(body)),
        )
        return Request(
            b"POST",
            CHAT_PATH,
            client.authority,
            client.scheme,
            Headers([*kept, *own, *self.static_headers]),
            body,
            client.id,
            client.listener,
            client.principal,
            client.received_at,
        )


def bytes_of(headers: Headers, body: bytes) -> bytes:
    """Return an answer that is a chat completion already."""
    del headers
    return body


class _Reader(msgspec.Struct, frozen=True, eq=False):
    """Reads the answer of one hop as what its backend says."""

    hop: EngineHop
    unix: Callable[[], float]

    def read(self, headers: Headers, body: bytes) -> bytes:
        """Return the answer as a chat completion.

        Raises:
            AnswerNotTranslatable: it is none in the backend's protocol.
        """
        del headers
        hop = self.hop
        target, outgoing, chat = hop.target, hop.outgoing, hop.chat
        if target is None or outgoing is None or chat is None:
            raise GraphFailed("a hop was not made by the engine")
        if target.protocol is Protocol.OPENAI and not target.chain.answer_edits:
            return body
        unix_s = int(self.unix())
        if chat.is_streaming:
            stream = stream_for(Protocol.OPENAI, target, outgoing, chat, unix_s)
            return stream.feed(body) + stream.close()
        return whole_answer(Protocol.OPENAI, target, body, unix_s, outgoing.warnings)[0]


def _bounded(body: ChatBody, card_tokens: int | None) -> tuple[ChatBody, int]:
    """Return the request with a limit on its answer, and that limit."""
    asked = [body.integer(name) for name in _LIMITS]
    known = [each for each in (*asked, card_tokens) if each is not None]
    least = min(known, default=DEFAULT_OUTPUT_TOKENS)
    choices = body.integer("n") or 1
    if not any(each is not None for each in asked):
        body = body.with_member(_LIMITS[0], least)
    for name, limit in zip(_LIMITS, asked, strict=True):
        if limit is not None and limit > least:  # whichever of the two the backend goes by
            body = body.with_member(name, least)
    return body, least * max(choices, 1)
