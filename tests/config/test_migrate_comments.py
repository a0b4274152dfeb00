"""Comments through a migration: none is lost, and each stays with what it is about."""

import textwrap
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.migrate.remarks import Remark, remarks
from vsr.config.migrate.text import migrate_text

FOLDER = Path(__file__).parents[2] / "fixtures" / "config" / "migrate"
SOURCES = [file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.yaml"))]

BLANK = Remark("", 1, 0, -1, is_inside=False)


def migrated(text: str) -> str:
    """Return the migrated text of an indented one."""
    return migrate_text(textwrap.dedent(text)).text


def test_comments_of_a_renamed_key_stay_with_it() -> None:
    """Above it and behind it, with their distance."""
    text = migrated(
        """\
        version: v0.3
        providers:
          defaults:
            # Above, first line.
            #   Above, second line.

            # After a blank line.
            default_model: a     # behind
        routing: {signals: {}}
        """
    )

    assert text == textwrap.dedent(
        """\
        version: v0.3
        providers:
          defaults:
            # Above, first line.
            #   Above, second line.

            # After a blank line.
            model: a     # behind
        routing: {signals: {}}
        """
    )


def test_comments_move_with_a_key_and_all_below_it() -> None:
    """At the depth of the new place."""
    text = migrated(
        """\
        version: v0.3

        # Before the rules.
        keyword_rules: # the rules
          # The only one.
          - name: code
              # Far to the right.
            keywords:
              - python # and friends
        # Before the end.
        """
    )

    assert text == textwrap.dedent(
        """\
        version: v0.3
        routing:
          signals:
            # Before the rules.
            keywords: # the rules
              # The only one.
              - name: code
                  # Far to the right.
                keywords:
                  - python # and friends
        # Before the end.
        """
    )


def test_comments_of_a_removed_key_stand_above_the_next() -> None:
    """What is removed may still have been explained there."""
    text = migrated(
        """\
        version: v0.3
        providers:
          defaults:
            reasoning_families: # of old
              # Nobody uses it.
              qwen3: {type: x} # really
            # The default.
            default_model: a
        routing: {signals: {}}
        """
    )

    assert text == textwrap.dedent(
        """\
        version: v0.3
        providers:
          defaults:
            # of old
            # Nobody uses it.
            # really
            # The default.
            model: a
        routing: {signals: {}}
        """
    )


def test_comments_of_the_last_key_stand_behind_the_one_before_if_it_is_removed() -> None:
    """There is no next key to stand above."""
    text = migrated(
        """\
        version: v0.3
        providers:
          defaults:
            model: a
            reasoning_families: {} # none
          models: []
        routing: {signals: {}}
        """
    )

    assert "    model: a\n    # none\n  models: []\n" in text


def test_comments_of_a_removed_card_stand_above_the_next() -> None:
    """A card that only had a name goes, what was said about it stays."""
    text = migrated(
        """\
        default_model: a
        routing:
          modelCards:
            # About a.
            - name: a # the default
            # About b.
            - name: b
              tags: [x]
        """
    )

    assert "    # About a.\n    # the default\n    # About b.\n    - name: b\n" in text


def test_head_of_the_document_stays_at_its_top() -> None:
    """What stands above the first blank line is about the document, not about its first key."""
    text = migrated(
        """\
        # Our router.
        # Ask before changing it.

        # The strategy.
        strategy: priority
        """
    )

    assert text.startswith("# Our router.\n# Ask before changing it.\n\nversion: v0.3\n")
    assert "    # The strategy.\n    strategy: priority\n" in text


def test_comments_inside_a_flow_collection_come_out_beside_it() -> None:
    """The collection is written on one line."""
    text = migrated(
        """\
        default_model: a
        other: [ # opens
          # inside
          1, # one
          2 ] # closed
        """
    )

    assert "# inside\n# one\n# closed\nother: [1, 2] # opens\n" in text


def test_comment_behind_a_text_block_does_not_become_text() -> None:
    """A block takes whatever is indented more than its key."""
    source = textwrap.dedent(
        """\
        version: v0.3
        routing:
          signals: {}
          note: |
            text
          models: # removed in a moment
              # indented more than a block would allow
            - name: a
        other: 1
        """
    )

    result = migrate_text(source)

    values = yaml.safe_load(result.text)
    assert values["routing"] == {"signals": {}, "note": "text\n"}
    assert _comments(result.text) == _comments(source)


def test_comment_in_the_header_of_a_text_block_stays_there() -> None:
    """It is no part of the text."""
    text = migrated("default_model: a\nnote: |  # as is\n  # text\n")

    assert "note: |  # as is\n  # text\n" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1 # b\n", [Remark("# b", 0, 5, 1, is_inside=False)]),
        ("  # b\na: '#'\n", [Remark("# b", 0, 2, -1, is_inside=False)]),
        ("a: 1\n\n# b\n\n", [BLANK, Remark("# b", 2, 0, -1, is_inside=False)]),
        ("a: [ # b\n  1]\n", [Remark("# b", 0, 5, 1, is_inside=True)]),
        ("a: | # b\n  # c\nd: e#f\n", [Remark("# b", 0, 5, 1, is_inside=True)]),
        ("a: |+\n  b\n\n# c\n", [Remark("# c", 3, 0, -1, is_inside=False)]),
        ("a: |\n\n# c\n", [BLANK, Remark("# c", 2, 0, -1, is_inside=False)]),
        ("# only", [Remark("# only", 0, 0, -1, is_inside=False)]),
    ],
)
def test_remarks_are_found_outside_of_values(text: str, expected: list[Remark]) -> None:
    """A `#` in a value is no comment; a blank line counts unless the value keeps it."""
    assert remarks(text) == expected


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_no_comment_is_lost_and_none_changes_a_value(data: st.DataObject) -> None:
    """Wherever comments stand in a document, the migrated one has them all and the same values."""
    lines = data.draw(st.sampled_from(SOURCES)).splitlines()
    extra = st.tuples(st.integers(0, len(lines) - 1), st.booleans(), st.integers(0, 9))
    source = list(lines)
    for number, (at, alone, column) in enumerate(data.draw(st.lists(extra, max_size=12))):
        if alone:
            source[at] = f"{' ' * column}# extra {number}\n{source[at]}"
        else:
            source[at] += f"  # extra {number}"

    result = migrate_text("\n".join(source))

    assert _comments(result.text) == _comments("\n".join(source))
    assert yaml.safe_load(result.text) == yaml.safe_load(migrate_text("\n".join(lines)).text)


def _comments(text: str) -> Counter[str]:
    return Counter(remark.text for remark in remarks(text) if remark.text)
