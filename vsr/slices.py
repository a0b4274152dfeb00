"""Long work that may be done in slices, so that a loop serves in between."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Sliced = Generator[None, None, T]
"""Work that yields where it may be interrupted, and returns what it comes to."""


def at_once(work: Sliced[T]) -> T:
    """Return what `work` comes to, done without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
