"""Aliases and merge keys written out, so that every place can be rewritten for itself."""

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from vsr.config.migrate.comments import Comments
from vsr.config.migrate.round_trip import Container, containers, copied, entries

_MERGE = "<<"


def write_out(root: CommentedMap, comments: Comments) -> bool:
    """Replace aliases of mappings and lists, and merge keys; return whether there were any."""
    seen: set[int] = set()
    found = False
    # From the top of the document, so that the original stays where its anchor was.
    pending: list[tuple[Container, str | int]] = [(CommentedSeq([root]), 0)]
    while pending:
        parent, key = pending.pop()
        node: Container = parent[key]
        if id(node) in seen and isinstance(replacement := copied(node), Container):
            found = True
            node = parent[key] = replacement
        seen.add(id(node))
        while isinstance(node, CommentedMap) and _has_merge(node):
            found = True
            _merge(node, comments)
        children = [name for name, value in entries(node) if isinstance(value, Container)]
        pending.extend((node, name) for name in reversed(children))
    for node in containers(root) if found else ():
        node.yaml_set_anchor(None)
    return found


def _has_merge(node: CommentedMap) -> bool:
    # A quoted key is of a subclass, and an ordinary key.
    return any(key == _MERGE and type(key) is str for key in node)


def _merge(node: CommentedMap, comments: Comments) -> None:
    at = list(node).index(_MERGE)
    merged = node.pop(_MERGE)
    end = at
    for source in merged if isinstance(merged, CommentedSeq) else [merged]:
        # A key of the mapping itself wins, then the mapping merged first.
        for key, value in list(source.items()):
            if key not in node:
                node.insert(end, key, copied(value))
                end += 1
    for key in list(node)[at : at + 1]:
        comments.move((node, _MERGE), (node, key))
