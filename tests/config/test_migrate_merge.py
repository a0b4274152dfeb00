"""One document merged into another."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vsr.config.migrate.merge import merge_text
from vsr.errors import ConfigRejected

BASE = """\
# about all of it
version: v0.3
listeners:
  - {name: main, port: 8801}  # the only one
routing:
  # to be kept
  signals: {keywords: []}
  decisions: []
anchored: &one {a: "0x1F", b: $VAR}
other: *one
"""


def test_rest_of_the_document_stands_as_it_was_written() -> None:
    """Comments, quotes, references and order."""
    merged = merge_text(BASE, "routing: {decisions: [{name: x}]}\nglobal: {router: {x: 1}}\n")

    assert merged.startswith(BASE[: BASE.index("  decisions")])
    assert 'a: "0x1F", b: $VAR' in merged
    assert yaml.safe_load(merged) == {
        **yaml.safe_load(BASE),
        "routing": {"signals": {"keywords": []}, "decisions": [{"name": "x"}]},
        "global": {"router": {"x": 1}},
    }


def test_null_deletes_and_comments_stay() -> None:
    """Above what comes next; of a list nothing is merged."""
    merged = merge_text(BASE, "routing: {signals: ~}\nlisteners: [{name: b}]\nmissing: null\n")

    assert "# to be kept\n  decisions: []" in merged
    assert yaml.safe_load(merged)["routing"] == {"decisions": []}
    assert yaml.safe_load(merged)["listeners"] == [{"name": "b"}]
    assert "missing" not in yaml.safe_load(merged)


def test_alias_of_the_base_is_written_out_where_one_use_changes() -> None:
    """The other use stays as it was."""
    merged = yaml.safe_load(merge_text(BASE, "other: {a: 2}\n"))

    assert merged["other"] == {"a": 2, "b": "$VAR"}
    assert merged["anchored"] == {"a": "0x1F", "b": "$VAR"}


def test_line_ends_stay() -> None:
    """As the base has them."""
    merged = merge_text("a: 1\r\nb: 2\r\n", "b: 3\n")

    assert merged == "a: 1\r\nb: 3\r\n"


@pytest.mark.parametrize(
    ("base", "patch", "file"),
    [
        ("a: 1", "[1]", "patch"),
        ("a: 1", "a: [", "patch"),
        ("a: 1", "a: 1\na: 2", "patch"),
        ("- 1", "a: 1", "base.yaml"),
        ("a: [", "a: 1", "base.yaml"),
    ],
)
def test_what_is_no_mapping_is_refused(base: str, patch: str, file: str) -> None:
    """With the name of the one at fault."""
    with pytest.raises(ConfigRejected) as caught:
        merge_text(base, patch, file="base.yaml")

    assert {problem.file for problem in caught.value.problems} == {file}


keys = st.sampled_from(["a", "b", "c"])
scalars = st.integers(0, 9) | st.sampled_from(["x", "0x1F", "true", "~", "a: b", "#"])
mappings = st.recursive(
    st.dictionaries(keys, scalars | st.lists(scalars, max_size=2), max_size=3),
    lambda inner: st.dictionaries(keys, inner | scalars, max_size=3),
    max_leaves=8,
)
patches = st.recursive(
    st.dictionaries(keys, scalars | st.none(), max_size=3),
    lambda inner: st.dictionaries(keys, inner | scalars | st.none(), max_size=3),
    max_leaves=8,
)


@given(mappings, patches, st.booleans())
def test_merged_text_says_what_merged_values_say(
    base: dict[str, Any],
    patch: dict[str, Any],
    flow: bool,  # noqa: FBT001  # drawn
) -> None:
    """In block and in flow style."""
    texts = [yaml.safe_dump(each, default_flow_style=flow) for each in (base, patch)]

    assert yaml.safe_load(merge_text(*texts)) == merged_values(base, patch)


def merged_values(base: object, patch: object) -> object:
    """Return what merging plain values gives."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merged_values(merged.get(key), value)
    return merged
