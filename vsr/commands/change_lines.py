"""Differences of documents as text."""

import json
from collections.abc import Iterable, Iterator

import msgspec

from vsr.commands.table import WIDTH, cut

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_INDENT = "    "


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place that differs; see `config.diff`."""

    path: str
    kind: str
    before: object = None
    after: object = None


def change_lines(changes: Iterable[Change], width: int | None = WIDTH) -> Iterator[str]:
    """Yield the lines of changes: a sign, the path, and what stands there where that fits.

    Args:
        changes: of a document.
        width: see `table.room`; None: every change has one line, however long.
    """
    for change in changes:
        head = f"{_SIGNS.get(change.kind, '?')} {change.path or '(document)'}"
        values = _values(change)
        line = f"{head}: {' -> '.join(values)}"
        if width is None or len(line) <= width:
            yield line
            continue
        yield f"{head}:"
        for sign, value in zip(_signs(change), values, strict=True):
            yield cut(f"{_INDENT}{sign} {value}", width)


def _values(change: Change) -> list[str]:
    match change.kind:
        case "added":
            shown = [change.after]
        case "removed":
            shown = [change.before]
        case _:
            shown = [change.before, change.after]
    return [json.dumps(each, ensure_ascii=False) for each in shown]


def _signs(change: Change) -> str:
    return {"added": "+", "removed": "-"}.get(change.kind, "-+")
