"""What a comparison of two runs leaves out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.routing.parity.normalize import normalized, normalized_body
from vsr.routing.parity.result import (
    CaseResult,
    EffectResult,
    ImmediateResult,
    Line,
    PhaseResults,
    ResponseResult,
    UpstreamResult,
)


def lines_of(*lines: Line) -> list[Line]:
    """Return the lines of a response after normalisation."""
    response = normalized(CaseResult(response=ResponseResult(200, list(lines)))).response
    assert response is not None
    return response.headers


def effect_of(effect: EffectResult) -> EffectResult:
    """Return an effect after normalisation."""
    found = normalized(CaseResult(phases=PhaseResults(request_body=effect))).phases.request_body
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name",
    [
        "date",
        "traceparent",
        "tracestate",
        "X-Envoy-Upstream-Service-Time",
        "x-vsr-replay-id",
        "x-vsr-routing-latency-ms",
        "any-latency-ms",
    ],
)
def test_value_that_no_two_runs_share_is_taken_out(name: str) -> None:
    """Clocks and ids; the name stays, in lower case."""
    assert lines_of([name, "7"]) == [[name.lower(), "<volatile>"]]


@pytest.mark.parametrize("name", ["latency-ms", "x-latency-msec", "x-date", "x-request-id"])
def test_other_value_stays(name: str) -> None:
    """What merely looks like it is compared."""
    assert lines_of([name, "7"]) == [[name, "7"]]


def test_encoding_that_the_reference_misplaces_is_identity() -> None:
    """Empty and `identity` mean the same; anything else does not."""
    assert (
        lines_of(["accept-encoding", ""], ["accept-encoding", "identity"])
        == [["accept-encoding", "identity"]] * 2
    )
    assert lines_of(["accept-encoding", "gzip"]) == [["accept-encoding", "gzip"]]


def test_pinned_length_counts_as_its_bodys_own() -> None:
    """A length that was found wrong stays visible."""
    assert lines_of(["content-length", "186"]) == [["content-length", "<own>"]]
    wrong: Line = ["content-length", "5 (the body has 6)"]
    assert lines_of(wrong) == [wrong]


def test_pseudo_headers_of_a_message_are_sorted_in_front() -> None:
    """Their order has no meaning; that of the others has."""
    found = lines_of([":scheme", "a"], [":method", "b"], ["x-b", "c"], ["x-a", "d"])

    assert [line[0] for line in found] == [":method", ":scheme", "x-b", "x-a"]


def test_sets_keep_their_order_and_removals_do_not() -> None:
    """Names of both are lower-cased; an added line keeps its mark."""
    effect = effect_of(
        EffectResult(sets=[["X-B", "1"], [":path", "/"], ["x-a", "2", True]], removes=["C", "b"])
    )

    assert effect.sets == [["x-b", "1"], [":path", "/"], ["x-a", "2", True]]
    assert effect.removes == ["b", "c"]


def test_removal_of_what_is_set_anyway_says_nothing() -> None:
    """Unless the set adds a line, or is of the length, which a stream does not let through."""
    sets: list[Line] = [["a", "1"], ["b", "1", True], ["content-length", "3"]]

    effect = effect_of(EffectResult(sets=sets, removes=["A", "b", "content-length"]))

    assert effect.removes == ["b", "content-length"]


@pytest.mark.parametrize(
    ("body", "same_as"),
    [
        ('{"created":17}', '{"created":0}'),
        ('{"created": 17, "a":1}', '{"created": 0, "a":1}'),
        ('[{"a":{"created_at":-1.5e+3}}]', '[{"a":{"created_at":0}}]'),
        ('{"a":1,\n "created" : 17 }', '{"a":1,\n "created" : 0 }'),
        (' {"created":17} ', ' {"created":0} '),
        ('data: {"created":1}\n\ndata: [DONE]\n\n', 'data: {"created":0}\n\ndata: [DONE]\n\n'),
        ('id: 1\ndata: {"created":1}\r\n\n', 'id: 1\ndata: {"created":0}\r\n\n'),
    ],
)
def test_time_of_creation_becomes_zero(body: str, same_as: str) -> None:
    """In a JSON object or array and in events; every other byte stays."""
    assert normalized_body(body) == same_as


@pytest.mark.parametrize(
    "body",
    [
        "",
        "created: 17",
        '{"created":"17"}',
        '{"created":null}',
        '{"recreated":17,"created_by":17}',
        '{"a":"{\\"created\\":17}"}',
        '{"a":"x,\\"created\\": 17}"}',
        '{"a":["created",17]}',
        '{"created":17',
        '{"created":17} x',
        'data:{"created":17}\n\n',
        'event: {"created":17}\n\n',
    ],
)
def test_body_without_a_time_of_creation_stays(body: str) -> None:
    """Text that quotes one, other kinds of value, and what is not JSON."""
    assert normalized_body(body) == body


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["created", ',"created":1', '{"created":1}', "\\", '"', "é\n"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["created", "created_at", "a", '"created"', "b"]), inner)
    ),
    max_leaves=12,
)


def _zeroed(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: 0
            if key in {"created", "created_at"}
            and isinstance(item, int | float)
            and not isinstance(item, bool)
            else _zeroed(item)
            for key, item in value.items()
        }
    return [_zeroed(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=3), _json), st.sampled_from([None, 1]))
def test_exactly_the_numbers_of_creation_change(value: object, indent: int | None) -> None:
    """Compared with the same rule on the parsed value."""
    text = json.dumps(value, indent=indent)

    assert normalized_body(text) == json.dumps(_zeroed(value), indent=indent)


def test_body_phase_that_changed_nothing_leaves_no_trace() -> None:
    """A session may say that it need not be called; other phases are compared as they are."""
    idle = CaseResult(phases=PhaseResults(EffectResult(), response_body=EffectResult()))
    busy = CaseResult(phases=PhaseResults(response_body=EffectResult(body="")))

    assert normalized(idle).phases == PhaseResults(EffectResult())
    assert normalized(busy).phases == busy.phases


def test_every_text_of_a_result_is_normalised() -> None:
    """Both messages, replaced bodies, immediate answers, chunks; and a second time is no change."""
    told, untold = '{"created":5}', '{"created":0}'
    line: Line = ["Date", "now"]
    volatile: Line = ["date", "<volatile>"]

    once = normalized(
        CaseResult(
            phases=PhaseResults(
                EffectResult(immediate=ImmediateResult(200, [line], told)),
                EffectResult([line], body=told),
                EffectResult([line]),
                [EffectResult(body=told), EffectResult()],
            ),
            upstream=UpstreamResult([line], told),
            response=ResponseResult(200, [line], told, [told]),
        )
    )

    assert once == CaseResult(
        phases=PhaseResults(
            EffectResult(immediate=ImmediateResult(200, [volatile], untold)),
            EffectResult([volatile], body=untold),
            EffectResult([volatile]),
            [EffectResult(body=untold), EffectResult()],
        ),
        upstream=UpstreamResult([volatile], untold),
        response=ResponseResult(200, [volatile], untold, [untold]),
    )
    assert normalized(once) == once
