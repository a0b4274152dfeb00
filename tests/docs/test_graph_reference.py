"""The page of all that graphs may ask for by name is made from the extensions' classes."""

import ast
import inspect
import itertools
import json
import os
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import msgspec
import pytest

from tests.docs.markdown import ROOT
from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply, ReplyUsage
from vsr.graph.aggregate.builtin import BUILTIN_AGGREGATES
from vsr.graph.bind import REGISTRY, SECONDS, VISIBLE, key_of
from vsr.graph.block import Block
from vsr.graph.compiled import CompiledGraph
from vsr.graph.conditions.builtin import BUILTIN_CONDITIONS
from vsr.graph.edits import Edit
from vsr.graph.late import Condition, Expression, Predicate
from vsr.graph.nodes.branch import Case
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.graph.signal_trees import SignalTree
from vsr.graph.text import TextTemplate
from vsr.graph.transform.builtin import BUILTIN_TRANSFORMERS
from vsr.graph.value import ModelRef, Prompt
from vsr.registry import Extension, Registry
from vsr.resources.reliability import CallOverride

PAGE = ROOT / "docs" / "graphs-reference.md"
REWRITE = "VSR_REWRITE_GOLDEN=1 .venv/bin/pytest tests/docs/test_graph_reference.py"
HEAD = f"""# All that graphs may ask for by name

Node types, aggregate strategies, transformers and conditions with their fields, made from the
code that reads them (rewritten by `{REWRITE}`).
[Request graphs](graphs.md) explains the language. A field without a default must be given. Every
field may be a reference to a value of its type.
"""
SECTIONS: Mapping[str, Iterable[Extension[object]]] = {
    "Node types": Registry("node type", BUILTIN_NODES),
    "Aggregate strategies": Registry("aggregate strategy", BUILTIN_AGGREGATES),
    "Transformers": Registry("transformer", BUILTIN_TRANSFORMERS),
    "Conditions": Registry("condition", BUILTIN_CONDITIONS),
}
WORDS: Mapping[object, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    object: "anything",
    Block: "steps",
    Condition: "condition",
    Predicate: "condition on `$it`",
    Expression: "anything",
    TextTemplate: "text with `{{ }}`",
    CallOverride: "[reliability](reliability.md)",
    CompiledGraph: "name of a graph",
    ChatBody: "request",
    ModelRef: "candidate",
    Prompt: "prompt",
    Reply: "reply",
    ReplyUsage: "usage",
    SignalTree: "[rules](configuration.md#decisions)",
}
PLACES = {"aggregate": "aggregate-strategies", "transformer": "transformers"}
LISTS = (tuple, list, Sequence)


def words_of(kind: object) -> str:
    """Return a type as authors know it."""
    if kind in WORDS:
        return WORDS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return "duration" if SECONDS in arguments[1:] else words_of(arguments[0])
    if origin in {types.UnionType, Union}:
        parts = [words_of(each) for each in arguments if each is not types.NoneType]
        return " or ".join(dict.fromkeys(parts))
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    return _collection_words(origin or kind, arguments)


def _collection_words(cls: object, arguments: tuple[object, ...]) -> str:
    if cls in LISTS:
        return f"list of {words_of(arguments[0])}" if arguments else "list"
    if cls in {Mapping, dict}:
        plain = not arguments or arguments[1] is object
        return "mapping" if plain else f"mapping to {words_of(arguments[1])}"
    return _class_words(cls)


def _class_words(cls: object) -> str:
    name = getattr(cls, "__name__", str(cls))
    return f"[{name}](#{name.lower()})" if cls in parts() else name


def parts() -> dict[type, None]:
    """Return the classes that fields of extensions hold, and that authors write as mappings."""
    found: dict[type, None] = {}
    for extensions in SECTIONS.values():
        for extension in extensions:
            _collect(extension.config, found)
    return dict(sorted(found.items(), key=lambda item: item[0].__name__))


def _collect(cls: type, found: dict[type, None]) -> None:
    for hint in get_type_hints(cls, include_extras=True).values():
        for each in _flat(hint):
            is_part = isinstance(each, type) and attrs.has(each) and each not in WORDS
            if isinstance(each, type) and is_part and each not in found:
                found[each] = None
                _collect(each, found)


def _flat(kind: object) -> Iterator[object]:
    yield kind
    for each in get_args(kind):
        yield from _flat(each)


def default_of(field: "attrs.Attribute[object]") -> str:
    """Return a default as authors would write it."""
    value = field.default
    if value is attrs.NOTHING:
        return ""
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
        value = value.factory()  # type: ignore[attr-defined]  # see above
    if isinstance(value, tuple):
        return "`[" + ", ".join(map(str, value)) + "]`"
    if value is None or isinstance(value, bool):
        return "null" if value is None else f"`{str(value).lower()}`"
    text = json.dumps(value, ensure_ascii=False)[1:-1] if isinstance(value, str) else str(value)
    return f"`{text}`" if text else "`''`"


def notes_of(cls: type) -> Mapping[str, str]:
    """Return what stands below each field of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    (body,) = (each.body for each in tree.body if isinstance(each, ast.ClassDef))
    notes: dict[str, str] = {}
    for field, note in itertools.pairwise(body):
        match field, note:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                notes[name] = " ".join(str(text).replace("None", "null").split())
    return notes


def table(cls: type) -> Iterator[str]:
    """Return the fields of a class."""
    hints, notes = get_type_hints(cls, include_extras=True), notes_of(cls)
    fields = [each for each in attrs.fields(cls) if not each.metadata.get(VISIBLE) and each.init]
    if not fields:
        return
    yield "\n| field | type | default | |"
    yield "| --- | --- | --- | --- |"
    for field in fields:
        kind = words_of(hints[field.name])
        if REGISTRY in field.metadata:
            place = PLACES[field.metadata[REGISTRY]]
            kind = f"name of [one](#{place}), whose fields stand beside it"
        note = notes.get(field.name, "").replace("|", "\\|")
        kind = kind.replace("|", "\\|")
        yield f"| `{key_of(field.name)}` | {kind} | {default_of(field)} | {note} |"


def lines() -> Iterator[str]:
    """Return the page."""
    yield HEAD
    for title, extensions in SECTIONS.items():
        yield f"## {title}\n"
        for extension in sorted(extensions, key=lambda each: each.name):
            yield f"### `{extension.name}`\n"
            yield about(extension.config)
            if title in {"Aggregate strategies", "Transformers"}:
                result = get_type_hints(extension.config.__call__).get("return", object)
                yield f"\nIts value: {words_of(result)}."
            yield from table(extension.config)
            yield ""
    yield "## Parts\n"
    for cls in parts():
        yield f"### {cls.__name__}\n"
        yield about(cls)
        yield from table(cls)
        yield ""


def about(cls: type) -> str:
    """Return the first sentence of a class."""
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def test_page_tells_every_field_with_its_type_and_default() -> None:
    """As the classes have them."""
    page = "\n".join(lines())

    if os.environ.get("VSR_REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Annotated[float | None, SECONDS], "duration"),
        (tuple[Edit, ...], "list of [Edit](#edit)"),
        (tuple[Case, ...] | str | None, "list of [Case](#case) or text"),
        (Literal["a", "b"], "`a`, `b`"),
        (Mapping[str, Expression], "mapping to anything"),
        (msgspec.Struct, "Struct"),
    ],
)
def test_types_are_in_the_words_of_authors(kind: object, words: str) -> None:
    """No class that only the code knows, where there is a word for it."""
    assert words_of(kind) == words
