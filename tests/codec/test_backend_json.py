"""JSON that a backend wrote."""

import json

import pytest

from vsr.codec.backend_json import as_raw, first_choice, list_at, object_at, string_at, text_at

_ODD: list[object] = [None, True, 5, "text", [], {}]


@pytest.mark.parametrize("odd", [*_ODD, "absent"])
def test_odd_members_count_as_absent(odd: object) -> None:
    """A member of another type is as good as none."""
    members = {} if odd == "absent" else {"m": as_raw(odd)}

    assert object_at(members, "m") == {}
    assert list_at(members, "m") == []
    assert text_at(members, "m") == (odd if odd == "text" else "")
    assert string_at(members, "m") == (odd if odd == "text" else None)


def test_members_keep_their_json() -> None:
    """What is read of an object or a list is still JSON, byte for byte."""
    members = object_at({"m": as_raw({"a": [1, {"b": None}]})}, "m")

    assert [bytes(entry) for entry in list_at(members, "a")] == [b"1", b'{"b":null}']


@pytest.mark.parametrize("choices", [*_ODD, [None], [5, {"index": 1}]])
def test_a_completion_may_have_no_first_choice(choices: object) -> None:
    """An odd first choice is none, and the second does not stand in for it."""
    assert first_choice({"choices": as_raw(choices)}) == {}


def test_the_first_choice_is_the_first() -> None:
    """The place in the list counts, not the index that a choice names."""
    choice = first_choice({"choices": as_raw([{"index": 1}, {"index": 0}])})

    assert json.loads(bytes(choice["index"])) == 1
