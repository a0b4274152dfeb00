"""Tables in plain text that fit 80 columns."""

from collections.abc import Sequence

WIDTH = 80
_GAP = 2
_SHORTEST = 6


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int = WIDTH) -> str:
    """Return rows under their head; the widest columns are cut until all fit."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    while sum(widths) + _GAP * (len(widths) - 1) > width and max(widths) > _SHORTEST:
        widths[widths.index(max(widths))] -= 1
    shown = [
        (" " * _GAP)
        .join(_cut(cell, size).ljust(size) for cell, size in zip(line, widths, strict=True))
        .rstrip()
        for line in lines
    ]
    return "\n".join(shown)


def wrapped(text: str, indent: int, *, first: str = "") -> str:
    """Return text in lines of `WIDTH`, the later ones indented; words are not torn."""
    import textwrap  # noqa: PLC0415  # for who has something to say

    return textwrap.fill(
        first.ljust(indent if first else 0) + text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
