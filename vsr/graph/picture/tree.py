"""The steps of a graph as a tree of plain text, at most 80 columns wide."""

import textwrap
from collections.abc import Iterator, Sequence

import attrs

from vsr.graph.picture.outline import Item, Part

WIDTH = 80
_LEAST = 24
"""Columns that text keeps however deep it stands."""


def render_tree(items: Sequence[Item], width: int = WIDTH) -> str:
    """Return one line or more per step; what lies inside of it is indented below it."""
    return "\n".join(_Tree(width).items(items, ""))


@attrs.frozen
class _Tree:
    width: int

    def items(self, items: Sequence[Item], indent: str) -> Iterator[str]:
        for item in items:
            yield from self._head(item, indent)
            for number, part in enumerate(item.parts):
                is_last = number == len(item.parts) - 1
                yield from self._part(part, indent, is_last=is_last)

    def _head(self, item: Item, indent: str) -> Iterator[str]:
        name = f"{item.name}: {item.type}" if item.name else item.type
        facts = ", ".join(f"{key} {text}" for key, text in item.facts)
        bar = f"{indent}{'|' if item.parts else ' '}     "
        yield from self._wrapped(f"{name}  {facts}" if facts else name, indent, bar)

    def _part(self, part: Part, indent: str, *, is_last: bool) -> Iterator[str]:
        bar = " " if is_last else "|"
        yield from self._wrapped(part.label, f"{indent}+- ", f"{indent}{bar}     ")
        yield from self.items(part.steps, f"{indent}{bar}    ")

    def _wrapped(self, text: str, first: str, rest: str) -> list[str]:
        width = max(self.width, len(rest) + _LEAST)
        return textwrap.wrap(
            text,
            width,
            initial_indent=first,
            subsequent_indent=rest,
            break_on_hyphens=False,
        )
