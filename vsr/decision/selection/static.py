"""Selection algorithm `static`: the candidate that stands first."""

from collections.abc import Sequence

import msgspec

from vsr.decision.selection.selection import Selected, Selection
from vsr.registry import Extension
from vsr.resources.program import ModelRef


class Static(msgspec.Struct, frozen=True):
    """Picks the first candidate that names a model; weights don't count."""

    def __call__(self, candidates: Sequence[ModelRef]) -> Selected | None:
        """Return the first named candidate, whose method is `static` even if it is the only one."""
        for index, candidate in enumerate(candidates):
            if candidate.model.strip():
                return Selected(index, STATIC.name)
        return None


STATIC = Extension[Selection](name="static", config=Static)
