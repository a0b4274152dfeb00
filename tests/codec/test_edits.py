"""Edits: changes of a body's members, merged and spliced once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import JSON_VALUES, TEXT, json_texts
from vsr.codec.edits import Changes, Draft, ObjectEdit
from vsr.codec.envelope import Envelope, open_envelope
from vsr.errors import InvalidRequest

NAMES = st.sampled_from("abcdé")
OBJECTS = st.dictionaries(NAMES, JSON_VALUES, max_size=4)
CHANGES = st.dictionaries(
    NAMES | TEXT, JSON_VALUES.map(lambda it: json.dumps(it).encode()) | st.none()
)


def applied(envelope: Envelope, *changes: Changes) -> bytes:
    """Return the body after each of `changes` in turn, spliced one by one."""
    for each in changes:
        envelope = open_envelope(envelope.spliced(each))
    return envelope.body


def merged(envelope: Envelope, *changes: Changes) -> Draft:
    """Return the draft with `changes`."""
    draft = Draft(envelope)
    for each in changes:
        draft.merge(each)
    return draft


@given(data=st.data(), members=OBJECTS, changes=st.lists(CHANGES, max_size=4))
def test_merged_changes_equal_one_splice_after_the_other(
    data: st.DataObject, members: dict[str, object], changes: list[Changes]
) -> None:
    """One splice gives the same bytes.

    Two things are left to it: a client's member that was removed and is set again returns to its
    place, and the white space of an object that loses every member of the client's.
    """
    envelope = open_envelope(data.draw(json_texts(members)).encode())
    draft = merged(envelope, *changes)
    gone = {name for each in changes for name, value in each.items() if value is None}

    once = draft.body() or envelope.body

    in_turn = applied(envelope, *changes)
    assert json.loads(once) == json.loads(in_turn)
    if not any(name in draft for name in gone & members.keys()):
        assert list(json.loads(once)) == list(json.loads(in_turn))
        if not members or any(name in draft for name in members):
            assert once == in_turn


@given(data=st.data(), members=OBJECTS, changes=st.lists(CHANGES, max_size=3))
def test_draft_keeps_the_bytes_of_untouched_members(
    data: st.DataObject, members: dict[str, object], changes: list[Changes]
) -> None:
    """What no change names stays as the client sent it, in the client's order."""
    envelope = open_envelope(data.draw(json_texts(members)).encode())
    touched = {name for each in changes for name in each}

    after = open_envelope(merged(envelope, *changes).body() or envelope.body)

    untouched = [name for name in members if name not in touched]
    assert [name for name in after.members if name in untouched] == untouched
    assert [after.raw(name) for name in untouched] == [envelope.raw(name) for name in untouched]


@given(data=st.data(), members=OBJECTS, changes=st.lists(CHANGES, max_size=3))
def test_draft_reads_as_its_body_would(
    data: st.DataObject, members: dict[str, object], changes: list[Changes]
) -> None:
    """An edit sees what the edits before it did, without a splice between them."""
    draft = merged(open_envelope(data.draw(json_texts(members)).encode()), *changes)
    after = open_envelope(draft.body() or draft.envelope.body)

    assert list(draft.names()) == list(after.members)
    for name in [*members, *draft.changes, "missing"]:
        assert (name in draft) == (name in after)
        assert draft.raw(name) == after.raw(name)
        value = draft.value(name)
        assert (None if value is None else bytes(value)) == after.raw(name)


@pytest.mark.parametrize("changes", [{}, {"b": None}, {"a": b"1.50"}, {"a": b"1.50", "b": None}])
def test_draft_has_no_body_when_nothing_changes(changes: Changes) -> None:
    """A body that is byte-equal to the client's is no new body."""
    draft = merged(open_envelope(b'{"a":1.50}'), changes)

    assert draft.body() is None


def test_draft_forgets_a_member_that_came_and_went() -> None:
    """Only the last change of a member counts; one that never was needs no removal."""
    draft = merged(open_envelope(b'{"a":1}'), {"b": b"2", "c": b"3"}, {"b": None})

    assert draft.changes == {"c": b"3"}


def test_drafts_share_no_changes() -> None:
    """Each request has a draft of its own."""
    first, second = Draft(open_envelope(b"{}")), Draft(open_envelope(b"{}"))

    first.merge({"a": b"1"})

    assert second.changes == {}


@pytest.mark.parametrize(
    ("body", "changes", "expected"),
    [
        (b'{"o":{"x":1.50e+3, "p":0}}', {"p": b"true"}, b'{"o":{"x":1.50e+3, "p":true}}'),
        (b'{"o":{"x":1.50e+3 }}', {"p": b"true"}, b'{"o":{"x":1.50e+3,"p":true }}'),
        (
            b'{"o":{"p":1,"x":12345678901234567890}}',
            {"p": None},
            b'{"o":{"x":12345678901234567890}}',
        ),
        (b'{"a":1}', {"p": b"true", "q": b"2"}, b'{"a":1,"o":{"p":true,"q":2}}'),
        (b'{"o":null}', {"p": b"true"}, b'{"o":{"p":true}}'),
        (b'{"o":"text"}', {"p": b"true"}, b'{"o":{"p":true}}'),
        (b'{"o":[1]}', {"p": b"true"}, b'{"o":{"p":true}}'),
        (b'{"o":{}}', {"p": b"true"}, b'{"o":{"p":true}}'),
        (b'{"o":{"p":1},"a":1}', {"p": None}, b'{"a":1}'),
        (b'{"o":{"p":1},"a":1}', {"p": None, "q": b"2"}, b'{"o":{"q":2},"a":1}'),
        (b'{"o":{"p":1}}', {"p": b"1"}, None),
        (b'{"o":{}}', {"p": None}, None),
        (b'{"o":null}', {"p": None}, None),
        (b'{"a":1}', {"p": None}, None),
    ],
)
def test_object_edit_changes_only_what_it_names(
    body: bytes, changes: Changes, expected: bytes | None
) -> None:
    """Other members keep number literals and white space; an emptied object goes."""
    draft = Draft(open_envelope(body))

    draft.merge(ObjectEdit("o", changes)(draft))

    assert draft.body() == expected


def test_object_edits_of_one_member_add_up() -> None:
    """The second sees what the first did."""
    draft = Draft(open_envelope(b'{"o":{"x":1}}'))

    for changes in ({"p": b"1"}, {"x": None, "q": b"2"}):
        draft.merge(ObjectEdit("o", changes)(draft))

    assert draft.body() == b'{"o":{"p":1,"q":2}}'


def test_object_edit_refuses_a_repeated_member() -> None:
    """Two readers could disagree on which one counts."""
    draft = Draft(open_envelope(b'{"o":{"p":1,"p":2}}'))

    with pytest.raises(InvalidRequest):
        ObjectEdit("o", {"p": b"3"})(draft)
