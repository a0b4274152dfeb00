"""Many RE2 patterns searched for in one pass over a text."""

from collections.abc import Iterator, Sequence

import msgspec
import re2

_MEMORY_BYTES = 8 << 20
"""Of one set's program and automaton, which grows only as far as texts need; RE2's default."""


class PatternError(ValueError):
    """RE2 does not accept a pattern."""


class Pattern(msgspec.Struct, frozen=True):
    """An RE2 expression and what a hit of it is reported as; several may report the same."""

    expression: str
    id: int


class PatternSet:
    """Finds which patterns occur somewhere in a text, in time linear in the text.

    Raises:
        PatternError: a pattern is not valid RE2, or all together exceed the memory of a set.
    """

    def __init__(self, patterns: Sequence[Pattern], *, case_sensitive: bool = True) -> None:
        options = re2.Options()
        options.case_sensitive = case_sensitive
        options.never_capture = True
        options.log_errors = False
        options.max_mem = _MEMORY_BYTES
        self._set = re2.Set.SearchSet(options)
        self._ids = [pattern.id for pattern in patterns]
        try:
            for pattern in patterns:
                self._set.Add(pattern.expression)
            # RE2 reports "nothing found" and "out of memory" alike. The empty pattern is always
            # found, so that running out of memory can't pass for a text without hits.
            self._set.Add("")
            self._set.Compile()
        except re2.error as error:
            raise PatternError(str(error)) from error
        self.find(b"")

    def find(self, text: bytes) -> Sequence[int]:
        """Return the ids of the patterns found, in no order; an id may come more than once.

        Raises:
            PatternError: RE2 ran out of memory. A set that has room for its first states, which
                building it tries out, starts over instead, so this is not expected here.
        """
        found: list[int] | None = self._set.Match(text)
        if found is None:
            raise PatternError("RE2 ran out of memory")
        if len(found) == 1:
            return ()
        empty = len(self._ids)
        return [self._ids[index] for index in found if index != empty]


def fault_of(expression: str) -> str | None:
    """Return why RE2 refuses `expression`, or None if it accepts it."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY_BYTES
    try:
        re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0]
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return None


def pack(patterns: Sequence[Pattern]) -> Iterator[PatternSet]:
    """Yield as few sets as hold all of the patterns.

    Raises:
        PatternError: a pattern is refused, or too large even alone.
    """
    if not patterns:
        return
    try:
        yield PatternSet(patterns)
    except PatternError:
        if len(patterns) == 1:
            raise
        half = len(patterns) // 2
        yield from pack(patterns[:half])
        yield from pack(patterns[half:])
