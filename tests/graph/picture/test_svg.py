"""Graphs as SVG pictures."""

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.picture.outline import Item, Part
from vsr.graph.picture.svg import render_svg

NAMES = st.text("ab<&\"'é", max_size=8)
RECT = "{http://www.w3.org/2000/svg}rect"
Box = tuple[float, float, float, float]


def items(depth: int) -> st.SearchStrategy[Item]:
    """Return steps that lie inside each other at most so deep."""
    parts: st.SearchStrategy[tuple[Part, ...]] = st.just(())
    if depth:
        inside = st.lists(items(depth - 1), min_size=1, max_size=2).map(tuple)
        parts = st.lists(st.builds(Part, NAMES, inside), max_size=2).map(tuple)
    facts = st.lists(st.tuples(NAMES, st.text("ab $", max_size=90)), max_size=3).map(tuple)
    return st.builds(Item, NAMES, NAMES, facts, parts)


def boxes(svg: str) -> list[Box]:
    """Return left, top, right and bottom of every box but the page."""
    found = []
    for each in ElementTree.fromstring(svg).iter(RECT):  # noqa: S314  # our own
        if "x" in each.attrib:
            x, y, width, height = (float(each.attrib[key]) for key in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def relation(one: Box, other: Box) -> str:
    """Return whether two boxes lie apart, one in the other, or across each other."""
    if one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]:
        return "apart"
    pairs = [(one, other), (other, one)]
    for outer, inner in pairs:
        if all(outer[at] <= inner[at] for at in (0, 1)) and all(
            outer[at] >= inner[at] for at in (2, 3)
        ):
            return "inside"
    return "across"


@settings(max_examples=40, deadline=None)
@given(NAMES, NAMES, st.lists(items(2), min_size=1, max_size=3))
def test_boxes_never_lie_across_each_other(name: str, about: str, steps: list[Item]) -> None:
    """Whatever is authored: the picture is well-formed, and each box is whole."""
    found = boxes(render_svg(name, about, steps))

    pairs = [(one, other) for at, one in enumerate(found) for other in found[at + 1 :]]
    assert found
    assert all(relation(one, other) != "across" for one, other in pairs)
