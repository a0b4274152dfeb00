"""The steps of a graph as a Mermaid flowchart."""

from collections.abc import Sequence

import attrs

from vsr.graph.picture.outline import Item, Part

_Ways = list[tuple[str, str]]
"""Nodes that arrows come from, and what these say."""

_ROUNDED = frozenset({"respond", "fail", "break"})


def render_mermaid(name: str, items: Sequence[Item]) -> str:
    """Return the flowchart: a node per step, arrows in the order in which they run."""
    chart = _Chart()
    chart.add_list(items, [("request", "")])
    return "\n".join(["flowchart TD", f'    request(["{_text(name)}"])', *chart.lines]) + "\n"


@attrs.define
class _Chart:
    """Collects lines and numbers nodes."""

    lines: list[str] = attrs.field(factory=list)
    count: int = 0

    def add_list(self, items: Sequence[Item], ways: _Ways) -> _Ways:
        """Add steps that `ways` lead to; return the ways out."""
        for item in items:
            ways = self._add(item, ways)
        return ways

    def _add(self, item: Item, ways: _Ways) -> _Ways:
        node = f"n{self.count}"
        self.count += 1
        self.lines.append(f"    {node}{_shape(item)}")
        for start, label in ways:
            said = f'|"{_text(label)}"|' if label else ""
            self.lines.append(f"    {start} -->{said} {node}")
        if item.leaves:
            return []
        if not item.parts:
            return [(node, "")]
        out = [way for part in item.parts for way in self._add_part(part, node)]
        if item.type == "loop":
            self.lines += [f"    {end} -.-> {node}" for end, _ in out if end != node]
            return [(node, "done")]
        return [*out, (node, "else")] if item.may_pass else out

    def _add_part(self, part: Part, node: str) -> _Ways:
        return self.add_list(part.steps, [(node, part.label)])


def _shape(item: Item) -> str:
    said = f"{item.name}: {item.type}" if item.name else item.type
    main = _main_fact(item)
    text = _text(f"{said}\n{main}" if main else said).replace("\n", "<br/>")
    if item.type in _ROUNDED:
        return f'(["{text}"])'
    return f'{{"{text}"}}' if item.type == "branch" else f'["{text}"]'


def _main_fact(item: Item) -> str:
    """Return the field that tells most: the first one that is no setting of the step itself."""
    for key, text in item.facts:
        if key not in {"on_error", "error", "account"}:
            return f"{key} {text}"
    return ""


def _text(text: str) -> str:
    for sign, name in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(sign, name)
    return text
