"""What differs between two documents."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from vsr.config.diff import MAX_CHANGES, Change, Side, differences


def changes(before: object, after: object) -> list[tuple[str, str, object, object]]:
    """Return the changes of documents without secrets."""
    found = differences(Side(before, before), Side(after, after))  # type: ignore[arg-type]  # plain
    return [(each.path, each.kind, each.before, each.after) for each in found]


def test_members_are_told_by_their_paths() -> None:
    """What is there in one alone, as a whole."""
    before = {"a": 1, "b": {"c": [1, 2]}, "x.y": 1, "gone": {"deep": 1}}
    after = {"a": 2, "b": {"c": [1, 3]}, "x.y": 2, "new": {"deep": 1}}

    assert changes(before, after) == [
        ("a", "changed", 1, 2),
        ("b.c[1]", "changed", 2, 3),
        ('["x.y"]', "changed", 1, 2),
        ("gone", "removed", {"deep": 1}, None),
        ("new", "added", None, {"deep": 1}),
    ]


def test_entries_are_told_by_their_names() -> None:
    """One that moves up because another is gone has not changed."""
    before = {"models": [{"name": "a", "w": 1}, {"name": "b", "w": 1}]}
    after = {"models": [{"name": "b", "w": 2}, {"name": "c", "w": 1}]}

    assert changes(before, after) == [
        ("models[a]", "removed", {"name": "a", "w": 1}, None),
        ("models[b].w", "changed", 1, 2),
        ("models[c]", "added", None, {"name": "c", "w": 1}),
    ]


def test_order_of_entries_is_told() -> None:
    """The first one may be what decides."""
    before = {"models": [{"name": "a"}, {"name": "b"}]}
    after = {"models": [{"name": "b"}, {"name": "a"}]}

    assert changes(before, after) == [("models", "changed", ["a", "b"], ["b", "a"])]


def test_entries_without_names_of_their_own_are_told_by_place() -> None:
    """Two of one name cannot be told apart."""
    before = {"x": [{"name": "a", "w": 1}, {"name": "a", "w": 2}]}
    after = {"x": [{"name": "a", "w": 1}, {"name": "a", "w": 3}]}

    assert changes(before, after) == [("x[1].w", "changed", 2, 3)]


def test_secret_that_changes_is_told_and_not_shown() -> None:
    """Neither the old nor the new one."""
    before = Side({"key": "canary-a"}, {"key": "<redacted>"})
    after = Side({"key": "canary-b"}, {"key": "<redacted>"})

    [change] = differences(before, after)

    assert change == Change("key", change.kind, "<redacted>", "<redacted>")
    assert "canary" not in str(msgspec.json.encode(change))


def test_list_of_changes_has_an_end() -> None:
    """However much differs."""
    found = changes({}, {f"k{number}": number for number in range(MAX_CHANGES + 5)})

    assert len(found) == MAX_CHANGES


plain = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "a", "b.c"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(plain, plain)
def test_documents_differ_if_and_only_if_something_is_told(before: object, after: object) -> None:
    """Whatever they hold."""
    assert bool(changes(before, after)) is (before != after)
    assert changes(before, before) == []
