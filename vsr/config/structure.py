"""From plain values to the document's classes, with exact types and nothing ignored."""

import difflib
import functools
import math
import types
from collections.abc import Callable, Mapping
from typing import Protocol, Union, cast, get_args, get_origin, get_type_hints

import attrs

from vsr.config.document import Document, TokenCount, key_of
from vsr.config.environment import Expanded
from vsr.config.load import read_bool, read_int
from vsr.config.not_served import NOT_SERVED_KEYS, RENAMED_KEYS
from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.yaml_schema import FLOAT_PATTERN, INT_PATTERN

Reader = Callable[[Value, Path, Report], object]
"""Returns the value in its type; a fault goes to the report and gives the type's neutral value."""


class _Build(Protocol):
    """A class of the document."""

    def __call__(self, **fields: object) -> object: ...


def structure(values: Value, report: Report) -> Document:
    """Return the document of `values`; what `report` calls broken stands as a neutral value."""
    return cast("Document", _reader_of(Document)(values, (), report))


@functools.cache
def _reader_of(kind: object) -> Reader:
    """Return the reader of a type; classes refer to each other, so theirs is built on first use."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, type) and attrs.has(kind):
        return _class_reader(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {types.UnionType, Union}:
        # None means an omitted key; a written null is not one and fails in the other reader.
        inner = [argument for argument in arguments if argument is not types.NoneType]
        return _reader_of(inner[0] if len(inner) == 1 else TokenCount)
    if origin is tuple:
        return functools.partial(_read_list, arguments[0])
    return functools.partial(_read_mapping, arguments[1])


def _class_reader(cls: type[attrs.AttrsInstance]) -> Reader:
    hints = get_type_hints(cls)
    fields = {key_of(field.name): field.name for field in attrs.fields(cls)}
    build = cast("_Build", cls)

    def read(value: Value, path: Path, report: Report) -> object:
        if not isinstance(value, dict):
            _wrong_type("a mapping", value, path, report)
            return build()
        arguments: dict[str, object] = {}
        for key, item in value.items():
            name = fields.get(key)
            if name is None:
                _refuse_key(cls.__name__, fields, (*path, key), report)
            else:
                arguments[name] = _reader_of(hints[name])(item, (*path, key), report)
        return build(**arguments)

    return read


def _refuse_key(owner: str, fields: Mapping[str, str], path: Path, report: Report) -> None:
    key = str(path[-1])
    not_served = NOT_SERVED_KEYS.get(owner, frozenset())
    if key in not_served:
        report.add(path, "is not served by this version", mend="remove it")
        return
    renamed = RENAMED_KEYS.get(owner, {}).get(key)
    near = [renamed] if renamed else difflib.get_close_matches(key, [*fields, *not_served], n=1)
    mend = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(fields))}"
    report.add_broken(path, "is an unknown key", mend=mend)
    for spelling in near:
        # That this one is missing is no fault of its own.
        report.mark_broken((*path[:-1], spelling))


def _read_list(kind: object, value: Value, path: Path, report: Report) -> tuple[object, ...]:
    if not isinstance(value, list):
        _wrong_type("a list", value, path, report)
        return ()
    read = _reader_of(kind)
    return tuple(read(item, (*path, index), report) for index, item in enumerate(value))


def _read_mapping(kind: object, value: Value, path: Path, report: Report) -> dict[str, object]:
    if not isinstance(value, dict):
        _wrong_type("a mapping", value, path, report)
        return {}
    read = _reader_of(kind)
    return {key: read(item, (*path, key), report) for key, item in value.items()}


def _read_str(value: Value, path: Path, report: Report) -> str:
    if type(value) is str:
        return value
    if isinstance(value, Expanded):
        return str(value)
    _wrong_type("text", value, path, report)
    return ""


def _read_int(value: Value, path: Path, report: Report) -> int:
    if type(value) is int:
        return value
    if isinstance(value, Expanded) and value.is_reference and INT_PATTERN.fullmatch(value):
        try:
            return read_int(value)
        except ValueError:
            pass
    _wrong_type("a whole number", value, path, report)
    return 0


def _read_float(value: Value, path: Path, report: Report) -> float:
    if type(value) is int or type(value) is float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    if isinstance(value, Expanded) and value.is_reference and FLOAT_PATTERN.fullmatch(value):
        return float(value)
    _wrong_type("a finite number", value, path, report)
    return 0.0


def _read_bool(value: Value, path: Path, report: Report) -> bool:
    if type(value) is bool:
        return value
    if isinstance(value, Expanded) and value.is_reference:
        try:
            return read_bool(value)
        except ValueError:
            pass
    _wrong_type("true or false", value, path, report)
    return False


def _read_token_count(value: Value, path: Path, report: Report) -> TokenCount:
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, str):
        return str(value)
    _wrong_type("a number of tokens such as 24K", value, path, report)
    return 0


def _read_any(value: Value, path: Path, report: Report) -> Value:
    if isinstance(value, dict):
        return {key: _read_any(item, (*path, key), report) for key, item in value.items()}
    if isinstance(value, list):
        return [_read_any(item, (*path, index), report) for index, item in enumerate(value)]
    return str(value) if isinstance(value, Expanded) else value


_SIMPLE: Mapping[object, Reader] = {
    str: _read_str,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    TokenCount: _read_token_count,
    object: _read_any,
}


def _wrong_type(wanted: str, value: Value, path: Path, report: Report) -> None:
    if isinstance(value, Expanded):
        # The text itself may be a credential.
        why = f"what {value.authored!r} gives is text"
        if value.is_reference:
            why = f"what {value.authored!r} gives is not"
    else:
        why = f"it is {_TYPE_WORDS.get(type(value), 'something else')}"
    mend = "give a value or remove the key" if value is None else ""
    report.add_broken(path, f"must be {wanted}", why, mend)


_TYPE_WORDS: Mapping[type, str] = {
    types.NoneType: "empty",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a fraction",
    str: "text",
    list: "a list",
    dict: "a mapping",
}
