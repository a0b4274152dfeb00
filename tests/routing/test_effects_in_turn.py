"""Two effects at once, prepared and met in any order, against the same two one after the other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.errors import RoutingFailed
from vsr.headers import HeaderLine, Headers
from vsr.routing.effect import (
    MAX_LINES,
    UNCHANGED,
    Effect,
    HeaderEdit,
    applied,
    apply_headers,
)

LENGTH = b"content-length"

_names = st.sampled_from(
    [b"x-a", b"x-b", b"x-c", b"host", b":path", b":method", b":status", b"x-envoy-a", LENGTH]
)
_values = st.sampled_from([b"", b"1", b"/p", b"200", b"199"])
_edits = st.lists(st.builds(HeaderEdit, _names, _values, st.booleans()), max_size=5).map(tuple)
_lines = st.lists(st.tuples(_names.filter(lambda name: name[:1] != b":"), _values), max_size=8)


@st.composite
def _effects(draw: st.DrawFn) -> Effect:
    """Draw an effect; half of them leave the value of a last header open."""
    removes, edits = draw(st.frozensets(_names)), draw(_edits)
    if draw(st.booleans()):
        return Effect(removes, edits)
    last = draw(st.sampled_from([LENGTH, b"x-last", b"x-a"]))
    return Effect(removes | {last}, edits, last=(last, b""))


def _as_sent(effect: Effect, value: bytes) -> Effect:
    return effect if effect.last is None else effect.completed(value)


def _anew(effect: Effect) -> Effect:
    """Return an equal effect of which nothing has been worked out, its last header an edit."""
    last = () if effect.last is None else (HeaderEdit(*effect.last),)
    return Effect(effect.removes, (*effect.edits, *last))


def _in_turn(
    lines: list[HeaderLine], target: bytes, first: Effect, second: Effect
) -> tuple[list[HeaderLine], bytes]:
    headers = Headers([(b":path", target), *lines])
    apply_headers(headers, _anew(first))
    apply_headers(headers, _anew(second))
    return [line for line in headers.lines if line[0][:1] != b":"], headers.get(b":path")


def _by_name(lines: list[HeaderLine], *, without: frozenset[bytes]) -> list[HeaderLine]:
    """Return lines in an order that only says in which order lines of one name stand."""
    return sorted((line for line in lines if line[0] not in without), key=lambda line: line[0])


def _check(lines: list[HeaderLine], first: Effect, second: Effect) -> None:
    headers = Headers(list(lines))

    result, target = applied(headers, b"/", first, second)

    expected, expected_target = _in_turn(lines, b"/", first, second)
    # A length that completes an effect may be left out: who sends the message frames it anew.
    lasts = [effect.last for effect in (first, second) if effect.last is not None]
    without = frozenset({LENGTH} if any(last[0] == LENGTH for last in lasts) else ())
    assert target == expected_target
    assert _by_name(result.lines, without=without) == _by_name(expected, without=without)
    assert headers.lines == lines
    assert result.first_values() == dict(reversed(result.lines))


@given(
    effects=st.lists(_effects(), min_size=2, max_size=4),
    meetings=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), _lines, _values), min_size=1, max_size=12
    ),
)
@settings(deadline=None, max_examples=300)
def test_effects_that_meet_again_and_again_equal_two_in_turn(
    effects: list[Effect], meetings: list[tuple[int, int, list[HeaderLine], bytes]]
) -> None:
    """What was worked out for one pair says nothing of another, in whatever order they meet."""
    for first, second, lines, value in meetings:
        _check(
            lines,
            _as_sent(effects[first % len(effects)], value),
            _as_sent(effects[second % len(effects)], value + b"0"),
        )


def test_second_effect_may_meet_others_in_turn() -> None:
    """Routes share the effect of one phase and differ in that of the other."""
    after = Effect(frozenset({b"x-gone"}), (HeaderEdit(b"x-after", b"1"),))
    befores = [
        Effect(edits=(HeaderEdit(b"x-one", b"1"),)),
        Effect(edits=(HeaderEdit(b"x-gone", b"1"), HeaderEdit(b":path", b"/two"))),
        Effect(frozenset({b"x-after", b"x-a"})),
        UNCHANGED,
    ]

    for before in [*befores, *reversed(befores), befores[1], befores[0], befores[1]]:
        _check([(b"x-a", b"1"), (b"x-gone", b"2"), (b"x-after", b"3")], before, after)


def test_completed_effects_share_no_value() -> None:
    """Both requests of a route are completed from the same prepared effects."""
    before = Effect(frozenset({b"x-id"}), last=(b"x-id", b""))
    after = Effect(frozenset({LENGTH}), (HeaderEdit(b"x-b", b"1"),), last=(LENGTH, b""))

    results = [
        applied(Headers([(b"x-id", b"old")]), b"/", before.completed(value), after.completed(value))
        for value in (b"1", b"2", b"1")
    ]

    assert [result.get(b"x-id") for result, _ in results] == [b"1", b"2", b"1"]
    assert all(LENGTH not in result for result, _ in results)


def test_unchanged_keeps_nothing_of_a_request() -> None:
    """The same two effects, whatever headers they meet."""
    for value in (b"1", b"2"):
        result, target = applied(Headers([(b"x-a", value)]), b"/" + value, UNCHANGED, UNCHANGED)

        assert (result.lines, target) == ([(b"x-a", value)], b"/" + value)


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
@pytest.mark.parametrize(
    "edits",
    [
        (),
        (HeaderEdit(b"x-new", b"1"),),
        (HeaderEdit(b"x-new", b"1", append=True),),
        (HeaderEdit(b"x-new", b"1"), HeaderEdit(b"x-new", b"2")),
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_result_is_limited_as_that_of_two_in_turn(
    more: int, edits: tuple[HeaderEdit, ...], *, is_first: bool
) -> None:
    """To the line, whichever of the two adds it."""
    lines = [(b"x-%d" % number, b"") for number in range(MAX_LINES - 1 + more)]
    effect = Effect(edits=edits)
    first, second = (effect, UNCHANGED) if is_first else (UNCHANGED, effect)
    expected = Headers(list(lines))

    try:
        apply_headers(expected, _anew(first))
        apply_headers(expected, _anew(second))
    except RoutingFailed:
        with pytest.raises(RoutingFailed):
            applied(Headers(lines), b"/", first, second)
    else:
        assert applied(Headers(lines), b"/", first, second) == (expected, b"/")
