"""Differences of documents as text."""

from vsr.commands.change_lines import Change, change_lines


def test_changes_are_told_in_lines() -> None:
    """A long one in several, each cut."""
    changes = [
        Change("a.b", "changed", 1, 2),
        Change("c", "added", None, {"x": True}),
        Change("", "removed", "y" * 200, None),
    ]

    lines = list(change_lines(changes))

    assert lines[:3] == ["~ a.b: 1 -> 2", '+ c: {"x": true}', "- (document):"]
    assert lines[3].startswith('    - "yyy')
    assert len(lines[3]) == 80
    assert lines[3].endswith("...")


def test_change_has_one_line_where_nothing_is_cut() -> None:
    """For another program."""
    lines = list(change_lines([Change("", "removed", "y" * 200, None)], None))

    assert lines == [f'- (document): "{"y" * 200}"']
