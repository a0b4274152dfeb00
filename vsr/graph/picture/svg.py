"""The steps of a graph as an SVG picture: boxes in boxes, in the order in which they run."""

import textwrap
from collections.abc import Iterator, Sequence
from html import escape

import attrs

from vsr.graph.picture.outline import Item, Part

_CHARACTER, _LINE, _PAD, _GAP = 7, 16, 10, 18
_COLUMNS, _LINES = 34, 3
"""Most characters of a line, most lines of fields that a box shows."""
_LEAST_WIDTH = 150
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #222 }
.title { font-weight: bold; font-size: 14px } .name { font-weight: bold } .dim { fill: #666 }
rect { fill: #fff; stroke: #8a94a3 } .call { fill: #e4eefa } .end { fill: #e6f3e6 }
.group { fill: #f6f7f9 } .part { fill: none; stroke: #c3c9d2; stroke-dasharray: 3 3 }
.page { stroke: none } path { stroke: #555; fill: none } .tip { fill: #555; stroke: none }
"""


@attrs.frozen
class _Box:
    """One step or list with its size; what lies inside has its place relative to it."""

    width: float
    height: float
    item: Item | None = None
    texts: tuple[str, ...] = ()
    label: str = ""
    inner: tuple[tuple[float, float, "_Box"], ...] = ()


def render_svg(name: str, description: str, items: Sequence[Item]) -> str:
    """Return the picture, whole in one element that needs nothing else."""
    body = _stack(items)
    about = textwrap.wrap(description, 80)[:_LINES]
    top = _PAD + _LINE * (1 + len(about)) + _PAD
    longest = max(9 * len(name), *(8 * len(text) for text in about), 0)
    width = max(body.width, longest) + 2 * _PAD
    height = top + body.height + _PAD
    size, shown = f"{width:g} {height:g}", f'width="{width:g}" height="{height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {shown} role="img">',
        f"<title>{escape(name)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" {shown}/>',
        _text(_PAD, _PAD + 12, name, "title"),
        *(_text(_PAD, _PAD + 12 + _LINE * (at + 1), it, "dim") for at, it in enumerate(about)),
        *_drawn(body, _PAD, top),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _stack(items: Sequence[Item]) -> _Box:
    """Return steps below each other, all as wide as the widest."""
    boxes = [_box(item) for item in items]
    width = max(box.width for box in boxes)
    inner: list[tuple[float, float, _Box]] = []
    top = 0.0
    for box in boxes:
        inner.append((0, top, attrs.evolve(box, width=width)))
        top += box.height + _GAP
    return _Box(width, top - _GAP, inner=tuple(inner))


def _box(item: Item) -> _Box:
    facts = ", ".join(f"{key} {text}" for key, text in item.facts)
    texts = textwrap.wrap(facts, _COLUMNS, break_on_hyphens=False)
    if len(texts) > _LINES:
        texts = [*texts[: _LINES - 1], f"{texts[_LINES - 1][: _COLUMNS - 3]}..."]
    head = _PAD + _LINE * (1 + len(texts))
    said = [f"{item.name}: {item.type}", *texts]
    width = max(_LEAST_WIDTH, 2 * _PAD + _CHARACTER * max(map(len, said)))
    parts = [_part(part) for part in item.parts]
    inner: list[tuple[float, float, _Box]] = []
    left = float(_PAD)
    for part in parts:
        inner.append((left, head + _PAD, part))
        left += part.width + _PAD
    tallest = max((part.height for part in parts), default=0)
    height = head + _PAD + (tallest + _PAD if parts else 0)
    return _Box(max(width, left if parts else 0), height, item, tuple(texts), inner=tuple(inner))


def _part(part: Part) -> _Box:
    label = part.label if len(part.label) <= _COLUMNS else f"{part.label[: _COLUMNS - 3]}..."
    body = _stack(part.steps)
    width = max(body.width, len(label) * _CHARACTER) + 2 * _PAD
    height = body.height + _LINE + 3 * _PAD
    return _Box(width, height, label=label, inner=((_PAD, _LINE + 2 * _PAD, body),))


def _drawn(box: _Box, left: float, top: float) -> Iterator[str]:
    if box.item is not None or box.label:
        yield _rectangle(box, left, top)
    if box.label:
        yield _text(left + _PAD, top + _PAD + 6, box.label, "dim")
    if box.item is not None:
        name = f"{box.item.name}: {box.item.type}" if box.item.name else box.item.type
        yield _text(left + _PAD, top + _PAD + 8, name, "name")
        for at, text in enumerate(box.texts):
            yield _text(left + _PAD, top + _PAD + 8 + _LINE * (at + 1), text, "dim")
    for x, y, inner in box.inner:
        yield from _drawn(inner, left + x, top + y)
    if box.item is None and not box.label:
        yield from _arrows(box, left, top)


def _arrows(box: _Box, left: float, top: float) -> Iterator[str]:
    middle = left + box.width / 2
    for (_, y, before), (_, following, _) in zip(box.inner, box.inner[1:], strict=False):
        start, end = top + y + before.height, top + following
        yield f'<path d="M{middle:g} {start:g} V{end - 5:g}"/>'
        tip = f"M{middle - 4:g} {end - 6:g} h8 l-4 6 z"
        yield f'<path class="tip" d="{tip}"/>'


def _rectangle(box: _Box, left: float, top: float) -> str:
    kind = "part"
    if box.item is not None:
        kind = "end" if box.item.leaves else "call" if box.item.type == "call" else "group"
    size = f'x="{left:g}" y="{top:g}" width="{box.width:g}" height="{box.height:g}"'
    return f'<rect class="{kind}" rx="4" {size}/>'


def _text(left: float, top: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{left:g}" y="{top:g}">{escape(text)}</text>'
