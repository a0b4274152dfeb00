"""Differences of two results, as a reader sees them."""

import pytest

from vsr.routing.parity.body_diff import BodyRule
from vsr.routing.parity.diff import differences
from vsr.routing.parity.result import (
    CaseResult,
    EffectResult,
    EvidenceResult,
    Line,
    PhaseResults,
    ResponseResult,
    UpstreamResult,
    Variant,
)


def listed(wanted: CaseResult, got: CaseResult, rule: BodyRule = BodyRule.AS_JSON) -> list[str]:
    """Return the differences as text."""
    return [str(each) for each in differences(wanted, got, rule)]


def of_bodies(wanted: str, got: str, rule: BodyRule = BodyRule.AS_JSON) -> list[str]:
    """Return the differences of two upstream bodies."""
    first, second = (CaseResult(upstream=UpstreamResult(body=body)) for body in (wanted, got))
    return listed(first, second, rule)


def of_lines(wanted: list[Line], got: list[Line]) -> list[str]:
    """Return the differences of two header lists."""
    first, second = (CaseResult(upstream=UpstreamResult(lines)) for lines in (wanted, got))
    return listed(first, second)


def test_equal_results_have_no_difference() -> None:
    """Variants are a note of the corpus, not a result."""
    result = CaseResult(route="a", variants=[Variant(["route"], "b")])

    assert listed(result, CaseResult(route="a")) == []


def test_plain_member_is_named_with_its_path() -> None:
    """What is not there is called absent."""
    found = listed(
        CaseResult(route="a", response=ResponseResult(200)),
        CaseResult(response=ResponseResult(404), error="x"),
    )

    assert found == [
        'route: wanted "a", got (absent)',
        "response.status: wanted 200, got 404",
        'error: wanted (absent), got "x"',
    ]


def test_phase_that_did_not_run_differs_from_one_without_effect() -> None:
    """A phase is part of what is pinned."""
    ran = CaseResult(phases=PhaseResults(request_body=EffectResult()))

    assert listed(ran, CaseResult()) == ["phases.request_body: wanted {}, got (absent)"]


def test_header_lines_are_compared_by_name() -> None:
    """One difference per name, whatever its place."""
    found = of_lines(
        [["a", "1"], ["b", "2"], ["c", "3"], ["c", "4"]],
        [["b", "2"], ["c", "3"], ["c", "5", True], ["d", ""]],
    )

    assert found == [
        'upstream.headers[a]: wanted "1", got (absent)',
        'upstream.headers[c]: wanted "3" and "4", got "3" and "5" (appended)',
        'upstream.headers[d]: wanted (absent), got ""',
    ]


@pytest.mark.parametrize(
    ("wanted", "got"),
    [("a b", "b a"), ("a b a", "a a b"), ("a b c", "c a b")],
)
def test_order_of_header_lines_counts(wanted: str, got: str) -> None:
    """Also that of several lines of one name."""
    first, second = ([[name, "1"] for name in names.split()] for names in (wanted, got))

    [found] = of_lines(first, second)  # type: ignore[arg-type]  # a list is a list of more

    assert found == (
        f"upstream.headers (order): wanted {', '.join(wanted.split())},"
        f" got {', '.join(got.split())}"
    )


def test_removals_are_compared_as_a_set() -> None:
    """One that is missing does not shift the others."""
    first, second = (
        CaseResult(phases=PhaseResults(EffectResult(removes=list(names)))) for names in ("ab", "bc")
    )

    assert listed(first, second) == [
        "phases.request_headers.remove[a]: wanted listed, got (absent)",
        "phases.request_headers.remove[c]: wanted (absent), got listed",
    ]


def test_effects_of_chunks_are_compared_one_by_one() -> None:
    """And with the body of a phase that saw it whole."""
    first, second = (
        CaseResult(phases=PhaseResults(response_body=[EffectResult(body=each) for each in bodies]))
        for bodies in (["a", "b"], ["a", "c", "d"])
    )
    whole = CaseResult(phases=PhaseResults(response_body=EffectResult(body="a")))

    assert listed(first, second) == [
        'phases.response_body[1].body, character 0: wanted "b", got "c"',
        'phases.response_body[2]: wanted (absent), got {"body": "d"}',
    ]
    assert listed(first, whole) == [
        'phases.response_body: wanted [{"body": "a"}, {"body": "b"}], got {"body": "a"}'
    ]


def test_bodies_are_equal_if_their_values_are() -> None:
    """Members in any order, white space as may be; as text they must be the same."""
    wanted, got = '{"a":1,"b":[true,{}]}', '{ "b": [true, {}], "a": 1.0 }'

    assert of_bodies(wanted, got) == []
    [found] = of_bodies('{"a":1}', '{"a":2}', BodyRule.AS_TEXT)
    assert found == r'upstream.body, character 5: wanted "{\"a\":1}", got "{\"a\":2}"'
    assert len(of_bodies(wanted, got, BodyRule.AS_TEXT)) == 1


@pytest.mark.parametrize(
    ("wanted", "got", "found"),
    [
        ('{"a":{"b":[1,2]}}', '{"a":{"b":[1,3]}}', "$.a.b[1]: wanted 2, got 3"),
        ('{"a":1}', '{"a":true}', "$.a: wanted 1, got true"),
        ('{"a":0}', '{"a":false}', "$.a: wanted 0, got false"),
        ('{"a":null}', "{}", "$.a: wanted null, got (absent)"),
        ("[]", '[""]', '$[0]: wanted (absent), got ""'),
        ('{"body":"x"}', '{"body":{}}', '$.body: wanted "x", got {}'),
        ('{"headers":["a"]}', '{"headers":["b"]}', '$.headers[0]: wanted "a", got "b"'),
        ('{"a":"1"}', '{"a":1}', '$.a: wanted "1", got 1'),
    ],
)
def test_difference_of_json_bodies_has_a_path(wanted: str, got: str, found: str) -> None:
    """True is not 1, null is not absent, and no member of a body is special."""
    assert of_bodies(wanted, got) == [f"upstream.body {found}"]


@pytest.mark.parametrize("got", ['{"a":1,"a":1}', '{"a":1', "", '{"a":NaN}', '{"a":1}x'])
def test_body_that_is_not_sound_json_differs(got: str) -> None:
    """A name that is there twice is read by some as the first, by others as the last."""
    assert len(of_bodies('{"a":1}', got)) == 1


def test_events_are_compared_line_by_line() -> None:
    """The payload of each as JSON."""
    wanted = 'data: {"a":1,"b":2}\n\ndata: [DONE]\n\n'

    assert of_bodies(wanted, 'data: {"b":2,"a":1}\n\ndata: [DONE]\n\n') == []
    assert of_bodies(wanted, 'data: {"b":3,"a":1}\n\ndata: [DONE]\n\n') == [
        "upstream.body, line 1 $.b: wanted 2, got 3"
    ]
    assert of_bodies(wanted, 'data: {"a":1,"b":2}\n\n') == [
        'upstream.body, line 3, character 0: wanted "data: [DONE]", got ""',
        'upstream.body, line 4: wanted "", got (absent)',
        'upstream.body, line 5: wanted "", got (absent)',
    ]


def test_evidence_is_compared_by_value() -> None:
    """A signal may be called as a special member is."""
    first, second = (
        CaseResult(evidence=EvidenceResult(confidence=each, signals={"headers": [name]}))
        for each, name in ((1, "a"), (0.5, "b"))
    )

    assert listed(first, second) == [
        "evidence.confidence: wanted 1, got 0.5",
        'evidence.signals.headers[0]: wanted "a", got "b"',
    ]


def test_long_value_is_shortened() -> None:
    """A line is to be read."""
    [found] = listed(CaseResult(), CaseResult(error="x" * 1000))

    assert len(found) < 250
    assert found.endswith("...")
