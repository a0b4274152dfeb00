"""What a case comes to as text: the form of `expected.yaml`, and a record brought to it."""

import msgspec

from vsr.headers import HeaderLine
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.parity.record import (
    ClientResponse,
    Phase,
    PhaseCall,
    Record,
    UpstreamMessage,
)

OWN_LENGTH = "<own>"
"""Stands for a `content-length` that equals the length of the message's own body."""
Line = list[str | bool]
"""Name and value; a third element, True, means that the line is added to those of its name."""


class _Form(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Members that are empty are left out."""


class ImmediateResult(_Form):
    """The Router's own answer, before its length is added."""

    status: int
    headers: list[Line] = []
    body: str = ""


class EffectResult(_Form):
    """What one phase wanted."""

    sets: list[Line] = msgspec.field(default_factory=list, name="set")
    removes: list[str] = msgspec.field(default_factory=list, name="remove")
    body: str | None = None
    clear_route_cache: bool = False
    response_body_mode: str | None = None
    immediate: ImmediateResult | None = None


class PhaseResults(_Form):
    """Effects by phase; None for a phase that did not run."""

    request_headers: EffectResult | None = None
    request_body: EffectResult | None = None
    response_headers: EffectResult | None = None
    response_body: EffectResult | list[EffectResult] | None = None
    """A list has one effect per chunk and one for the end of the stream."""


class UpstreamResult(_Form):
    """The request that the backend got."""

    headers: list[Line] = []
    body: str = ""


class ResponseResult(_Form):
    """The response that the client got; a streamed one has chunks in place of a body."""

    status: int
    headers: list[Line] = []
    body: str = ""
    chunks: list[str] = []


class EvidenceResult(_Form):
    """What was decided."""

    recipe: str | None = None
    decision: str | None = None
    confidence: float | None = None
    category: str | None = None
    model: str | None = None
    selection_method: str | None = None
    reasoning_mode: str | None = None
    cache_hit: bool = False
    signals: dict[str, list[str]] = {}


class Variant(_Form):
    """Another text that was once recorded for some members."""

    replaces: list[str]
    value: str
    note: str = ""


class CaseResult(_Form):
    """All that is pinned about one case."""

    route: str = ""
    phases: PhaseResults = msgspec.field(default_factory=PhaseResults)
    upstream: UpstreamResult | None = None
    response: ResponseResult | None = None
    evidence: EvidenceResult = msgspec.field(default_factory=EvidenceResult)
    error: str = ""
    variants: list[Variant] = []


def result_of(record: Record) -> CaseResult:
    """Return `record` as text, nothing normalised but the lengths it declares.

    A declared length that is its body's becomes `OWN_LENGTH`, any other names both numbers. Bytes
    that are not UTF-8 become lone surrogates, so that chunks can still be joined.
    """
    return CaseResult(
        route=_text(record.route or b""),
        phases=_phases(record),
        upstream=_upstream(record.upstream) if record.upstream else None,
        response=_response(record.response) if record.response else None,
        evidence=msgspec.convert(record.evidence, EvidenceResult, from_attributes=True),
        error=record.error,
    )


def joined(result: CaseResult) -> CaseResult:
    """Return `result` without the places at which a stream was cut: one body in place of chunks."""
    response = result.response
    if response is None or not response.chunks:
        return result
    # Through bytes: a cut inside a character left halves of it in two chunks.
    body = "".join(response.chunks).encode("utf-8", "surrogateescape")
    return msgspec.structs.replace(
        result,
        phases=msgspec.structs.replace(result.phases, response_body=None),
        response=msgspec.structs.replace(response, body=_text(body), chunks=[]),
    )


def _phases(record: Record) -> PhaseResults:
    results = PhaseResults()
    for call in record.calls:
        if call.phase is not Phase.RESPONSE_BODY:
            setattr(results, call.phase, _effect(call.effect, call.given))
    calls = record.effects(Phase.RESPONSE_BODY)
    if any(call.effect.stream_response for call in record.effects(Phase.RESPONSE_HEADERS)):
        # A stream that nothing was done to is as good as one that the session was not shown.
        if any(call.effect.body not in {None, call.given} for call in calls):
            results.response_body = [_delivery(call) for call in calls]
    elif calls:
        results.response_body = _effect(calls[-1].effect, calls[-1].given)
    return results


def _delivery(call: PhaseCall) -> EffectResult:
    """Return the effect on one chunk: a session may leave a chunk alone or repeat it."""
    body = call.given if call.effect.body is None else call.effect.body
    return EffectResult(body=_text(body) if body or call.given else None)


def _effect(effect: Effect, given: bytes) -> EffectResult:
    immediate = effect.immediate
    if immediate is not None:
        edits = _edits(immediate.edits, immediate.body)
        answer = ImmediateResult(immediate.status, edits, _text(immediate.body))
        return EffectResult(immediate=answer)
    return EffectResult(
        sets=_edits(effect.all_edits(), given if effect.body is None else effect.body),
        removes=[_text(name) for name in effect.removes],
        body=None if effect.body is None else _text(effect.body),
        clear_route_cache=effect.clear_route_cache,
        response_body_mode="streamed" if effect.stream_response else None,
    )


def _edits(edits: tuple[HeaderEdit, ...], body: bytes) -> list[Line]:
    lines = _lines([(edit.name, edit.value) for edit in edits], body)
    return [[*line, True] if edit.append else line for line, edit in zip(lines, edits, strict=True)]


def _upstream(message: UpstreamMessage) -> UpstreamResult:
    return UpstreamResult(_lines(message.lines, message.body), _text(message.body))


def _response(response: ClientResponse) -> ResponseResult:
    body = b"".join(response.chunks)
    result = ResponseResult(response.status, _lines(response.lines, body))
    if response.is_streamed:
        result.chunks = [_text(chunk) for chunk in response.chunks]
    else:
        result.body = _text(body)
    return result


def _lines(lines: list[HeaderLine], body: bytes) -> list[Line]:
    return [
        [_text(name), _length(value, body) if name == b"content-length" else _text(value)]
        for name, value in lines
    ]


def _length(value: bytes, body: bytes) -> str:
    if value == b"%d" % len(body):
        return OWN_LENGTH
    return f"{_text(value)} (the body has {len(body)})"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
