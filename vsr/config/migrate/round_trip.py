"""YAML text to a tree that can be edited, and back, every scalar as it was written."""

import io
from collections import Counter
from collections.abc import Iterator

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.comments import Comment, CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
)

from vsr.config.yaml_schema import FLOAT_PATTERN

Container = CommentedMap | CommentedSeq

_NEVER_FOLD = 1 << 20
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class _UnresolvedScalars(VersionedResolver):
    """Takes every plain scalar for text, so that `0x1F`, `1e3` and `True` keep their spelling."""

    @property
    def versioned_resolver(self) -> dict[str, object]:
        """Return no rules, by the first character of a scalar."""
        return {}


_FAILURES = (YAMLError, AttributeError, IndexError, NotImplementedError)
"""What the library raises on input it can't handle; the latter ones on rare valid input."""


class RoundTripFailed(Exception):
    """The library can't handle this document, although it is valid."""


def parse(text: str) -> CommentedMap:
    """Return the document in `text`, a mapping, without its comments.

    Raises:
        RoundTripFailed: the library can't read it.
    """
    try:
        root: CommentedMap = _yaml().load(text)
    except _FAILURES as error:
        raise RoundTripFailed from error
    for node in containers(root):
        _drop_comments(node)
    return root


class Indents(msgspec.Struct, frozen=True):
    """How far values stand to the right of their key."""

    mapping: int
    dash: int
    """Of the items of a list."""


def dump(root: CommentedMap, indents: Indents) -> str:
    """Return `root` as text.

    Raises:
        RoundTripFailed: the library can't write it.
    """
    yaml = _yaml()
    yaml.indent(mapping=indents.mapping, sequence=indents.dash + 2, offset=indents.dash)
    stream = io.StringIO()
    try:
        yaml.dump(root, stream)
    except _FAILURES as error:
        raise RoundTripFailed from error
    return stream.getvalue()


def indents_of(root: CommentedMap) -> Indents:
    """Return the indents that most values of `root` have in the text it was parsed from."""
    mappings: Counter[int] = Counter({2: 0})
    dashes: Counter[int] = Counter({2: 0})
    for node in containers(root):
        for key, child in entries(node) if isinstance(node, CommentedMap) else ():
            place = (node.lc.data or {}).get(key)
            if place and isinstance(child, Container) and not child.fa.flow_style() and child:
                counter = mappings if isinstance(child, CommentedMap) else dashes
                counter[child.lc.col - place[1]] += 1
    return Indents(max(1, _most_common(mappings)), max(0, _most_common(dashes)))


def containers(root: Container) -> Iterator[Container]:
    """Yield each mapping and list of the tree once, parents first, in document order."""
    seen: set[int] = set()
    pending: list[Container] = [root]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            children = [value for _, value in entries(node)]
            pending.extend(child for child in reversed(children) if isinstance(child, Container))


def entries(node: Container) -> list[tuple[str | int, object]]:
    """Return the keys or indices of `node` with their values."""
    if isinstance(node, CommentedMap):
        return list(node.items())
    return list(enumerate(node))


def copied(value: object) -> object:
    """Return a copy of `value` that shares no mapping and no list with it, and has no anchors."""
    if not isinstance(value, Container):
        return value
    copy = CommentedMap() if isinstance(value, CommentedMap) else CommentedSeq()
    for key, child in entries(value):
        if isinstance(copy, CommentedMap):
            copy[key] = copied(child)
        else:
            copy.append(copied(child))
    if value.fa.flow_style():
        copy.fa.set_flow_style()
    for key, place in (value.lc.data or {}).items():
        copy.lc.add_kv_line_col(key, place)
    return copy


def is_empty(value: object) -> bool:
    """Return whether `value` says nothing: null, no text, no entries."""
    if isinstance(value, Container):
        return not value
    return value is None or is_null(value) or value == ""


def is_null(value: object) -> bool:
    """Return whether `value` is a plain scalar that YAML reads as null."""
    # A quoted scalar is of a subclass.
    return type(value) is str and value in _NULLS


def is_number(value: object) -> bool:
    """Return whether `value` is a plain scalar that YAML reads as a number."""
    return type(value) is str and FLOAT_PATTERN.fullmatch(value) is not None


def line_of(node: Container, key: str | int) -> int:
    """Return the line (1-based) that `key` was parsed from; 0 if it was not."""
    place = (node.lc.data or {}).get(key)
    return place[0] + 1 if place else 0


def _yaml() -> YAML:
    yaml = YAML()
    yaml.Resolver = _UnresolvedScalars
    yaml.width = _NEVER_FOLD
    yaml.preserve_quotes = True
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    return yaml


def _drop_comments(node: Container) -> None:
    """Forget what the parser attached; `Comments` keeps them, and survives edits."""
    if hasattr(node, Comment.attrib):
        delattr(node, Comment.attrib)
    for key, value in entries(node):
        for scalar in (key, value):
            if hasattr(scalar, "comment"):
                scalar.comment = None
        if (
            isinstance(value, LiteralScalarString | FoldedScalarString)
            and value.lstrip("\n")[:1].isspace()
        ):
            # The library miscounts the indent of a block that begins with a space.
            node[key] = DoubleQuotedScalarString(value)
        if node.fa.flow_style() and type(value) is str and not value:
            # An omitted value in a flow mapping would come out as a quoted empty text.
            node[key] = "null"


def _most_common(counter: Counter[int]) -> int:
    return counter.most_common(1)[0][0]
