"""Whether a tree says what its text says, by the word of another parser."""

import yaml
from ruamel.yaml.comments import CommentedMap, TaggedScalar

from vsr.config.migrate.round_trip import Container, entries, is_null
from vsr.config.position import Path


def first_difference(root: CommentedMap, text: str) -> Path | None:
    """Return the path of the first value that differs between `root` and `text`, if any does."""
    try:
        top = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return ()
    seen: set[tuple[int, int]] = set()
    pending: list[tuple[Path, object, object]] = [((), root, top)]
    while pending:
        path, value, node = pending.pop()
        if (id(value), id(node)) in seen:
            continue
        seen.add((id(value), id(node)))
        if isinstance(value, Container) and isinstance(node, yaml.CollectionNode):
            items = entries(value)
            if _keys(node) != [key for key, _ in items]:
                return path
            pending += [
                ((*path, key), child, item[1] if isinstance(item, tuple) else item)
                for (key, child), item in zip(items, node.value, strict=True)
            ][::-1]
        elif not isinstance(node, yaml.ScalarNode) or not _agree(value, node):
            return path
    return None


def _keys(node: yaml.CollectionNode) -> list[object]:
    return [
        getattr(item[0], "value", None) if isinstance(item, tuple) else index
        for index, item in enumerate(node.value)
    ]


def _agree(value: object, node: yaml.ScalarNode) -> bool:
    if is_null(value) and not node.value:
        # An omitted value, which `parse` writes out in flow mappings.
        return not node.style
    written: object = value.value if isinstance(value, TaggedScalar) else value
    return bool(node.value == written)
