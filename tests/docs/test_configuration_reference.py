"""The page of every key of the document is made from its classes."""

import os
import types
from collections.abc import Iterator
from typing import Annotated, Literal, Union, get_args, get_origin

from tests.config.classes import CLASSES
from tests.docs.markdown import ROOT
from vsr.config.document.kinds import (
    AutoValue,
    Bounds,
    DurationText,
    PairValue,
    PeriodValue,
    TokenCountValue,
)
from vsr.config.document.objects import DocumentObject, Field, fields_of

PAGE = ROOT / "docs" / "configuration-reference.md"
REWRITE = "VSR_REWRITE_GOLDEN=1 .venv/bin/pytest tests/docs/test_configuration_reference.py"
HEAD = f"""# Every key of the document

One table per kind of object, made from the code that reads the document (rewritten by
`{REWRITE}`). [Configuration](configuration.md) explains what this version serves.
"""
SCALARS = {str: "text", int: "integer", float: "number", bool: "boolean", object: "anything"}
KINDS: dict[object, str] = {
    AutoValue: "`auto` or integer",
    DurationText: "duration",
    PairValue: "two numbers",
    PeriodValue: "duration or nanoseconds",
    TokenCountValue: "tokens",
}


def words_of(kind: object) -> str:
    """Return a type as readers of the page know it."""
    if kind in SCALARS:
        return SCALARS[kind]
    if isinstance(kind, type) and issubclass(kind, DocumentObject):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return generic_words(get_origin(kind), get_args(kind))


def generic_words(origin: object, arguments: tuple[object, ...]) -> str:
    """Return a type with arguments as readers of the page know it."""
    if origin is Annotated:
        return marked(arguments[0], arguments[1])
    if origin in {types.UnionType, Union}:
        return " or ".join(words_of(each) for each in arguments if each is not types.NoneType)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments if word)
    if origin is tuple:
        return f"list of {words_of(arguments[0])}"
    return f"mapping to {words_of(arguments[1])}"


def marked(kind: object, marker: object) -> str:
    """Return a type with its bounds."""
    if type(marker) in KINDS:
        return KINDS[type(marker)]
    if not isinstance(marker, Bounds):
        return f"{words_of(kind)}, not empty"
    low, high = marker.minimum, marker.maximum
    bounds = f"{low:.15g} to {high:.15g}" if high is not None else f"at least {low:g}"
    return f"{words_of(kind)}, {bounds}"


def default_of(field: Field) -> str:
    """Return a default worth telling."""
    value = field.default
    if field.is_required:
        return "required"
    if isinstance(value, bool | int | float) or (isinstance(value, str) and value):
        return f"`{str(value).lower() if isinstance(value, bool) else value}`"
    if isinstance(value, tuple) and value:
        return ", ".join(f"`{item}`" for item in value)
    return ""


def lines() -> Iterator[str]:
    """Return the page."""
    yield HEAD
    for name in sorted(CLASSES):
        cls = CLASSES[name]
        yield f"## {name}\n"
        yield f"{(cls.__doc__ or '').partition(chr(10))[0]}\n"
        yield "| key | type | default |"
        yield "| --- | --- | --- |"
        for key, field in fields_of(cls).items():
            yield f"| `{key}` | {words_of(field.kind)} | {default_of(field)} |"
        yield ""


def test_page_tells_every_key_with_its_type_and_default() -> None:
    """As the classes have them."""
    page = "\n".join(lines())

    if os.environ.get("VSR_REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
