"""Where a value stands in the document: its path and its line."""

import json
import re
from collections.abc import Mapping

import attrs

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""What a YAML node becomes."""

Path = tuple[str | int, ...]
"""Keys and indices from the root."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: Path) -> str:
    """Return `path` as authors read it: `providers.models[0].extra_headers["x.y"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif _PLAIN_KEY.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f"[{json.dumps(key)}]"
    return text


@attrs.frozen
class LineIndex:
    """The line of every path of one document."""

    root: Value = None
    marks: Mapping[int, Mapping[str | int, int]] = attrs.field(factory=dict, repr=False)
    """By `id` of a mapping or list of `root`, the line (1-based) of each key or index."""
    first: int = 1
    """Line of the root."""

    def line(self, path: Path) -> int:
        """Return the line of `path`, or of its nearest ancestor that exists."""
        value, line = self.root, self.first
        for key in path:
            found = self.marks.get(id(value), {}).get(key)
            if found is None:
                break
            line = found
            value = _child(value, key)
        return line

    def under(self, path: Path) -> "LineIndex":
        """Return the lines of a document that has this one at `path`, and nothing else."""
        root, marks = self.root, dict(self.marks)
        for key in reversed(path):
            outer: Value = {str(key): root}
            marks[id(outer)] = {key: self.first}
            root = outer
        return LineIndex(root, marks, self.first)

    def value(self, path: Path) -> Value:
        """Return the value at `path`; None where there is none."""
        value = self.root
        for key in path:
            value = _child(value, key)
        return value

    def has(self, path: Path) -> bool:
        """Return whether `path` was written."""
        value = self.root
        for key in path:
            if key not in self.marks.get(id(value), {}):
                return False
            value = _child(value, key)
        return True


def _child(value: Value, key: str | int) -> Value:
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return None
