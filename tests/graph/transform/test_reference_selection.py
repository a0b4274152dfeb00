"""Transformer `reference_selection`."""

from typing import Literal

import pytest

from tests.graph.remom_replies import INPUTS, reply
from vsr.graph.transform.reference_selection import ReferenceSelection, ReferenceSource

CANDIDATES = (reply("first"), reply(" second\n", model="b"), reply(" ", reasoning=" thought "))

Format = Literal["index", "reference_number"]


@pytest.mark.parametrize(
    ("id_format", "text", "wanted"),
    [
        ("index", " 2\n", "second"),
        ("index", "+01", "first"),
        ("index", "3", "thought"),
        ("reference_number", "Reference 1", "first"),
        ("reference_number", " REFERENCE\t2 ", "second"),
    ],
)
def test_number_is_replaced_by_its_candidate(id_format: Format, text: str, wanted: str) -> None:
    """Candidates count from 1 and are trimmed; reasoning stands in for blank content."""
    chosen = ReferenceSelection(reply(text, model="m"), CANDIDATES, id_format)(INPUTS)

    assert (chosen.content, chosen.model) == (wanted, "m")


@pytest.mark.parametrize(
    ("id_format", "text"),
    [
        ("index", "0"),
        ("index", "-1"),
        ("index", "4"),
        ("index", "2."),
        ("index", "1 2"),
        ("index", "Reference 1"),
        ("index", "9" * 5000),
        ("index", "²"),
        ("index", ""),
        ("reference_number", "1"),
        ("reference_number", "reference1"),
        ("reference_number", "reference"),
        ("reference_number", ""),
        (None, "1"),
    ],
)
def test_anything_else_stays(id_format: Format | None, text: str) -> None:
    """There is no candidate of that number, or the text is no number of this form."""
    answer = reply(text)

    assert ReferenceSelection(answer, CANDIDATES, id_format)(INPUTS) is answer


def test_sources_are_read_in_order() -> None:
    """The first that names a candidate counts; reasoning is read only where it is a source."""
    answer = reply("none of them", reasoning="2")
    sources: tuple[ReferenceSource, ...] = ("candidate_responses", "content", "reasoning_content")

    chosen = ReferenceSelection(answer, CANDIDATES, "index", sources)(INPUTS)
    content_only = ReferenceSelection(answer, CANDIDATES, "index")(INPUTS)

    assert chosen.content == "second"
    assert content_only is answer


def test_nothing_is_replaced_unless_it_is_asked_for() -> None:
    """The number itself is the answer of a contract without the post-processing."""
    step = ReferenceSelection(reply("1"), CANDIDATES, "index", dereference_selected_reference=False)

    assert step(INPUTS).content == "1"
