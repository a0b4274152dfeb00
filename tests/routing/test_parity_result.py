"""A record as text."""

import pytest

from vsr.routing.effect import Effect, HeaderEdit, ImmediateResponse
from vsr.routing.evidence import Evidence
from vsr.routing.parity.record import ClientResponse, Phase, Record, UpstreamMessage
from vsr.routing.parity.result import (
    CaseResult,
    EffectResult,
    EvidenceResult,
    ImmediateResult,
    Line,
    PhaseResults,
    ResponseResult,
    UpstreamResult,
    joined,
    result_of,
)

LENGTH = b"content-length"
STREAM = Effect(stream_response=True)


def streamed(*answers: tuple[bytes, bytes | None]) -> Record:
    """Return the record of a stream from the chunks given and the bodies answered."""
    record = Record("case")
    record.note(Phase.RESPONSE_HEADERS, STREAM)
    for given, body in answers:
        record.note(Phase.RESPONSE_BODY, Effect(body=body), given)
    return record


def test_effects_become_text_by_phase() -> None:
    """All that an effect may want; a header that completes it is one of the sets."""
    record = Record("case")
    immediate = ImmediateResponse(429, (HeaderEdit(b"a", b"1"),), b"no")
    record.note(Phase.REQUEST_HEADERS, Effect(immediate=immediate))
    edits = (HeaderEdit(b"a", b"1"), HeaderEdit(b"b", "é".encode(), append=True))
    open_effect = Effect(frozenset({b"x"}), edits, clear_route_cache=True, last=(LENGTH, b""))
    record.note(Phase.REQUEST_BODY, open_effect.completed(b"3", body=b"new"), b"old one")
    record.note(Phase.RESPONSE_HEADERS, STREAM)

    phases = result_of(record).phases

    assert phases == PhaseResults(
        EffectResult(immediate=ImmediateResult(429, [["a", "1"]], "no")),
        EffectResult(
            [["a", "1"], ["b", "é", True], ["content-length", "<own>"]],
            ["x"],
            "new",
            clear_route_cache=True,
        ),
        EffectResult(response_body_mode="streamed"),
    )


@pytest.mark.parametrize(
    ("declared", "shown"),
    [(b"3", "<own>"), (b"4", "4 (the body has 3)"), (b"03", "03 (the body has 3)")],
)
def test_declared_length_is_judged_by_the_messages_own_body(declared: bytes, shown: str) -> None:
    """In both messages and in an effect that leaves the body as it is."""
    lines = [(LENGTH, declared)]
    record = Record("case", upstream=UpstreamMessage(lines, b"abc"))
    record.response = ClientResponse(200, lines, [b"a", b"bc"], is_streamed=True)
    record.note(Phase.REQUEST_BODY, Effect(edits=(HeaderEdit(LENGTH, declared),)), b"abc")

    result = result_of(record)

    line: Line = ["content-length", shown]
    assert result.upstream == UpstreamResult([line], "abc")
    assert result.response == ResponseResult(200, [line], chunks=["a", "bc"])
    assert result.phases.request_body == EffectResult([line])


def test_evidence_route_and_error_are_carried_over() -> None:
    """An upstream call without a key has an empty route, like no call."""
    evidence = Evidence(recipe="r", confidence=0.5, signals={"keyword": ["k"]})
    record = Record("case", route=b"m", evidence=evidence, error="routing_error")

    assert result_of(record) == CaseResult(
        route="m",
        evidence=EvidenceResult(recipe="r", confidence=0.5, signals={"keyword": ["k"]}),
        error="routing_error",
    )


def test_stream_shows_what_was_delivered_per_chunk() -> None:
    """A chunk left alone and one repeated are the same; one held back is empty."""
    record = streamed((b"a", None), (b"b", b"b"), (b"c", b""), (b"", b"d"))

    assert result_of(record).phases.response_body == [
        EffectResult(body="a"),
        EffectResult(body="b"),
        EffectResult(body=""),
        EffectResult(body="d"),
    ]


def test_end_of_a_stream_without_data_has_no_body() -> None:
    """There was nothing to deliver and nothing was."""
    result = result_of(streamed((b"a", b"A"), (b"", b"")))

    assert result.phases.response_body == [EffectResult(body="A"), EffectResult()]


def test_stream_that_passes_unchanged_leaves_no_trace() -> None:
    """As if the session had not been shown the body."""
    assert result_of(streamed((b"a", b"a"), (b"", None))).phases.response_body is None


def test_joined_stream_has_one_body_wherever_it_was_cut() -> None:
    """Also within a character."""
    text = 'data: {"a":"é€"}\n\n'.encode()
    results = []
    for at in range(len(text) + 1):
        record = streamed((text[:at], b"x"), (text[at:], b"y"))
        record.response = ClientResponse(200, [], [text[:at], text[at:]], is_streamed=True)
        results.append(joined(result_of(record)))

    assert results[0].response == ResponseResult(200, body=text.decode())
    assert results[0].phases.response_body is None
    assert all(result == results[0] for result in results)


def test_joining_leaves_a_whole_body_alone() -> None:
    """There are no chunks to join."""
    result = CaseResult(
        phases=PhaseResults(response_body=EffectResult(body="a")),
        response=ResponseResult(200, body="a"),
    )

    assert joined(result) == result
