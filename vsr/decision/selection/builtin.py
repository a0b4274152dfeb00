"""The selection algorithms this package brings."""

from vsr.decision.selection.static import STATIC

BUILTIN_SELECTIONS = (STATIC,)
