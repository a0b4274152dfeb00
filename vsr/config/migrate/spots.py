"""Where the keys and items of a tree stand in its text."""

from collections.abc import Iterator

import msgspec
import yaml
from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.round_trip import Container, entries

Owner = tuple[int, str | int]
"""Names a key of a mapping, or an index of a list, by the `id` of its container."""

ITEM = -1
"""With the `id` of a mapping or list: itself, as an item of a list."""
TAIL = -2
"""With the `id` of a mapping or list: what stands behind its last key or item."""


class Spot(msgspec.Struct, frozen=True):
    """Where a key, an item or a tail stands in dumped text; lines and columns are 0-based."""

    owner: Owner
    first: int = 0
    last: int = 0
    """Where a comment behind it goes."""
    column: int = 0
    is_behind_block: bool = False
    """Whether a block scalar ends on the line above `first`."""


class _Open(msgspec.Struct, frozen=True):
    """A value to visit: its data, and how it was composed from the text."""

    owner: Owner
    value: object = None
    start: yaml.Node | None = None
    """The key, or the item itself; None for a tail."""
    node: yaml.Node | None = None
    column: int = 0


def owner_of(node: Container, key: str | int, value: object) -> Owner:
    """Return the name of `key` in `node`; it follows an item of a list that has entries."""
    if isinstance(key, int) and isinstance(value, Container):
        return (id(value), ITEM)
    return (id(node), key)


def spots(root: CommentedMap, text: str) -> Iterator[Spot]:
    """Yield every block key and item, and every tail, of `root`, which `text` is the dump of."""
    top: yaml.Node = yaml.compose(text, Loader=yaml.CSafeLoader) or yaml.MappingNode("", [])
    pending = list(_children(root, top))[::-1]
    was_block = False
    first_behind = -1
    while pending:
        at = pending.pop()
        if at.start is None or at.node is None:
            yield Spot(at.owner, column=at.column)
            continue
        is_open = _is_open(at.node)
        first = at.start.start_mark.line
        if was_block:
            first_behind = first
        was_block = isinstance(at.node, yaml.ScalarNode) and at.node.style in {"|", ">"}
        last = _last_line(at.start, at.node, is_short=is_open or was_block)
        yield Spot(at.owner, first, last, is_behind_block=first == first_behind)
        if is_open and isinstance(at.value, Container):
            pending += list(_children(at.value, at.node))[::-1]


def _children(value: Container, node: yaml.Node) -> Iterator[_Open]:
    for (key, child), composed in zip(entries(value), node.value, strict=True):
        start, end = composed if isinstance(composed, tuple) else (composed, composed)
        yield _Open(owner_of(value, key, child), child, start, end)
    yield _Open((id(value), TAIL), column=node.start_mark.column)


def _last_line(start: yaml.Node, node: yaml.Node, *, is_short: bool) -> int:
    """Return the line of the value's end, or of its beginning if the value is in block style."""
    if start is node and is_short:
        return int(node.start_mark.line)
    # The node of an alias is that of its anchor, further up.
    if (is_short and not isinstance(node, yaml.ScalarNode)) or (
        node.start_mark.index < start.start_mark.index
    ):
        return int(start.end_mark.line)
    return int((node.start_mark if is_short else node.end_mark).line)


def _is_open(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style
