"""Tables that fit 80 columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.commands.table import room, table, wrapped


def test_columns_stand_under_their_heads() -> None:
    """Without blanks at the end."""
    shown = table(("MODEL", "N"), [("small", "1"), ("a", "22")], None)

    assert shown == "MODEL  N\nsmall  1\na      22"


def test_widest_column_is_cut() -> None:
    """Until all of it fits."""
    shown = table(("A", "B"), [("x" * 30, "short")], width=20)

    assert shown == "A              B\nxxxxxxxxxx...  short"


@given(st.lists(st.tuples(*[st.text("abc ", max_size=70)] * 4), max_size=5))
def test_table_fits(rows: list[tuple[str, ...]]) -> None:
    """Whatever is in it."""
    shown = table(("A", "B", "C", "D"), rows, 80)

    assert all(len(line) <= 80 for line in shown.split("\n"))


def test_nothing_is_cut_without_a_width() -> None:
    """Another program wants all of it."""
    assert table(("A",), [("x" * 300,)], None) == "A\n" + "x" * 300


@pytest.mark.parametrize(("columns", "width"), [("", None), ("x", None), ("120", 120), ("7", 40)])
def test_width_is_what_the_environment_says(
    columns: str, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no terminal; too narrow a one is as wide as it takes to say something."""
    monkeypatch.setenv("COLUMNS", columns)

    assert room() == width


def test_long_text_goes_on_below() -> None:
    """Under its own beginning."""
    shown = wrapped("word " * 30, 16, first="state").split("\n")

    assert shown[0].startswith("state           word word")
    assert all(line.startswith(" " * 16 + "word") for line in shown[1:])
    assert max(map(len, shown)) <= 80
    assert wrapped("error: one", 4) == "error: one"
