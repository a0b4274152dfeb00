"""Which comment belongs to which key, kept up while keys move, and written back at the end."""

import bisect
import itertools
from collections.abc import Iterator

import attrs
import msgspec
from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.remarks import Remark, remarks
from vsr.config.migrate.round_trip import Container, containers, entries
from vsr.config.migrate.spots import ITEM, TAIL, Owner, Spot, owner_of, spots

_HEAD: Owner = (0, ITEM)
"""Owns what stands above the first key, a blank line between: it is about the whole document."""
_END: Owner = (0, TAIL)
"""Owns what stands behind the last key."""


class _Line(msgspec.Struct, frozen=True):
    """A comment with a line to itself, or a blank line."""

    text: str
    shift: int = 0
    """Columns right of its owner's line; negative if left of it."""


@attrs.define
class _Attached:
    above: list[_Line] = attrs.field(factory=list)
    behind: list[str] = attrs.field(factory=list)
    """With the spaces before the `#`."""

    def as_lines(self) -> list[_Line]:
        """Return all of it as lines of their own, blank ones left out."""
        above = [_Line(line.text) for line in self.above if line.text]
        return above + [_Line(text.lstrip()) for text in self.behind]


@attrs.define
class Comments:
    """The comments of one document; a comment above a key belongs to it and moves with it."""

    _by_owner: dict[Owner, _Attached] = attrs.field(factory=dict, init=False)
    # An `id` names its object only as long as the object lives.
    _alive: list[object] = attrs.field(factory=list, init=False)

    def attach(self, text: str, root: CommentedMap) -> None:
        """Give every comment of `text` to a key or an item of `root`, which was parsed from it."""
        self._alive.extend(containers(root))
        owners = list(_written_owners(root))
        starts = [line for line, _ in owners]
        lines = text.split("\n")
        found = remarks(text)
        head = _head(found, starts[0] if starts else 0)
        for remark in found[:head]:
            self._add(remark, _HEAD, "")
        for remark in found[head:]:
            after = bisect.bisect_right(starts, remark.line)
            if after and (remark.gap >= 0 or remark.is_inside):
                self._add(remark, owners[after - 1][1], lines[owners[after - 1][0]])
            elif after < len(owners):
                self._add(remark, owners[after][1], lines[owners[after][0]])
            else:
                self._add(remark, _END, "")

    def move(self, old: tuple[Container, str], new: tuple[Container, str]) -> None:
        """Let what belongs to one key belong to another one, below what that has already."""
        attached = self._by_owner.pop((id(old[0]), old[1]), None)
        if attached:
            target = self._of(new[0], new[1])
            lines = attached.above
            if old[0] is not new[0]:
                # What set it apart from its old neighbours.
                lines = list(itertools.dropwhile(lambda line: not line.text, lines))
            target.above.extend(lines)
            target.behind.extend(attached.behind)

    def move_to_item(self, old: tuple[Container, str], new: Container) -> None:
        """Let what belongs to a key belong to its value, which becomes an item of a list."""
        attached = self._by_owner.pop((id(old[0]), old[1]), None)
        if attached:
            self._of(new, ITEM).above.extend(attached.as_lines())

    def hand_down(
        self, node: Container, key: str | int, heir: Container, heir_key: str | int
    ) -> None:
        """Let what belongs to a key that is removed, and to all below it, stand elsewhere.

        Args:
            node: holds `key`, or is itself removed if `key` is `ITEM`.
            heir: gets the lines, above its `heir_key`, or behind its last key if that is `TAIL`.
        """
        value: object = node if key == ITEM else node[key]
        owners = [owner_of(node, key, value), (id(node), key)]
        if isinstance(value, Container):
            owners += [owner for child in containers(value) for owner in _owners(child)]
        found = [self._by_owner.pop(owner) for owner in owners if owner in self._by_owner]
        lines = [line for attached in found for line in attached.as_lines()]
        if lines:
            above = self._of(heir, heir_key).above
            # A tail is in the order of removal; elsewhere the heir's own lines stand nearest.
            above[:] = above + lines if heir_key == TAIL else lines + above

    def take_over(self, other: "Comments") -> None:
        """Let what belongs to keys of another document belong to them here, where they are now."""
        self._alive += other._alive  # noqa: SLF001  # of its own kind, as below
        for owner, attached in other._by_owner.items():  # noqa: SLF001
            if owner not in {_HEAD, _END}:
                self._by_owner[owner] = attached

    def forget(self, node: Container) -> None:
        """Leave out what belongs to a node and to anything below it."""
        self._by_owner.pop((id(node), ITEM), None)
        for child in containers(node):
            for owner in _owners(child):
                self._by_owner.pop(owner, None)

    def written_into(self, text: str, root: CommentedMap) -> str:
        """Return `text`, which is `root` as dumped, with every comment in its place."""
        page = _Page(text.split("\n"))
        left = dict(self._by_owner)
        page.carried += [_written(line, 0) for line in left.pop(_HEAD, _Attached()).above]
        for spot in spots(root, text):
            page.place(spot, left.pop(spot.owner, _Attached()))
        page.carried += [_written(line, 0) for line in left.pop(_END, _Attached()).above]
        # Nothing is lost, even if its owner is.
        page.carried += [line.text for lost in left.values() for line in lost.as_lines()]
        return page.text()

    def _add(self, remark: Remark, owner: Owner, line: str) -> None:
        attached = self._by_owner.setdefault(owner, _Attached())
        if remark.gap >= 0:
            attached.behind.append(" " * remark.gap + remark.text)
        else:
            attached.above.append(_Line(remark.text, remark.column - _indent(line)))

    def _of(self, node: Container, key: str | int) -> _Attached:
        self._alive.append(node)
        return self._by_owner.setdefault((id(node), key), _Attached())


@attrs.define
class _Page:
    """The lines of a dumped document, and what is to be written between and behind them."""

    lines: list[str]
    carried: list[str] = attrs.field(factory=list)
    """Waits for the next key or, behind the last one, for the end."""
    _above: dict[int, list[str]] = attrs.field(factory=dict, init=False)
    _behind: dict[int, str] = attrs.field(factory=dict, init=False)

    def place(self, spot: Spot, attached: _Attached) -> None:
        """Note where the comments of one owner go; spots come from the top."""
        if spot.owner[1] == TAIL:
            self.carried += [_written(line, spot.column) for line in attached.above]
            return
        indent = _indent(self.lines[spot.first])
        above = [_written(line, indent) for line in attached.above]
        for comment in attached.behind:
            if spot.last in self._behind:
                above.append(" " * indent + comment.lstrip())
            else:
                self._behind[spot.last] = comment
        above = self.carried + above
        self.carried = []
        if spot.is_behind_block:
            # A block scalar would swallow what is indented more than the key that ends it.
            above = [line[max(0, _indent(line) - indent) :] for line in above]
        self._above.setdefault(spot.first, []).extend(above)

    def text(self) -> str:
        """Return the document with everything in its place."""
        result: list[str] = []
        for number, line in enumerate(self.lines):
            result += self._above.get(number, ())
            result.append(line + self._behind.get(number, ""))
        if not self.carried:
            return "\n".join(result)
        # At column 0, so that no block scalar at the end takes them for its own.
        result = result[:-1] if result[-1] == "" else result
        return "\n".join([*result, *(line.lstrip() for line in self.carried), ""])


def _written_owners(root: CommentedMap) -> Iterator[tuple[int, Owner]]:
    """Yield line (0-based) and name of what comments can belong to, from the top.

    What stands where its value was written first, as an alias does, is left out.
    """
    bottom = 0
    pending: list[tuple[Container, str | int, object]] = [(root, ITEM, root)]
    seen: set[int] = set()
    while pending:
        node, key, value = pending.pop()
        if key != ITEM:
            line = (node.lc.data or {}).get(key, (-1,))[0]
            if line >= bottom:
                bottom = line
                yield line, owner_of(node, key, value)
        if isinstance(value, Container) and not value.fa.flow_style() and id(value) not in seen:
            seen.add(id(value))
            pending.extend((value, name, child) for name, child in reversed(entries(value)))


def _head(found: list[Remark], first: int) -> int:
    """Return how many remarks stand above the blank line that is nearest to line `first`."""
    above = [remark for remark in found if remark.line < first and remark.gap < 0]
    while above and above[-1].text:
        above.pop()
    return len(above)


def _owners(node: Container) -> Iterator[Owner]:
    for key, value in entries(node):
        yield owner_of(node, key, value)
    yield (id(node), TAIL)


def _written(line: _Line, indent: int) -> str:
    return " " * max(0, indent + line.shift) + line.text if line.text else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
