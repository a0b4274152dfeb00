"""A document in the course of its migration: where things are, and how they move."""

from collections.abc import Iterator

import attrs
import msgspec
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from vsr.config.migrate.comments import Comments
from vsr.config.migrate.round_trip import Container, is_empty, line_of
from vsr.config.migrate.spots import ITEM, TAIL
from vsr.config.position import Path, dotted
from vsr.config.report import Report


class Place(msgspec.Struct, frozen=True):
    """A mapping of the document, and its path."""

    node: CommentedMap
    path: Path

    def get(self, key: str) -> object:
        """Return the value of `key`, or None."""
        value: object = self.node.get(key)
        return value

    def has(self, key: str) -> bool:
        """Return whether `key` is there, even with an empty value."""
        return key in self.node

    def says(self, key: str) -> bool:
        """Return whether `key` is there with a value that says something."""
        return not is_empty(self.node.get(key))

    def text(self, key: str) -> str:
        """Return the value of `key` without the spaces around it; empty if it is no text."""
        value = self.get(key)
        return value.strip() if isinstance(value, str) and not is_empty(value) else ""

    def child(self, *keys: str) -> "Place | None":
        """Return the mapping below `keys`, if there is one."""
        place = self
        for key in keys:
            value = place.node.get(key)
            if not isinstance(value, CommentedMap):
                return None
            place = Place(value, (*place.path, key))
        return place

    def items(self, key: str) -> Iterator["Place"]:
        """Yield the mappings in the list `key`; nothing if it is none."""
        values = self.node.get(key)
        for index, value in enumerate(values if isinstance(values, CommentedSeq) else ()):
            if isinstance(value, CommentedMap):
                yield Place(value, (*self.path, key, index))


@attrs.define
class Draft:
    """The tree, its comments, what was changed so far, and what can't be."""

    root: Place
    comments: Comments
    report: Report
    changes: list[str] = attrs.field(factory=list, init=False)

    def note(self, path: Path, change: str) -> None:
        """Say what happened to `path`; never with a value that could be a secret."""
        self.changes.append(f"{dotted(path) or '(document)'}: {change}")

    def refuse(self, place: Place, key: str, what: str, mend: str) -> None:
        """Report a problem that only the author can solve."""
        path = (*place.path, key)
        self.report.add(path, what, mend=mend, line=line_of(place.node, key))

    def ensure(self, place: Place, *keys: str) -> Place:
        """Return the mapping below `keys`, made where it is missing."""
        for key in keys:
            value = place.node.get(key)
            if not isinstance(value, CommentedMap):
                value = CommentedMap()
                self._start(place, key, value, "mapping")
            _open(value)
            place = Place(value, (*place.path, key))
        return place

    def sequence(self, place: Place, key: str) -> CommentedSeq:
        """Return the list `key`, made if it is missing."""
        value = place.node.get(key)
        if not isinstance(value, CommentedSeq):
            value = CommentedSeq()
            self._start(place, key, value, "list")
        _open(value)
        return value

    def rename(self, place: Place, old: str, new: str) -> None:
        """Give a key its new name, where it stands; see `move`."""
        self.move(place, old, place, new)

    def move(self, source: Place, old: str, target: Place, new: str) -> None:
        """Move a key with its comments; nothing happens if it isn't there.

        An empty value is dropped. A new key that is there already must have the same value.
        """
        if not source.has(old):
            return
        value = source.get(old)
        if is_empty(value):
            self.remove(source, old, "removed, it was empty")
        elif not is_empty(target.get(new)):
            if target.get(new) == value:
                self.remove(source, old, f"removed, it repeats {dotted((*target.path, new))}")
            else:
                self._refuse_two(source, old, (*target.path, new))
        else:
            self.move_even_empty(source, old, target, new)

    def move_even_empty(self, source: Place, old: str, target: Place, new: str) -> None:
        """Move a key to where no such key is, whatever its value."""
        self._put(source, old, target, new)
        self.note((*source.path, old), f"is now {dotted((*target.path, new))}")

    def move_all(self, source: Place, target: Place) -> None:
        """Move every key of a mapping into another one."""
        for key in list(source.node):
            self.move(source, key, target, key)

    def remove(self, place: Place, key: str, change: str, *, heir: str = "") -> None:
        """Remove a key; its comments stay above `heir`, if it is there, or above the next key."""
        self._take_out(place, key, heir)
        self.note((*place.path, key), change)

    def drop_if_empty(self, place: Place, key: str, *, heir: str = "") -> None:
        """Remove a mapping or list that has lost all it had, without a word; see `remove`."""
        value = place.node.get(key)
        if isinstance(value, Container) and not value:
            self._take_out(place, key, heir)

    def remove_item(self, items: CommentedSeq, item: CommentedMap, owner: Place, key: str) -> None:
        """Take `item` out of `items`; its comments stay above the next, or above `key`."""
        at = next(index for index, value in enumerate(items) if value is item)
        following = items[at + 1] if at + 1 < len(items) else None
        if isinstance(following, Container):
            self.comments.hand_down(item, ITEM, following, ITEM)
        else:
            self.comments.hand_down(item, ITEM, owner.node, key)
        del items[at]

    def _start(self, place: Place, key: str, value: Container, kind: str) -> None:
        if place.says(key):
            self.refuse(place, key, f"must be a {kind}", f"write it as a {kind}")
        else:
            place.node[key] = value

    def _take_out(self, place: Place, key: str, heir: str) -> None:
        names = list(place.node)
        following = names[names.index(key) + 1 :]
        chosen = heir if heir in place.node else next(iter(following), TAIL)
        self.comments.hand_down(place.node, key, place.node, chosen)
        del place.node[key]

    def _put(self, source: Place, old: str, target: Place, new: str) -> None:
        names = list(source.node)
        value = source.node[old]
        line = (source.node.lc.data or {}).get(old)
        self.comments.move((source.node, old), (target.node, new))
        del source.node[old]
        if new in target.node:
            del target.node[new]
        if source.node is target.node:
            target.node.insert(names.index(old), new, value)
        else:
            target.node[new] = value
        if line:
            target.node.lc.add_kv_line_col(new, line)

    def _refuse_two(self, source: Place, old: str, new: Path) -> None:
        what = f"is given as {dotted(new)} too, with another value"
        self.refuse(source, old, what, "keep one of the two")


def _open(value: Container) -> None:
    """Let an empty value, written `{}` or `[]`, take one line for each entry it gets."""
    if not value:
        value.fa.set_block_style()
