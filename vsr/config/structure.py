"""From plain values to the document's classes: nothing is ignored, nothing is guessed."""

import difflib
import functools
import types
from collections.abc import Mapping
from typing import (
    Annotated,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from vsr.config.document.decision_plugin import (
    PLUGIN_ALIASES,
    PLUGIN_CONFIGURATIONS,
    DecisionPlugin,
    PluginConfiguration,
)
from vsr.config.document.objects import DocumentObject, Field, fields_of
from vsr.config.document.root import Document
from vsr.config.moved_keys import ALIASES, MOVED, REMOVED
from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.scalars import SCALARS, Reader, marked_reader, read_str, words_reader, wrong_type
from vsr.config.secret_files import read_secrets

_Class = TypeVar("_Class", bound=DocumentObject)


class _Build(Protocol):
    """A class of the document."""

    def __call__(self, **fields: object) -> object: ...


def structure(values: Value, report: Report) -> Document:
    """Return the document of `values`; what `report` calls broken stands as a neutral value."""
    return cast("Document", _reader_of(Document)(values, (), report))


def read_class(cls: type[_Class], value: Value, path: Path, report: Report) -> _Class:
    """Return an object of a class of the document, from a value that stands where any may."""
    kind: object = cls
    return cast("_Class", _reader_of(kind)(value, path, report))


@functools.cache
def _reader_of(kind: object) -> Reader:
    """Return the reader of a type; classes refer to each other, so theirs is built on first use."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind is DecisionPlugin:
        return _read_plugin
    if isinstance(kind, type) and issubclass(kind, DocumentObject):
        return _class_reader(kind)
    return _generic_reader(get_origin(kind), get_args(kind))


def _generic_reader(origin: object, arguments: tuple[object, ...]) -> Reader:
    if origin is Annotated:
        return marked_reader(_base_reader(arguments[0]), arguments[1])
    if origin in {types.UnionType, Union}:
        # None means an omitted key; a written null is not one and fails in the other reader.
        return _reader_of(next(each for each in arguments if each is not types.NoneType))
    if origin is Literal:
        return words_reader(tuple(map(str, arguments)))
    if origin is tuple:
        return functools.partial(_read_list, arguments[0])
    return functools.partial(_read_mapping, arguments[1])


def _base_reader(kind: object) -> Reader:
    # A union under a marker is read by the marker alone.
    is_union = get_origin(kind) in {types.UnionType, Union}
    return SCALARS[object] if is_union else _reader_of(kind)


@functools.cache
def _readers_of(cls: type[DocumentObject]) -> Mapping[str, tuple[str, Reader]]:
    """Return field name and reader by key."""
    return {key: (field.name, _field_reader(field)) for key, field in fields_of(cls).items()}


def _field_reader(field: Field) -> Reader:
    reader = _reader_of(field.kind)
    return _secret_reader(reader) if field.is_secret else reader


def _secret_reader(base: Reader) -> Reader:
    def read(value: Value, path: Path, report: Report) -> object:
        return read_secrets(base(value, path, report), path, report)

    return read


def _class_reader(cls: type[DocumentObject]) -> Reader:
    build = cast("_Build", cls)
    required = [key for key, field in fields_of(cls).items() if field.is_required]

    def read(value: Value, path: Path, report: Report) -> object:
        if not isinstance(value, dict):
            wrong_type("a mapping", value, path, report)
            return build()
        readers = _readers_of(cls)
        arguments: dict[str, object] = {}
        for written, item in value.items():
            key = _current_key(cls.__name__, written, value, path, report)
            if key in readers:
                name, reader = readers[key]
                arguments[name] = reader(item, (*path, written), report)
            else:
                _refuse_key(cls.__name__, readers, (*path, written), report)
        for key in required:
            if key not in value:
                report.add((*path, key), "is missing", mend="add it")
        return build(**arguments)

    return read


def _current_key(
    owner: str, key: str, value: Mapping[str, Value], path: Path, report: Report
) -> str:
    current = ALIASES.get(owner, {}).get(key, key)
    if current != key:
        if current in value:
            what = f"is the older spelling of {current!r}, which is given too"
            report.add((*path, key), what, mend="keep one of the two")
        else:
            report.warn((*path, key), f"is the older spelling of {current!r}", "rename it")
    return current


def _refuse_key(owner: str, known: Mapping[str, object], path: Path, report: Report) -> None:
    key = str(path[-1])
    if key in MOVED.get(owner, {}):
        mend = f"it is now {MOVED[owner][key]}; `vllm-sr config migrate` rewrites it"
        report.add_broken(path, "is a key of an older layout", mend=mend)
        return
    if key in REMOVED.get(owner, {}):
        report.add_broken(path, "is no longer a key", REMOVED[owner][key], "remove it")
        return
    near = difflib.get_close_matches(key, known, n=1)
    mend = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
    report.add_broken(path, "is an unknown key", mend=mend)
    for spelling in near:
        # That this one is missing is no fault of its own.
        report.mark_broken((*path[:-1], spelling))


def _read_plugin(value: Value, path: Path, report: Report) -> DecisionPlugin:
    """Return a plugin; the words of its type decide how its configuration is read."""
    if not isinstance(value, dict):
        wrong_type("a mapping", value, path, report)
        return DecisionPlugin()
    for key in value:
        if key not in {"type", "configuration"}:
            _refuse_key("DecisionPlugin", {"type": 0, "configuration": 0}, (*path, key), report)
    for key in ("type", "configuration"):
        if key not in value:
            report.add((*path, key), "is missing", "a plugin has a type and a configuration")
    if "type" not in value:
        return DecisionPlugin()
    kind = _plugin_type(value["type"], (*path, "type"), report)
    cls = PLUGIN_CONFIGURATIONS.get(kind)
    if cls is None or "configuration" not in value:
        return DecisionPlugin(kind)
    place = (*path, "configuration")
    configuration = _reader_of(cls)(value["configuration"], place, report)
    return DecisionPlugin(kind, cast("PluginConfiguration", configuration))


def _plugin_type(value: Value, path: Path, report: Report) -> str:
    written = read_str(value, path, report)
    if written in PLUGIN_ALIASES:
        current = PLUGIN_ALIASES[written]
        report.warn(path, f"{written!r} is the older spelling of {current!r}", "rename it")
        return current
    if not report.is_broken(path):
        words_reader(tuple(PLUGIN_CONFIGURATIONS))(value, path, report)
    return written


def _read_list(kind: object, value: Value, path: Path, report: Report) -> tuple[object, ...]:
    if not isinstance(value, list):
        wrong_type("a list", value, path, report)
        return ()
    read = _reader_of(kind)
    return tuple(read(item, (*path, index), report) for index, item in enumerate(value))


def _read_mapping(kind: object, value: Value, path: Path, report: Report) -> dict[str, object]:
    if not isinstance(value, dict):
        wrong_type("a mapping", value, path, report)
        return {}
    read = _reader_of(kind)
    return {key: read(item, (*path, key), report) for key, item in value.items()}
