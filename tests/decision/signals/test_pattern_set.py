"""Sets of RE2 patterns."""

import pytest

from vsr.decision.signals.pattern_set import Pattern, PatternError, PatternSet, fault_of, pack


def test_find_reports_ids() -> None:
    """Each pattern found reports its id, also one that several share; nothing found is empty."""
    patterns = PatternSet([Pattern("a+", 7), Pattern("b", 7), Pattern("", 3), Pattern("z", 0)])

    assert sorted(patterns.find(b"xaab")) == [3, 7, 7]
    assert sorted(patterns.find(b"")) == [3]
    assert list(PatternSet([Pattern("a", 0)]).find(b"x")) == []


def test_find_reads_bytes_as_utf8() -> None:
    """A dot is one character and folding is Unicode's, unless case counts."""
    folding = PatternSet([Pattern("^.É$", 1)], case_sensitive=False)
    exact = PatternSet([Pattern("^.É$", 1)])

    assert list(folding.find("表é".encode())) == [1]
    assert list(exact.find("表é".encode())) == []


def test_find_survives_texts_that_fill_the_automaton() -> None:
    """An automaton that outgrows its memory starts over and still finds everything."""
    patterns = PatternSet([Pattern("a[ab]{18}c", 1), Pattern("zz", 2)])
    text = bytes(b"ab"[n * n // 7 % 2] for n in range(30_000))

    assert list(patterns.find(text)) == []
    assert sorted(patterns.find(text + b"a" * 19 + b"czz")) == [1, 2]


def test_find_tells_a_lack_of_memory_from_no_hit() -> None:
    """RE2 answers both alike; ours is an error, for a keyword may guard something."""

    class Exhausted:
        def Match(self, text: bytes) -> None:  # noqa: N802  # RE2's name
            del text

    patterns = PatternSet([Pattern("a", 0)])
    patterns._set = Exhausted()

    with pytest.raises(PatternError):
        patterns.find(b"a")


@pytest.mark.parametrize("expression", ["(", "a**", r"\1", "(?=a)", "[z-a]", r"\pL{900}"])
def test_set_refuses_what_re2_refuses(expression: str) -> None:
    """Bad syntax, Python-only syntax and patterns beyond the memory are errors with a reason."""
    with pytest.raises(PatternError):
        PatternSet([Pattern(expression, 0)])

    assert fault_of(expression)


def test_fault_of_a_good_pattern_is_none() -> None:
    """What RE2 accepts has no fault."""
    assert fault_of(r"\bAKIA[0-9A-Z]{16}\b") is None


def test_pack_uses_one_set_if_that_is_enough() -> None:
    """Nothing gives no set, little gives one, and one pattern too many is refused."""
    large = [Pattern(rf"{letter}\pL{{40}}", number) for number, letter in enumerate("abcdef")]

    assert list(pack([])) == []
    assert len(list(pack([Pattern("a", 0), Pattern("b", 1)]))) == 1
    assert len(list(pack(large))) > 1
    with pytest.raises(PatternError):
        list(pack([*large, Pattern("(", 9)]))
