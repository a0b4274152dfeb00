"""How an effect changes a message: Envoy's rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.errors import RoutingFailed
from vsr.headers import HeaderLine, Headers
from vsr.routing.effect import (
    MAX_EDITS,
    MAX_HEAD_BYTES,
    MAX_LINES,
    UNCHANGED,
    Effect,
    HeaderEdit,
    apply_body,
    apply_headers,
)
from vsr.routing.effect import applied as both_applied

LENGTH = b"content-length"
REQUEST: list[HeaderLine] = [
    (b":method", b"POST"),
    (b":path", b"/v1/chat/completions"),
    (b":authority", b"router"),
    (b":scheme", b"http"),
    (b"host", b"router"),
    (b"x-a", b"1"),
    (b"x-b", b"2"),
    (b"x-a", b"3"),
    (b"x-envoy-original-path", b"/"),
]


def applied(
    effect: Effect, lines: list[HeaderLine] = REQUEST, *, streaming: bool = False
) -> list[HeaderLine]:
    """Return the lines after `effect`."""
    headers = Headers(list(lines))
    apply_headers(headers, effect, streaming=streaming)
    assert headers.get(b"x-a", b"none") == dict(reversed(headers.lines)).get(b"x-a", b"none")
    return headers.lines


def edits(*pairs: tuple[bytes, bytes], append: bool = False) -> tuple[HeaderEdit, ...]:
    """Return edits from names and values."""
    return tuple(HeaderEdit(name, value, append) for name, value in pairs)


def test_default_effect_changes_nothing() -> None:
    """Most phases want nothing."""
    assert applied(UNCHANGED) == REQUEST


def test_prepared_headers_are_not_shared() -> None:
    """Whoever changes a copy leaves the original alone."""
    headers = Headers(list(REQUEST))
    copy = headers.copy()

    apply_headers(copy, Effect(edits=edits((b"x-a", b"new"), (b"x-a", b"more"))))

    assert headers.lines == REQUEST


def test_default_effect_changes_nothing_of_a_large_message() -> None:
    """The limits judge the result of a mutation, not what came in without one."""
    lines = [*REQUEST, *[(b"x-%d" % index, b"") for index in range(95)]]

    assert applied(UNCHANGED, lines) == lines


def test_set_replaces_every_line_and_moves_to_the_end() -> None:
    """One line remains of two."""
    lines = applied(Effect(edits=edits((b"x-a", b"new"))))

    assert lines == [*REQUEST[:5], REQUEST[6], REQUEST[8], (b"x-a", b"new")]


def test_append_adds_a_line() -> None:
    """The lines that are there stay."""
    lines = applied(Effect(edits=edits((b"x-a", b"new"), append=True)))

    assert lines == [*REQUEST, (b"x-a", b"new")]


def test_removal_drops_every_line() -> None:
    """And a name that is not there is no fault."""
    lines = applied(Effect(removes=frozenset({b"x-a", b"x-none"})))

    assert lines == [line for line in REQUEST if line[0] != b"x-a"]


def test_set_of_a_pseudo_header_stays_in_front() -> None:
    """Routing rewrites the path."""
    lines = applied(Effect(edits=edits((b":path", b"/new"), (b"x-c", b"1"))))

    assert (b":path", b"/new") in lines[:4]
    assert sorted(name for name, _ in lines[:4]) == sorted(name for name, _ in REQUEST[:4])
    assert lines[4:] == [*REQUEST[4:], (b"x-c", b"1")]


@pytest.mark.parametrize(
    "effect",
    [
        Effect(edits=edits((b"host", b"evil"))),
        Effect(edits=edits((b":authority", b"evil"))),
        Effect(edits=edits((b":method", b"GET"))),
        Effect(edits=edits((b":scheme", b"https"))),
        Effect(edits=edits((b"x-envoy-original-path", b"/evil"))),
        Effect(edits=edits((b"x-envoy-new", b"1"))),
        Effect(edits=edits((b"x-envoy-new", b"1"), append=True)),
        Effect(edits=edits((b":path", b"/evil"), append=True)),
        Effect(edits=edits((b":status", b"abc"))),
        Effect(edits=edits((b":status", b"199"))),
        Effect(edits=edits((b":status", b"-200"))),
        Effect(edits=edits((b":status", b""))),
        Effect(removes=frozenset({b"host"})),
        Effect(removes=frozenset({b":path", b":method", b":authority", b":scheme"})),
        Effect(removes=frozenset({b"x-envoy-original-path"})),
    ],
)
def test_protected_header_is_left_alone_silently(effect: Effect) -> None:
    """Ignored, not refused: the rest of the effect still counts."""
    assert applied(effect) == REQUEST

    more = Effect(effect.removes | {b"x-b"}, (*effect.edits, HeaderEdit(b"x-c", b"1")))
    kept = [line for line in REQUEST if line[0] != b"x-b"]
    assert applied(more) == [*kept, (b"x-c", b"1")]


@pytest.mark.parametrize("status", [b"200", b"404", b"599"])
def test_status_of_a_response_can_be_set(status: bytes) -> None:
    """Any final one."""
    lines = applied(Effect(edits=edits((b":status", status))), [(b":status", b"500"), (b"a", b"")])

    assert lines == [(b":status", status), (b"a", b"")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"", b"v"),
        (b"X-A", b"v"),
        (b"x a", b"v"),
        (b"x:a", b"v"),
        (b"x\r\n", b"v"),
        (b"x\xe9", b"v"),
        (b":", b"v"),
        (b":Path", b"v"),
        (b"x", b"a\r\nb: c"),
        (b"x", b"a\nb"),
        (b"x", b"a\rb"),
        (b"x", b"a\x00"),
        (b"x", b"\x1b"),
        (b"x", b"\x7f"),
    ],
)
def test_invalid_edit_fails_the_request(name: bytes, value: bytes) -> None:
    """A value with a line end would be two headers."""
    with pytest.raises(RoutingFailed) as caught:
        applied(Effect(edits=edits((name, value))))

    assert caught.value.status == 500


@pytest.mark.parametrize("value", [b"", b"a\tb", b" a ", "é".encode(), b"\xff"])
def test_unusual_value_passes(value: bytes) -> None:
    """Tabs and other bytes are allowed."""
    assert applied(Effect(edits=edits((b"x-c", value))))[-1] == (b"x-c", value)


def test_as_many_edits_as_allowed_pass() -> None:
    """100 sets and 100 removals."""
    names = [b"x-%d" % index for index in range(MAX_EDITS)]

    applied(Effect(removes=frozenset(names)))
    lines = applied(Effect(edits=edits(*[(b"x-a", b"%d" % index) for index in range(MAX_EDITS)])))

    assert lines[-1] == (b"x-a", b"99")


def test_more_edits_than_allowed_fail_the_request() -> None:
    """Of either kind, and however the effect was put together."""
    names = [b"x-%d" % index for index in range(MAX_EDITS + 1)]
    sets = [(b"x-a", b"%d" % index) for index in range(MAX_EDITS)]

    with pytest.raises(RoutingFailed):
        applied(Effect(removes=frozenset(names)))
    with pytest.raises(RoutingFailed):
        applied(Effect(edits=edits(*sets, (b"x-a", b"100"))))
    with pytest.raises(RoutingFailed):
        applied(Effect(edits=edits(*[(name, b"") for name in names])), [])


def test_effect_without_an_open_value_cannot_be_completed() -> None:
    """Only an effect that names its last header has one to complete."""
    with pytest.raises(ValueError, match="leaves no value open"):
        Effect().completed(b"1")


def test_result_with_too_many_lines_fails_the_request() -> None:
    """100 are allowed."""
    lines = [(b"x-%d" % index, b"") for index in range(MAX_LINES - 1)]

    assert len(applied(Effect(edits=edits((b"y", b""))), lines)) == MAX_LINES
    with pytest.raises(RoutingFailed):
        applied(Effect(edits=edits((b"y", b""), (b"z", b""))), lines)


def test_result_with_too_many_bytes_fails_the_request() -> None:
    """60 KiB of names and values are allowed."""
    lines = [(b"x", b"a" * (MAX_HEAD_BYTES - 10))]

    applied(Effect(edits=edits((b"y", b"12345678"))), lines)
    with pytest.raises(RoutingFailed):
        applied(Effect(edits=edits((b"y", b"1234567890"))), lines)


def test_length_is_left_alone_while_streaming() -> None:
    """The length of a streamed body is not the phase's to say; removing it is allowed."""
    lines = [(b"content-length", b"5"), (b"x", b"1")]
    effect = Effect(edits=edits((b"content-length", b"7"), (b"y", b"2")))

    assert applied(effect, lines, streaming=True) == [*lines, (b"y", b"2")]
    assert applied(effect, lines) == [(b"x", b"1"), (b"content-length", b"7"), (b"y", b"2")]
    removing = Effect(removes=frozenset({b"content-length"}))
    assert applied(removing, lines, streaming=True) == [(b"x", b"1")]


_names = st.sampled_from(
    [b"x-a", b"x-b", b"x-c", b"host", b":path", b":method", b":status", b"x-envoy-a", LENGTH]
)
_values = st.sampled_from([b"", b"1", b"200", b"199"])
_edits = st.lists(st.builds(HeaderEdit, _names, _values, st.booleans()), max_size=6)
_lines = st.lists(st.tuples(_names.filter(lambda name: name[:1] != b":"), _values), max_size=8).map(
    lambda lines: [(b":method", b"GET"), (b":path", b"/"), *lines]
)


def is_protected(name: bytes) -> bool:
    """Return whether removals leave `name` alone."""
    return name.startswith((b":", b"x-envoy-")) or name == b"host"


def is_skipped(edit: HeaderEdit, *, streaming: bool) -> bool:
    """Return whether an edit has no effect."""
    name = edit.name
    if name in {b"host", b":authority", b":method", b":scheme"} or name[:8] == b"x-envoy-":
        return True
    if name == b":status" and not (edit.value.isdigit() and int(edit.value) >= 200):
        return True
    return (name[:1] == b":" and edit.append) or (name == b"content-length" and streaming)


def model(lines: list[HeaderLine], effect: Effect, *, streaming: bool) -> list[HeaderLine]:
    """Apply `effect` by the rules, word for word."""
    lines = [line for line in lines if is_protected(line[0]) or line[0] not in effect.removes]
    for edit in effect.edits:
        if is_skipped(edit, streaming=streaming):
            continue
        if not edit.append:
            lines = [line for line in lines if line[0] != edit.name]
        at = len(lines)
        if edit.name[:1] == b":":
            at = sum(1 for line in lines if line[0][:1] == b":")
        lines.insert(at, (edit.name, edit.value))
    return lines


@given(lines=_lines, removes=st.frozensets(_names), wanted=_edits, streaming=st.booleans())
@settings(deadline=None, max_examples=300)
def test_effect_is_applied_by_the_rules(
    lines: list[HeaderLine],
    removes: frozenset[bytes],
    wanted: list[HeaderEdit],
    *,
    streaming: bool,
) -> None:
    """Removals before sets, sets in order, protected names untouched; and again alike."""
    effect = Effect(removes, tuple(wanted))
    expected = model(lines, effect, streaming=streaming)

    assert applied(effect, lines, streaming=streaming) == expected
    assert applied(effect, lines, streaming=streaming) == expected


@given(lines=_lines, removes=st.frozensets(_names), wanted=_edits)
@settings(deadline=None, max_examples=200)
def test_completed_effect_equals_one_made_at_once(
    lines: list[HeaderLine], removes: frozenset[bytes], wanted: list[HeaderEdit]
) -> None:
    """Completing a prepared effect is a short cut and nothing else; the prepared one stays."""
    open_ended = Effect(
        removes | {b"x-last"},
        tuple(wanted),
        clear_route_cache=True,
        stream_response=True,
        last=(b"x-last", b""),
    )

    effect = open_ended.completed(b"1", body=b"new")

    at_once = Effect(removes | {b"x-last"}, (*wanted, HeaderEdit(b"x-last", b"1")))
    assert applied(effect, lines) == applied(at_once, lines)
    assert effect.all_edits() == at_once.edits
    assert open_ended.body is None
    assert effect.body == b"new"
    assert effect.clear_route_cache
    assert effect.stream_response


@given(lines=_lines, removes=st.frozensets(_names), first=_edits, second=_edits)
@settings(deadline=None, max_examples=200)
def test_two_effects_at_once_equal_two_in_turn(
    lines: list[HeaderLine],
    removes: frozenset[bytes],
    first: list[HeaderEdit],
    second: list[HeaderEdit],
) -> None:
    """A short cut and nothing else; the headers that came in stay as they were."""
    fields = [line for line in lines if line[0][:1] != b":"]
    headers = Headers(list(fields))
    before, after = Effect(edits=tuple(first)), Effect(removes, tuple(second))

    result, target = both_applied(headers, b"/", before, after)

    in_turn = applied(after, applied(before, [(b":path", b"/"), *fields]))
    assert target == dict(in_turn)[b":path"]
    assert result.lines == [line for line in in_turn if line[0][:1] != b":"]
    assert headers.lines == fields


def test_two_effects_at_once_do_not_share_the_lines_they_started_from() -> None:
    """Also when neither of them wants anything."""
    headers = Headers(REQUEST[4:])

    result, target = both_applied(headers, b"/x", UNCHANGED, UNCHANGED)
    result.append(b"x-new", b"1")

    assert target == b"/x"
    assert headers.lines == REQUEST[4:]


@given(name=_names.filter(lambda name: name[:2] == b"x-" and name != b"x-envoy-a"), value=_values)
def test_removal_comes_before_the_set_of_the_same_name(name: bytes, value: bytes) -> None:
    """So a phase can replace a header by removing and setting it."""
    effect = Effect(frozenset({name}), (HeaderEdit(name, value),))

    assert [line for line in applied(effect) if line[0] == name] == [(name, value)]


@pytest.mark.parametrize(
    ("declared", "body", "fits"),
    [
        (b"3", b"abc", True),
        (b"", b"abc", True),
        (b"0", b"", True),
        (b"4", b"abc", False),
        (b"3", b"", False),
        (b"abc", b"abc", False),
    ],
)
def test_new_body_must_have_the_declared_length(
    declared: bytes, body: bytes, *, fits: bool
) -> None:
    """A message whose length lies would hang or smuggle; without a length there is no lie."""
    headers = Headers([(b"content-length", declared)] if declared else [])
    effect = Effect(body=body)

    if fits:
        assert apply_body(headers, b"old", effect) == body
        return
    with pytest.raises(RoutingFailed):
        apply_body(headers, b"old", effect)


def test_body_is_kept_when_the_effect_has_none() -> None:
    """Whatever the length says: that is the sender's business."""
    assert apply_body(Headers([(b"content-length", b"9")]), b"old", UNCHANGED) == b"old"


def test_last_content_length_is_skipped_while_streaming() -> None:
    """It is a set like any other, although it stands apart."""
    effect = Effect(frozenset({LENGTH}), edits((b"x-a", b"1")), last=(LENGTH, b""))

    assert applied(effect.completed(b"5"), []) == [(b"x-a", b"1"), (LENGTH, b"5")]
    assert applied(effect.completed(b"5"), [], streaming=True) == [(b"x-a", b"1")]
