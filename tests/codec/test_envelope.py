"""Envelope: member spans and splices."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import JSON_VALUES, TEXT, json_texts
from vsr.codec.envelope import open_envelope
from vsr.errors import InvalidRequest

OBJECTS = st.dictionaries(TEXT, JSON_VALUES, max_size=4)


@given(data=st.data(), members=OBJECTS)
def test_envelope_holds_every_member_in_order(
    data: st.DataObject, members: dict[str, object]
) -> None:
    """The members are those of a JSON parser, each value verbatim, in the client's order."""
    body = data.draw(json_texts(members)).encode()

    envelope = open_envelope(body)

    assert list(envelope.members) == list(members)
    assert {name: json.loads(envelope.raw(name) or b"") for name in members} == members


@given(data=st.data(), members=OBJECTS.filter(bool))
def test_splice_changes_only_the_named_member(
    data: st.DataObject, members: dict[str, object]
) -> None:
    """Replacing a value by its own bytes is the identity, so only those bytes can change."""
    body = data.draw(json_texts(members)).encode()
    name = data.draw(st.sampled_from(list(members)))
    envelope = open_envelope(body)
    own = envelope.raw(name)
    assert own is not None

    spliced = envelope.spliced({name: b'"other"'})

    assert envelope.spliced({name: own}) == body
    assert json.loads(spliced) == members | {name: "other"}
    assert len(spliced) == len(body) - len(own) + len(b'"other"')


@given(data=st.data(), members=OBJECTS, changes=OBJECTS)
def test_splice_replaces_and_adds_many(
    data: st.DataObject, members: dict[str, object], changes: dict[str, object]
) -> None:
    """Known members change in place, new ones follow all others in the order given."""
    body = data.draw(json_texts(members)).encode()
    raw = {name: json.dumps(value).encode() for name, value in changes.items()}

    spliced = open_envelope(body).spliced(raw)

    assert json.loads(spliced) == members | changes
    assert list(json.loads(spliced)) == list(members | changes)


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        (b'{"model":"a","x":1}', {"model": b'"b"'}, b'{"model":"b","x":1}'),
        (b' {"x" : 1 ,\n"model":\t"a" } ', {"model": b"2"}, b' {"x" : 1 ,\n"model":\t2 } '),
        (b'{"mod\\u0065l":"a"}', {"model": b'"b"'}, b'{"mod\\u0065l":"b"}'),
        (b'{"a":{"model":"in"},"model":"a"}', {"model": b"0"}, b'{"a":{"model":"in"},"model":0}'),
        ('{"é":1,"b":2}'.encode(), {"b": b"3"}, '{"é":1,"b":3}'.encode()),
        (b'{"u\\u0041\\":abcd":1,"b":2}', {"b": b"3"}, b'{"u\\u0041\\":abcd":1,"b":3}'),
        (b"{}", {"b": b"3"}, b'{"b":3}'),
        (b" { } \n", {"b": b"3", "c": b"4"}, b' { "b":3,"c":4} \n'),
        (b'{"a":1 }', {"a": b"2", 'q"': b"3"}, b'{"a":2,"q\\"":3 }'),
        (b'{"a":1e400,"b":"\xff"}', {"a": b"2"}, b'{"a":2,"b":"\xff"}'),
        (b'{"a":1}', {}, b'{"a":1}'),
    ],
)
def test_splice_keeps_every_other_byte(
    body: bytes, changes: dict[str, bytes], expected: bytes
) -> None:
    """White space, escapes, order and even bytes that are no UTF-8 stay as they came."""
    assert open_envelope(body).spliced(changes) == expected


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        (b'{"a":1,"b":2,"c":3}', {"a": None}, b'{"b":2,"c":3}'),
        (b'{"a":1,"b":2,"c":3}', {"b": None}, b'{"a":1,"c":3}'),
        (b'{"a":1,"b":2,"c":3}', {"c": None}, b'{"a":1,"b":2}'),
        (b'{"a":1,"b":2,"c":3}', {"a": None, "b": None}, b'{"c":3}'),
        (b'{"a":1,"b":2,"c":3}', {"c": None, "a": None}, b'{"b":2}'),
        (b'{"a":1,"b":2,"c":3}', {"b": None, "c": None, "d": b"4"}, b'{"a":1,"d":4}'),
        (b'{"a":1,"b":2}', {"a": None, "b": b"0"}, b'{"b":0}'),
        (b'{"a":1}', {"a": None}, b"{}"),
        (b'{"a":1,"b":2}', {"a": None, "b": None}, b"{}"),
        (b'{"a":1}', {"a": None, "b": b"2", "c": b"3"}, b'{"b":2,"c":3}'),
        (b'{"a":1}', {"b": None}, b'{"a":1}'),
        (b"{}", {"b": None}, b"{}"),
        (b'{"a,b":1,"c":",}"}', {"a,b": None}, b'{"c":",}"}'),
        (b' {\n "a" : 1 ,\n "b":\t2\n} ', {"a": None}, b' {\n "b":\t2\n} '),
        (b' {\n "a" : 1 ,\n "b":\t2\n} ', {"b": None}, b' {\n "a" : 1\n} '),
        (b'{ "a": 1, "b": 2, "c": 3 }', {"a": None, "b": None}, b'{ "c": 3 }'),
        (b'{ "a": 1, "b": 2, "c": 3 }', {"b": None, "c": b"1e400"}, b'{ "a": 1, "c": 1e400 }'),
        (b'{ "a": 1 }', {"a": None, "b": b"2"}, b'{ "b":2 }'),
    ],
)
def test_splice_removes_a_member_with_its_separator(
    body: bytes, changes: dict[str, bytes | None], expected: bytes
) -> None:
    """A member goes with one comma; its neighbours keep every byte."""
    assert open_envelope(body).spliced(changes) == expected


@given(data=st.data(), members=OBJECTS, changes=OBJECTS)
def test_splice_removes_and_sets_many(
    data: st.DataObject, members: dict[str, object], changes: dict[str, object]
) -> None:
    """Whatever goes, what stays keeps its bytes and its order."""
    body = data.draw(json_texts(members)).encode()
    gone = data.draw(st.sets(st.sampled_from([*members, *changes, "other"])))
    raw = {
        name: None if name in gone else json.dumps(value).encode()
        for name, value in changes.items()
    } | dict.fromkeys(gone)
    envelope = open_envelope(body)

    spliced = open_envelope(envelope.spliced(raw))

    expected = {n: v for n, v in (members | changes).items() if n not in gone}
    assert {name: json.loads(spliced.raw(name) or b"") for name in spliced.members} == expected
    assert list(spliced.members) == list(expected)
    untouched = members.keys() - raw.keys()
    assert {n: spliced.raw(n) for n in untouched} == {n: envelope.raw(n) for n in untouched}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b"{",
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1}}',
        b'{"a":1} x',
        b"{'a':1}",
        b"{a:1}",
        b'{"a":01}',
        b'{"a":NaN}',
        b'{"a":tru}',
        b'{"a":"\n"}',
        b'{"a":"\x00"}',
        b'{"a":"\\x"}',
        b'{"a":"\\ud83d"}',
        b'{"\\ud83d":1}',
        b'{"a\xff":1}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"model":"auto","messages":[{"role":"user","content":"unterminated',
        b"[" * 100_000,
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
)
def test_envelope_refuses_what_is_no_json_object(body: bytes) -> None:
    """Anything else is the one typed error, deep nesting and lone surrogates included."""
    with pytest.raises(InvalidRequest) as caught:
        open_envelope(body)

    assert (caught.value.code, str(caught.value)) == ("invalid_json", "request JSON is invalid")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"a":2}',
        b'{"a":12,"a":1}',
        b'{"a":1,"a":"long value"}',
        b'{"a":1,"b":2,"a":3}',
        b'{"a":1,"b":2,"\\u0061":3}',
        b'{ "a": 1, "a": 1 }',
        b'{"b":22,"a":1,"a":{"k":1, "b":                1}}',
        b'{"a":7,"b":22,"a":{"k":"x", "b":                1}}',
    ],
)
def test_envelope_refuses_a_repeated_member(body: bytes) -> None:
    """Two readers could disagree on which one counts, so a repeated name is refused."""
    with pytest.raises(InvalidRequest):
        open_envelope(body)


@given(data=st.data(), members=OBJECTS.filter(bool), value=JSON_VALUES)
def test_envelope_refuses_any_repetition(
    data: st.DataObject, members: dict[str, object], value: object
) -> None:
    """Whatever stands in the object, adding one of its names once more is noticed."""
    body = data.draw(json_texts(members)).encode()
    again = data.draw(st.sampled_from(list(members)))
    more = b"," + json.dumps(again).encode() + b":" + data.draw(json_texts(value)).encode()
    at = body.rindex(b"}")

    with pytest.raises(InvalidRequest):
        open_envelope(body[:at] + more + body[at:])


@given(
    st.binary(max_size=60)
    | st.text(max_size=30).map(lambda text: f'{{"{text}":1}}'.encode("utf-8", "surrogatepass"))
)
def test_envelope_knows_no_other_failure(body: bytes) -> None:
    """Arbitrary bytes either open or raise the typed error."""
    try:
        envelope = open_envelope(body)
    except InvalidRequest:
        return

    assert envelope.spliced({}) == body


def test_envelope_knows_its_members() -> None:
    """Membership and raw values answer by decoded name; an absent member is None."""
    envelope = open_envelope(b'{"a": [1, 2] , "b":null}')

    assert "a" in envelope
    assert "c" not in envelope
    assert envelope.raw("a") == b"[1, 2]"
    assert envelope.raw("b") == b"null"
    assert envelope.raw("c") is None
