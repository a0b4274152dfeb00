"""Tables that fit 80 columns."""

from hypothesis import given
from hypothesis import strategies as st

from vsr.commands.table import table, wrapped


def test_columns_stand_under_their_heads() -> None:
    """Without blanks at the end."""
    shown = table(("MODEL", "N"), [("small", "1"), ("a", "22")])

    assert shown == "MODEL  N\nsmall  1\na      22"


def test_widest_column_is_cut() -> None:
    """Until all of it fits."""
    shown = table(("A", "B"), [("x" * 30, "short")], width=20)

    assert shown == "A              B\nxxxxxxxxxx...  short"


@given(st.lists(st.tuples(*[st.text("abc ", max_size=70)] * 4), max_size=5))
def test_table_fits(rows: list[tuple[str, ...]]) -> None:
    """Whatever is in it."""
    shown = table(("A", "B", "C", "D"), rows)

    assert all(len(line) <= 80 for line in shown.split("\n"))


def test_long_text_goes_on_below() -> None:
    """Under its own beginning."""
    shown = wrapped("word " * 30, 16, first="state").split("\n")

    assert shown[0].startswith("state           word word")
    assert all(line.startswith(" " * 16 + "word") for line in shown[1:])
    assert max(map(len, shown)) <= 80
    assert wrapped("error: one", 4) == "error: one"
