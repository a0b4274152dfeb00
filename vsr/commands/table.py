"""Tables and long lines in plain text."""

import os
import sys
from collections.abc import Sequence

WIDTH = 80
"""Of text where nobody says how wide it may be."""
_NARROWEST = 40
_GAP = 2
_SHORTEST = 6


def room() -> int | None:
    """Return how many columns there are: of the terminal, or what `COLUMNS` says.

    None: the output goes to a file or another program, where nothing may be missing.
    """
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said):
        return max(_NARROWEST, int(said))
    try:
        return max(_NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH)
    except (OSError, ValueError):
        return None


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return rows under their head; the widest columns are cut until all fit.

    Args:
        head: names of columns.
        rows: their cells.
        width: see `room`; None: nothing is cut.
    """
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    gaps = _GAP * (len(widths) - 1)
    while width is not None and sum(widths) + gaps > width and max(widths) > _SHORTEST:
        widths[widths.index(max(widths))] -= 1
    shown = [
        (" " * _GAP)
        .join(cut(cell, size).ljust(size) for cell, size in zip(line, widths, strict=True))
        .rstrip()
        for line in lines
    ]
    return "\n".join(shown)


def wrapped(text: str, indent: int, *, first: str = "", width: int | None = None) -> str:
    """Return text in lines, the later ones indented; only words that fill a line are torn.

    Args:
        text: what is to be told.
        indent: of all lines but the first, and of the text in that.
        first: stands before it.
        width: see `room`; None: `WIDTH`.
    """
    import textwrap  # noqa: PLC0415  # for who has something to say

    return textwrap.fill(
        first.ljust(indent if first else 0) + text,
        width or WIDTH,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )


def cut(text: str, width: int | None) -> str:
    """Return as much of a line as there is room for."""
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."
