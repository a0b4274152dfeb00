"""Takes out of a result what differs between two equal runs.

Source: the reference's normaliser: clocks and trace ids in headers, times of creation in bodies,
the order of removals. Ours besides: names in lower case, lengths judged by their own body, one
order of pseudo-headers, and no trace of a body phase that changed nothing.
"""

import re

import msgspec

from vsr.routing.parity.result import (
    OWN_LENGTH,
    CaseResult,
    EffectResult,
    ImmediateResult,
    Line,
    PhaseResults,
    ResponseResult,
    UpstreamResult,
)

VOLATILE = "<volatile>"
_VOLATILE_NAMES = frozenset(
    {"date", "traceparent", "tracestate", "x-envoy-upstream-service-time", "x-vsr-replay-id"}
)
# An unescaped quote behind `{` or `,` opens a name: inside a string it would be escaped.
_CREATED = re.compile(
    r'([{,]\s*"created(?:_at)?"\s*:\s*)-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?=\s*[,}])'
)
_EVENT = "data: "
_PAIR = 2
"""Members of a line that replaces; an added one has a third."""


def normalized(result: CaseResult) -> CaseResult:
    """Return `result` in the one form in which equal runs are equal; once is as good as twice.

    A bare number in a `content-length` counts as its own body's: `result_of` has judged ours, and
    a pinned one counts a body that had its times of creation.
    """
    return msgspec.structs.replace(
        result,
        phases=_phases(result.phases),
        upstream=_upstream(result.upstream) if result.upstream else None,
        response=_response(result.response) if result.response else None,
    )


def normalized_body(text: str) -> str:
    """Return `text` with 0 for every time of creation, in JSON and in events; the rest stays."""
    if _is_json_container(text):
        return _CREATED.sub(r"\g<1>0", text)
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line.startswith(_EVENT) and _is_json_container(line.removeprefix(_EVENT)):
            lines[index] = _CREATED.sub(r"\g<1>0", line)
    return "\n".join(lines)


def _is_json_container(text: str) -> bool:
    if text.lstrip()[:1] not in {"{", "["}:
        return False
    try:
        msgspec.json.decode(text.encode("utf-8", "replace"), type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def _upstream(upstream: UpstreamResult) -> UpstreamResult:
    return UpstreamResult(_message_lines(upstream.headers), normalized_body(upstream.body))


def _response(response: ResponseResult) -> ResponseResult:
    return ResponseResult(
        response.status,
        _message_lines(response.headers),
        normalized_body(response.body),
        [normalized_body(chunk) for chunk in response.chunks],
    )


def _phases(phases: PhaseResults) -> PhaseResults:
    body = phases.response_body
    if isinstance(body, list):
        body = [_effect(effect) for effect in body]
    elif body is not None:
        # A session may say that it need not be called: the same as a call without effect.
        body = None if body == EffectResult() else _effect(body)
    return PhaseResults(
        _effect_if_run(phases.request_headers),
        _effect_if_run(phases.request_body),
        _effect_if_run(phases.response_headers),
        body,
    )


def _effect_if_run(effect: EffectResult | None) -> EffectResult | None:
    return None if effect is None else _effect(effect)


def _effect(effect: EffectResult) -> EffectResult:
    sets = _lines(effect.sets)
    # What an effect sets in place of all there is, it need not remove; but a length may be
    # removed and its set then be skipped, so that counts.
    replaced = {line[0] for line in sets if len(line) == _PAIR} - {"content-length"}
    return msgspec.structs.replace(
        effect,
        sets=sets,
        removes=sorted({name.lower() for name in effect.removes} - replaced),
        body=None if effect.body is None else normalized_body(effect.body),
        immediate=_immediate(effect.immediate) if effect.immediate else None,
    )


def _immediate(answer: ImmediateResult) -> ImmediateResult:
    return ImmediateResult(answer.status, _lines(answer.headers), normalized_body(answer.body))


def _message_lines(lines: list[Line]) -> list[Line]:
    """Return them with the pseudo-headers, whose order means nothing, in front and sorted."""
    plain = _lines(lines)
    pseudo = [line for line in plain if _name(line)[:1] == ":"]
    return sorted(pseudo, key=_name) + [line for line in plain if _name(line)[:1] != ":"]


def _lines(lines: list[Line]) -> list[Line]:
    return [[_name(line).lower(), _value(line), *line[2:]] for line in lines]


def _name(line: Line) -> str:
    return str(line[0])


def _value(line: Line) -> str:
    name, value = _name(line).lower(), str(line[1])
    if name in _VOLATILE_NAMES or name.endswith("-latency-ms"):
        return VOLATILE
    if name == "content-length" and value.isdigit():
        return OWN_LENGTH
    if name == "accept-encoding" and not value:
        # The reference means `identity`, but puts it where the proxy does not look.
        return "identity"
    return value
