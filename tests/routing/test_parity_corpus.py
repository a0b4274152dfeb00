"""What a record is held to, and the file that pins it."""

import pytest

from vsr.routing.effect import Effect
from vsr.routing.parity.body_diff import BodyRule
from vsr.routing.parity.corpus import Judge, read_corpus, render_expected
from vsr.routing.parity.record import ClientResponse, Phase, Record
from vsr.routing.parity.result import (
    CaseResult,
    EffectResult,
    PhaseResults,
    ResponseResult,
    Variant,
)

CASES = """
cases:
  - name: a
    request: {method: GET, path: /}
"""


def answered(*chunks: bytes, is_streamed: bool = False) -> Record:
    """Return a record with nothing but a response."""
    return Record("a", response=ClientResponse(200, [], list(chunks), is_streamed))


def test_corpus_pairs_cases_with_what_they_come_to() -> None:
    """By name."""
    corpus = read_corpus(CASES, "a: {route: m}")

    assert corpus.expected == {"a": CaseResult(route="m")}
    assert list(corpus.cases) == ["a"]


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ("{}", "only in one of the two files: a"),
        ("{a: {}, b: {}}", "only in one of the two files: b"),
        ("a: {rout: m}", "rout"),
        ("a: {phases: {request_body: {sets: []}}}", "sets"),
    ],
)
def test_expectation_that_cannot_fail_is_refused(expected: str, says: str) -> None:
    """A case without one, and a member that nobody compares."""
    with pytest.raises(ValueError, match=says):
        read_corpus(CASES, expected)


def test_pinned_results_read_back_as_they_were() -> None:
    """Once normalised; line ends, quotes and words of YAML survive, each text on one line."""
    result = CaseResult(
        route="off",
        phases=PhaseResults(
            EffectResult([["a", "1"]], body=""), response_body=[EffectResult(body="\"\n\n'é")]
        ),
        response=ResponseResult(200, [["yes", "null"]], chunks=["data: x\n\n"]),
    )

    text = render_expected({"a": result}, "make golden")

    assert text.splitlines()[0].endswith("Rewritten by: make golden")
    assert r'"data: x\n\n"' in text
    assert read_corpus(CASES, text).expected == {"a": result}


def test_record_is_judged_after_normalisation() -> None:
    """By the corpus's rule for bodies."""
    expected = CaseResult(response=ResponseResult(200, body='{"created":5,"a":1}'))

    assert Judge(expected).differences(answered(b'{"a":1,"created":7}')) == []
    assert Judge(expected).differences(answered(b'{"a":2,"created":7}'))
    assert Judge(expected, BodyRule.AS_TEXT).differences(answered(b'{"a":1,"created":7}'))


def test_variant_counts_only_where_it_is_accepted() -> None:
    """At all its places together."""
    body = ["phases.response_body.body", "response.body"]
    expected = CaseResult(
        phases=PhaseResults(response_body=EffectResult(body="old")),
        response=ResponseResult(200, body="old"),
        variants=[Variant(body, "new")],
    )
    both, one = answered(b"new"), answered(b"old")
    both.note(Phase.RESPONSE_BODY, Effect(body=b"new"))
    one.note(Phase.RESPONSE_BODY, Effect(body=b"new"))

    assert Judge(expected, accepts_variants=True).differences(both) == []
    assert len(Judge(expected, accepts_variants=True).differences(one)) == 1
    assert len(Judge(expected).differences(both)) == 2


def test_stream_that_was_cut_anew_is_judged_as_a_whole() -> None:
    """Otherwise the chunks count, too."""
    expected = CaseResult(response=ResponseResult(200, chunks=["ab", "c"]))
    record = answered(b"a", b"bc", is_streamed=True)

    assert Judge(expected).differences(record)
    assert Judge(expected).differences(record, is_cut_anew=True) == []
    assert Judge(expected).differences(answered(b"a", is_streamed=True), is_cut_anew=True)
