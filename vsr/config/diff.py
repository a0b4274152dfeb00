"""What differs between two documents: paths, and what stands there."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from vsr.config.position import Value, dotted

MAX_CHANGES = 1000
_NAMES = ("name", "id", "model")
"""Members that tell entries of a list apart, the first one that all entries have."""


class ChangeKind(StrEnum):
    """What has become of a place."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place that differs."""

    path: str
    """Entries of a list stand under their names: `providers.models[small].backend_refs[0]`."""
    kind: ChangeKind
    before: object = None
    """Plain values, without secrets; None where there was nothing."""
    after: object = None


class Side(msgspec.Struct, frozen=True):
    """A document in two forms of the same shape."""

    written: Value
    """Compared: with secrets, references as written."""
    shown: Value
    """Told of: without secrets."""


def differences(before: Side, after: Side) -> tuple[Change, ...]:
    """Return what differs, in the order of the documents; at most `MAX_CHANGES`."""
    found: list[Change] = []
    for change in _differences("", before, after):
        if len(found) == MAX_CHANGES:
            break
        found.append(change)
    return tuple(found)


def _differences(path: str, before: Side, after: Side) -> Iterator[Change]:
    if before.written == after.written:
        return
    old, new = _members(before), _members(after)
    if old is None or new is None or old[0] != new[0]:
        yield Change(path, ChangeKind.CHANGED, before.shown, after.shown)
        return
    moved = [key for key in old[1] if key in new[1]] != [key for key in new[1] if key in old[1]]
    if moved and not old[0]:
        # Entries of a list in another order: which comes first may decide.
        yield Change(path, ChangeKind.CHANGED, _order(old[1]), _order(new[1]))
    for key in dict.fromkeys([*old[1], *new[1]]):
        place = f"{path}{key}" if path else key.removeprefix(".")
        if key not in new[1]:
            yield Change(place, ChangeKind.REMOVED, old[1][key].shown)
        elif key not in old[1]:
            yield Change(place, ChangeKind.ADDED, after=new[1][key].shown)
        else:
            yield from _differences(place, old[1][key], new[1][key])


def _members(side: Side) -> tuple[bool, dict[str, Side]] | None:
    """Return whether a value is a mapping, and its members by how a path writes them."""
    written, shown = side.written, side.shown
    if isinstance(written, dict) and isinstance(shown, dict):
        return True, {_step(key): Side(written[key], shown.get(key)) for key in written}
    if isinstance(written, list) and isinstance(shown, list):
        names = _names(written)
        return False, {
            f"[{name}]": Side(each, seen)
            for name, each, seen in zip(names, written, shown, strict=True)
        }
    return None


def _order(members: dict[str, Side]) -> list[str]:
    return [key[1:-1] for key in members]


def _step(key: str) -> str:
    """Return what a key adds to a path."""
    text = dotted((key,))
    return text if text.startswith("[") else f".{text}"


def _names(entries: list[Value]) -> list[str]:
    """Return what tells entries apart: a member that all have, else their places."""
    for key in _NAMES:
        names = [each.get(key) if isinstance(each, dict) else None for each in entries]
        if all(isinstance(name, str) and name for name in names) and len({*names}) == len(names):
            return [str(name) for name in names]
    return [str(at) for at in range(len(entries))]
