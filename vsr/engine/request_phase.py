"""The request phases: what the client asks for, and what its backend is asked instead."""

import msgspec

from vsr.codec.anthropic.protocol_warning import ProtocolWarning
from vsr.codec.anthropic.request import read_anthropic
from vsr.codec.anthropic.request_to_anthropic import chat_to_anthropic
from vsr.codec.anthropic.request_to_chat import anthropic_to_chat
from vsr.codec.anthropic.side_record import ChatTranslation
from vsr.codec.chat import ChatRequest, read_chat
from vsr.codec.edits import Changes, Draft
from vsr.codec.envelope import open_envelope
from vsr.codec.stream_usage import demand_usage
from vsr.engine.endpoints import Endpoint, Protocol
from vsr.engine.target import ANTHROPIC_VERSION, Target
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.request import Request

_USAGE: Changes = {"stream_options": b'{"include_usage":true}'}
_BETA = b"anthropic-beta"
_JSON = HeaderEdit(b"content-type", b"application/json")


class Outgoing(msgspec.Struct, gc=False):
    """A request on its way to its backend, and what the answer's way back must know of it."""

    effect: Effect
    hides_usage: bool = False
    """The stream reports usage that the client did not ask for."""
    warnings: tuple[ProtocolWarning, ...] = ()
    """What of the request the backend's protocol cannot carry."""
    profile: int = 0
    """Which of the target's variants it is for."""


def read_request(endpoint: Endpoint, request: Request) -> ChatRequest:
    """Return the request as routing reads it.

    One whose body does not say is streamed if `accept` asks for it; then its body says so, too.
    Source: the reference's request-header phase.

    Raises:
        InvalidRequest: the body is no request of that endpoint.
    """
    read = read_anthropic if endpoint is Endpoint.MESSAGES else read_chat
    chat = read(request.body)
    if chat.is_streaming or "stream" in chat.envelope:
        return chat
    if b"text/event-stream" not in request.headers.get(b"accept").lower():
        return chat
    return read(chat.envelope.spliced({"stream": b"true"}))


def dispatch(endpoint: Endpoint, request: Request, chat: ChatRequest, target: Target) -> Outgoing:
    """Turn the client's request into the backend's.

    Raises:
        InvalidRequest: it cannot be said in the backend's protocol, or a plugin cannot read it.
    """
    if endpoint is Endpoint.MESSAGES:
        return _from_anthropic(request, chat, target)
    if target.protocol is Protocol.ANTHROPIC:
        draft = target.chain.draft(chat.envelope, {"model": target.model_json})
        translation = chat_to_anthropic(draft.body() or chat.envelope.body)
        effect = _rewritten(target, request, translation.body)
        return Outgoing(effect, warnings=translation.warnings)
    if target.is_plain and not chat.is_streaming:
        if chat.envelope.raw("model") == target.model_json:
            return Outgoing(target.requests.as_it_is)
        body = chat.envelope.spliced({"model": target.model_json})
        return Outgoing(target.requests.rewritten.completed(b"%d" % len(body), body=body))
    demand = demand_usage(chat.envelope.members)
    changed = target.chain.draft(
        chat.envelope, {"model": target.model_json, **demand.changes}
    ).body()
    if changed is None and chat.envelope.body is request.body:
        return Outgoing(target.requests.as_it_is, demand.hides)
    changed = changed or chat.envelope.body
    effect = target.requests.rewritten.completed(b"%d" % len(changed), body=changed)
    return Outgoing(effect, demand.hides)


def as_chat(endpoint: Endpoint, request: Request, chat: ChatRequest) -> Draft:
    """Return the request in the form that plugins read, unchanged."""
    if endpoint is Endpoint.MESSAGES:
        return Draft(open_envelope(_translated(request, chat).body))
    return Draft(chat.envelope)


def _from_anthropic(request: Request, chat: ChatRequest, target: Target) -> Outgoing:
    changes: Changes = {"model": target.model_json}
    if target.protocol is Protocol.ANTHROPIC:
        if target.is_plain:
            body = chat.envelope.spliced({"model": target.model_json})
            return Outgoing(_rewritten(target, request, body))
        translated = _translated(request, chat)
        envelope = open_envelope(translated.body)
        edited = target.chain.draft(envelope, changes).body() or translated.body
        back = chat_to_anthropic(edited, translated.record)
        return Outgoing(_rewritten(target, request, back.body), warnings=back.warnings)
    translated = _translated(request, chat)
    envelope = open_envelope(translated.body)
    if chat.is_streaming:
        # Its own members ask for usage already; a plugin is not to take that for the client's.
        changes = {**changes, **_USAGE}
    body = target.chain.draft(envelope, changes).body() or translated.body
    return Outgoing(
        _rewritten(target, request, body),
        hides_usage=True,
        warnings=translated.warnings + translated.openai_warnings,
    )


def _translated(request: Request, chat: ChatRequest) -> ChatTranslation:
    return anthropic_to_chat(chat.envelope.body, has_beta=_BETA in request.headers)


def _rewritten(target: Target, request: Request, body: bytes) -> Effect:
    fields = request.headers.first_values()
    is_versioned = target.protocol is Protocol.ANTHROPIC and ANTHROPIC_VERSION in fields
    effects = target.versioned_requests if is_versioned else target.requests
    effect = effects.rewritten.completed(b"%d" % len(body), body=body)
    if b"json" in fields.get(b"content-type", b"").lower():
        return effect
    # The body is our own; whatever the client called its body, this one is JSON.
    edits = (*effect.edits, _JSON)
    return Effect(effect.removes, edits, body, effect.clear_route_cache, last=effect.last)
