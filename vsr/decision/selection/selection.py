"""What a selection algorithm is: it picks one of a decision's candidates."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from vsr.resources.program import ModelRef


class Selected(msgspec.Struct, frozen=True, gc=False):
    """The candidate chosen and the method that chose it."""

    index: int
    """Its place among the candidates."""
    method: str


class Selection(Protocol):
    """Chooses among a decision's models; pure."""

    def __call__(self, candidates: Sequence[ModelRef]) -> Selected | None:
        """Return the choice, or None without a usable candidate: the default model answers."""
