"""Transformer `first_given`."""

import pytest

from tests.graph.remom_replies import INPUTS
from vsr.errors import GraphFailed
from vsr.graph.transform.first_given import FirstGiven


@pytest.mark.parametrize(
    ("texts", "found"),
    [(("a", "b"), "a"), ((None, "b"), "b"), (("", " \n", " b "), " b "), (("a", None), "a")],
)
def test_first_text_that_is_there_is_taken_as_it_is(
    texts: tuple[str | None, ...], found: str
) -> None:
    """Null and blank texts count as not given."""
    assert FirstGiven(texts)(INPUTS) == found


@pytest.mark.parametrize("texts", [(), (None,), ("", None)])
def test_nothing_given_fails(texts: tuple[str | None, ...]) -> None:
    """There is nothing to go on with."""
    with pytest.raises(GraphFailed, match=r"^none of the texts is given$"):
        FirstGiven(texts)(INPUTS)
