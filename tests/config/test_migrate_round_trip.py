"""YAML to a tree and back."""

import pytest
from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.round_trip import Indents, RoundTripFailed, dump, indents_of, parse


def test_tree_that_is_no_yaml_fails() -> None:
    """In our own words, whatever the library says."""
    with pytest.raises(RoundTripFailed):
        dump(CommentedMap({"a": object()}), Indents(mapping=2, dash=2))


@pytest.mark.parametrize("text", ["a: 'x", "a: >1#[\n", "a: &b 1\na: 2\n"])
def test_text_that_cannot_be_read_fails(text: str) -> None:
    """In our own words, whatever the library says."""
    with pytest.raises(RoundTripFailed):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n", Indents(mapping=2, dash=2)),
        ("a:\n    b:\n        c: 1\n    d:\n    - e\n", Indents(mapping=4, dash=0)),
        ("a:\n   b: {c: 1}\nd:\n  - e\nf: [1]\n", Indents(mapping=3, dash=2)),
    ],
)
def test_indents_are_those_of_most_values(text: str, expected: Indents) -> None:
    """Flow collections say nothing of it; without any, two columns."""
    assert indents_of(parse(text)) == expected
