"""The version word in shared memory."""

import os

import pytest

from vsr.workers.active import SharedActive
from vsr.workers.word import VersionWord, make_word_memory


def test_all_who_map_the_memory_see_a_store() -> None:
    """At once; an older version is never stored."""
    memory = make_word_memory(7)
    reader, writer = VersionWord(os.dup(memory)), VersionWord(memory)

    before = reader.version
    writer.store(2**40)
    with pytest.raises(ValueError, match="older"):
        writer.store(3)

    assert (before, reader.version, reader.cells[0]) == (7, 2**40, 2**40)
    for each in (reader, writer):
        each.close()


def test_nothing_serves_before_the_first_activation() -> None:
    """Whatever the word names by then."""
    word = VersionWord(make_word_memory(1))
    active = SharedActive(word)

    assert active.current is None
    word.close()
