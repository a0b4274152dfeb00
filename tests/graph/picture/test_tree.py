"""Graphs as trees of text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.picture.outline import Item, Part
from vsr.graph.picture.tree import render_tree

NAMES = st.text("abc_", min_size=1, max_size=12)
FACTS = st.lists(st.tuples(NAMES, st.text("ab $.", max_size=60)), max_size=4).map(tuple)


def items(depth: int) -> st.SearchStrategy[Item]:
    """Return steps that lie inside each other at most so deep."""
    parts: st.SearchStrategy[tuple[Part, ...]] = st.just(())
    if depth:
        inside = st.lists(items(depth - 1), min_size=1, max_size=2).map(tuple)
        parts = st.lists(st.builds(Part, NAMES, inside), max_size=2).map(tuple)
    return st.builds(Item, NAMES, NAMES, FACTS, parts)


@settings(max_examples=40, deadline=None)
@given(st.lists(items(3), min_size=1, max_size=2))
def test_every_step_has_a_line_and_none_is_wider_than_the_page(steps: list[Item]) -> None:
    """At any depth that authors reach."""
    text = render_tree(steps)

    def count(each: Item) -> int:
        return 1 + sum(count(inner) for part in each.parts for inner in part.steps)

    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(": " in f"{line} " for line in lines) >= sum(map(count, steps)) > 0


def test_bars_lead_from_a_step_to_all_of_its_parts() -> None:
    """The last part has none behind it."""
    leaf = Item("leaf", "call", ())
    step = Item("it", "branch", (("a", "b"),), (Part("one", (leaf,)), Part("two", (leaf,))))

    assert render_tree([step, leaf]).splitlines() == [
        "it: branch  a b",
        "+- one",
        "|    leaf: call",
        "+- two",
        "     leaf: call",
        "leaf: call",
    ]
