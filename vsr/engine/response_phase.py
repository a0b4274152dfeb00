"""The response phases: what the client is told of the routing, and its answer in its protocol."""

from collections.abc import Iterable, Sequence

from vsr.codec.anthropic.error import anthropic_backend_error, anthropic_error
from vsr.codec.anthropic.json_value import UntranslatableResponse
from vsr.codec.anthropic.protocol_warning import ProtocolWarning, Severity, render_warnings
from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.response_to_chat import anthropic_response_to_chat
from vsr.codec.anthropic.stream_observer import AnthropicStreamObserver
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.anthropic.stream_to_chat import AnthropicStreamToChat
from vsr.codec.backend_error import openai_backend_error
from vsr.codec.chat import ChatRequest
from vsr.codec.chat_messages import read_members
from vsr.codec.error_body import openai_error
from vsr.codec.stream_usage import ReportedUsage, StreamUsage, read_reported
from vsr.codec.strict_json import NULL
from vsr.decision.evaluate import Verdict
from vsr.engine.endpoints import Protocol
from vsr.engine.request_phase import Outgoing
from vsr.engine.target import KEYSTONE_EDITS, UPSTREAM_PROTOCOL, Target, protocol_edits
from vsr.errors import AnswerNotTranslatable, InvalidRequest, VsrError
from vsr.headers import Headers
from vsr.routing.effect import Effect, HeaderEdit, ImmediateResponse
from vsr.routing.outcome import Usage

RESPONSE_PATH = b"x-vsr-response-path"
WARNINGS = b"x-vsr-protocol-warnings"
_MATCHED = {"keyword": b"x-vsr-matched-keywords", "context": b"x-vsr-matched-context"}
_LENGTH = frozenset({b"content-length"})
_OF_THE_BODY = frozenset(
    {b"content-length", b"content-encoding", b"content-md5", b"etag", b"last-modified"}
)
"""Fields that describe the bytes which another body takes the place of."""


def described(headers: Headers) -> frozenset[bytes]:
    """Return the fields of `headers` that go with the body, its length in any case."""
    return _LENGTH.union(name for name in _OF_THE_BODY if name in headers)


def is_encoded(headers: Headers) -> bool:
    """Return whether the body comes in an encoding that we neither asked for nor read."""
    value = headers.get(b"content-encoding")
    return bool(value) and value.strip().lower() not in {b"", b"identity"}


UsageStream = StreamUsage | AnthropicStreamObserver | AnthropicStreamToChat | ChatStreamToAnthropic


def debug_edits(target: Target, verdict: Verdict | None, chat: ChatRequest) -> list[HeaderEdit]:
    """Return what a request with `x-vsr-debug` is told besides, in the reference's order.

    Args:
        target: serves the request.
        verdict: what the recipe decided; None for a named model.
        chat: the request.
    """
    injected = b"true" if target.has_system_prompt else b"false"
    edits = [
        HeaderEdit(b"x-vsr-selected-reasoning", target.choice.reasoning_mode.encode()),
        HeaderEdit(b"x-vsr-injected-system-prompt", injected),
    ]
    signals = verdict.signals if verdict is not None else {}
    for signal_type, name in _MATCHED.items():
        if signals.get(signal_type):
            edits.append(HeaderEdit(name, ",".join(signals[signal_type]).encode()))
    if verdict is not None:
        edits.append(HeaderEdit(b"x-vsr-context-token-count", b"%d" % chat.token_count))
    return edits


def with_protocols(effect: Effect, client: Protocol, upstream: Protocol) -> Effect:
    """Return `effect` with both protocols named, behind the configuration's version."""
    if any(edit.name == UPSTREAM_PROTOCOL for edit in effect.edits):
        return effect
    at = KEYSTONE_EDITS
    edits = (*effect.edits[:at], *protocol_edits(client, upstream), *effect.edits[at:])
    return Effect(effect.removes, edits, stream_response=effect.stream_response, last=effect.last)


def with_path(effect: Effect, path: Sequence[str]) -> Effect:
    """Return `effect` with what tells that another model serves than the one chosen first.

    Source: the reference's standalone mode; the path is our addition.
    """
    edits = told_path(effect.edits, path)
    return Effect(effect.removes, edits, stream_response=effect.stream_response, last=effect.last)


def told_path(edits: Sequence[HeaderEdit], path: Sequence[str]) -> tuple[HeaderEdit, ...]:
    """Return `edits` with the response path `fallback` and, behind it, the models called."""
    at = next(at for at, edit in enumerate(edits) if edit.name == RESPONSE_PATH)
    told = (
        HeaderEdit(RESPONSE_PATH, b"fallback"),
        HeaderEdit(b"x-vsr-fallback-attempts", b"%d" % len(path)),
        HeaderEdit(b"x-vsr-fallback-path", ",".join(path).encode()),
    )
    return (*edits[:at], *told, *edits[at + 1 :])


def with_warnings(effect: Effect, warnings: tuple[ProtocolWarning, ...]) -> Effect:
    """Return `effect` with the warnings header behind the protocols'."""
    if not warnings:
        return effect
    names = [edit.name for edit in effect.edits]
    at = names.index(UPSTREAM_PROTOCOL) + 1 if UPSTREAM_PROTOCOL in names else len(names)
    edits = (*effect.edits[:at], _warnings_edit(warnings), *effect.edits[at:])
    return Effect(effect.removes, edits, stream_response=effect.stream_response, last=effect.last)


def stream_for(
    client: Protocol, target: Target, outgoing: Outgoing, chat: ChatRequest, unix_s: int
) -> UsageStream:
    """Return what turns the backend's event stream into the client's and reads its usage."""
    if client is target.protocol:
        if client is Protocol.ANTHROPIC:
            return AnthropicStreamObserver()
        return StreamUsage(hides=outgoing.hides_usage)
    if client is Protocol.ANTHROPIC:
        return ChatStreamToAnthropic()
    return AnthropicStreamToChat(created=unix_s, include_usage=_asks_for_usage(chat))


def whole_answer(
    client: Protocol,
    target: Target,
    body: bytes,
    unix_s: int,
    known: tuple[ProtocolWarning, ...],
) -> tuple[bytes, tuple[HeaderEdit, ...]]:
    """Let the plugins change a whole answer of success, and translate it; return header edits too.

    Args:
        client: what it is translated to.
        target: serves the request.
        body: the backend's.
        unix_s: shown as the time of the answer where the backend's form has none.
        known: warnings of the request, which those of the answer are added to.

    Raises:
        AnswerNotTranslatable: it is no answer in the backend's protocol.
    """
    upstream, edits = target.protocol, target.chain.answer_edits
    original = body
    try:
        if upstream is Protocol.ANTHROPIC and (edits or client is Protocol.OPENAI):
            body = anthropic_response_to_chat(body, created=unix_s)
        for edit in edits:
            body = edit(body)
        if client is Protocol.OPENAI:
            return body, ()
        message = chat_response_to_anthropic(
            body, original=original if upstream is Protocol.ANTHROPIC else None
        )
    except UntranslatableResponse as error:
        raise AnswerNotTranslatable(str(error)) from None
    # What a backend merely leaves out is not worth a header; the records have none.
    losses = [it for it in message.warnings if it.severity is not Severity.INFO]
    lost = (_warnings_edit((*known, *losses)),) if losses else ()
    return message.body, lost


def whole_failure(client: Protocol, status: int, body: bytes) -> bytes:
    """Return a backend's error in the client's form."""
    if client is Protocol.ANTHROPIC:
        return anthropic_backend_error(status, body)
    return openai_backend_error(status, body)


def in_protocol(
    client: Protocol, answer: ImmediateResponse, model: str, *, is_stream: bool
) -> ImmediateResponse:
    """Return a chat answer of the Router's own as the client reads it, from the selected model."""
    if client is Protocol.OPENAI:
        return answer
    body = answer.body.replace(b'{"id":"chatcmpl-fast-', b'{"id":"msg_fast_')
    if is_stream:
        stream = ChatStreamToAnthropic(model=model)
        body = stream.feed(body) + stream.close()
    else:
        body = chat_response_to_anthropic(body, model=model).body
    return ImmediateResponse(answer.status, answer.edits, body)


def error_body(client: Protocol, error: VsrError) -> bytes:
    """Return the body of an error of the Router's own."""
    return anthropic_error(error) if client is Protocol.ANTHROPIC else openai_error(error)


def reported_usage(body: bytes) -> Usage | None:
    """Return the usage in a whole answer of either protocol; None when any of it is not known."""
    try:
        members = read_members(body) or {}
        return usage_of(read_reported(members.get("usage", NULL)))
    except InvalidRequest:  # the strict decoder's name for any malformed JSON
        return None


def usage_of(reported: ReportedUsage | None) -> Usage | None:
    """Return what budgets and logs count by; None when any of it is not known."""
    if reported is None or reported.prompt_tokens is None or reported.completion_tokens is None:
        return None
    return Usage(reported.prompt_tokens, reported.completion_tokens)


def _warnings_edit(warnings: Iterable[ProtocolWarning]) -> HeaderEdit:
    return HeaderEdit(WARNINGS, render_warnings(warnings).encode())


def _asks_for_usage(chat: ChatRequest) -> bool:
    options = read_members(chat.envelope.members.get("stream_options", NULL)) or {}
    return bytes(options.get("include_usage", NULL)) == b"true"
