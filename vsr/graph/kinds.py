"""The static types of a graph's values: Python annotations, compared before anything runs."""

import functools
import types
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from typing import (
    Annotated,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
import msgspec

Kind = object
"""An annotation: a class, a union, `tuple[T, ...]`, `Mapping[str, T]`, `Literal[...]`, ..."""

_LISTS = (tuple, list, Sequence)
LENGTH = "length"
"""Member of every list: how many items it has."""
_ATOMS = (bool, int, float, str, bytes)


class Fit(StrEnum):
    """Whether a value of one type can stand where another is wanted."""

    YES = "yes"
    MAYBE = "maybe"
    """Only the value itself can tell; it is looked at when the step runs."""
    NO = "no"


def unwrapped(kind: Kind) -> Kind:
    """Return the type under its markers."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def members_of(kind: Kind) -> tuple[Kind, ...]:
    """Return the types of a union, or the one type that it is."""
    kind = unwrapped(kind)
    if get_origin(kind) in {Union, types.UnionType}:
        return tuple(part for each in get_args(kind) for part in members_of(each))
    return (type(None),) if kind is None else (kind,)


def united(kinds: Sequence[Kind]) -> Kind:
    """Return the type of a value that has one of `kinds`."""
    found: dict[object, None] = {}
    for kind in kinds:
        found.update(dict.fromkeys(members_of(kind)))
    if object in found:
        return object
    return functools.reduce(_either, found) if found else type(None)


def _either(left: object, right: object) -> object:
    return Union[left, right]  # noqa: UP007  # of types that are only known now


def item_of(kind: Kind) -> Kind | None:
    """Return the type of a list's items; None if it surely is no list."""
    items = [_item(each) for each in members_of(kind) if each is not type(None)]
    known = [each for each in items if each is not None]
    return united(known) if known else None


def _item(kind: Kind) -> Kind | None:
    if kind is object:
        return object
    if get_origin(kind) in _LISTS:
        item: Kind = get_args(kind)[0]
        return item
    return object if kind in _LISTS else None


def member_of(kind: Kind, name: str) -> Kind | None:
    """Return the type of `value.name`; None if no value of `kind` has such a member."""
    found = [_member(each, name) for each in members_of(kind) if each is not type(None)]
    known = [each for each in found if each is not None]
    return united(known) if known else None


def _member(kind: Kind, name: str) -> Kind | None:
    if kind is object:
        return object
    origin, arguments = get_origin(kind), get_args(kind)
    if name.isdigit() or (origin or kind) in _LISTS:
        return int if name == LENGTH else _item(kind) if name.isdigit() else None
    if (origin or kind) is Mapping or (origin or kind) is dict:
        value: Kind = arguments[1] if arguments else object
        return value
    cls = origin or kind
    if not isinstance(cls, type) or cls in _ATOMS or name.startswith("_"):
        return None
    found: Kind | None = _hints(cls).get(name)
    if isinstance(found, TypeVar):
        parameters = getattr(cls, "__parameters__", ())
        filled: Kind = dict(zip(parameters, arguments, strict=False)).get(found, object)
        return filled
    return _filled(cls, arguments, found)


def _filled(cls: type, arguments: tuple[object, ...], kind: Kind | None) -> Kind | None:
    """Return a member's type with the class's type parameters filled in."""
    if kind is None or not get_args(kind):
        return kind
    filling = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    parts = members_of(kind)
    if any(isinstance(part, TypeVar) for part in parts):
        return united(
            [filling.get(each, object) if isinstance(each, TypeVar) else each for each in parts]
        )
    return kind


@functools.cache
def _hints(cls: type) -> Mapping[str, Kind]:
    """Return the types of what a reference may read of a value: fields and properties."""
    hints: dict[str, Kind] = {}
    if attrs.has(cls) or issubclass(cls, msgspec.Struct):
        hints.update(get_type_hints(cls, include_extras=True))
    for owner in reversed(cls.__mro__):
        for name, value in vars(owner).items():
            if isinstance(value, property) and value.fget is not None:
                hints[name] = get_type_hints(value.fget).get("return", object)
    return {name: kind for name, kind in hints.items() if not name.startswith("_")}


def fit(source: Kind, target: Kind) -> Fit:
    """Return whether a value of type `source` can stand where `target` is wanted."""
    wanted = members_of(target)
    if object in wanted:
        return Fit.YES
    answers = {_fits_any(each, wanted) for each in members_of(source)}
    if answers == {Fit.YES}:
        return Fit.YES
    return Fit.NO if answers == {Fit.NO} else Fit.MAYBE


def _fits_any(source: Kind, wanted: Sequence[Kind]) -> Fit:
    if source is object:
        return Fit.MAYBE
    answers = [_fits(source, each) for each in wanted]
    return max(answers, key=[Fit.NO, Fit.MAYBE, Fit.YES].index)


def _fits(source: Kind, target: Kind) -> Fit:
    if source == target:
        return Fit.YES
    if get_origin(target) is Literal or get_origin(source) is Literal:
        return _words_fit(source, target)
    source_class = get_origin(source) or source
    target_class = get_origin(target) or target
    if target_class in _LISTS:
        items = item_of(source)
        return Fit.NO if items is None else _items_fit(items, target)
    if target_class is float and source_class is int:
        return Fit.YES
    if isinstance(target_class, type) and isinstance(source_class, type):
        return _classes_fit(source_class, target_class)
    return Fit.NO


def _classes_fit(source: type, target: type) -> Fit:
    if source is bool and target in {int, float}:
        return Fit.NO
    if target is Mapping or target is dict:
        return Fit.YES if issubclass(source, Mapping) else Fit.NO
    if issubclass(source, target):
        return Fit.YES
    # A word of a closed set arrives as its text.
    return Fit.MAYBE if issubclass(target, Enum) and source is str else Fit.NO


def _words_fit(source: Kind, target: Kind) -> Fit:
    """Compare types of which at least one is a closed set of words."""
    if get_origin(target) is not Literal:
        return _all_fit([type(word) for word in get_args(source)], target)
    words = get_args(target)
    if get_origin(source) is Literal:
        known = [word in words for word in get_args(source)]
        return Fit.YES if all(known) else Fit.MAYBE if any(known) else Fit.NO
    return Fit.MAYBE if any(type(word) is source for word in words) else Fit.NO


def _all_fit(kinds: Sequence[Kind], target: Kind) -> Fit:
    answers = {fit(kind, target) for kind in kinds}
    return answers.pop() if len(answers) == 1 else Fit.MAYBE


def _items_fit(items: Kind, target: Kind) -> Fit:
    arguments = get_args(target)
    answer = fit(items, arguments[0]) if arguments else Fit.YES
    return answer if answer is Fit.YES else Fit.MAYBE  # an empty list fits anyway


def conforms(value: object, kind: Kind) -> bool:
    """Return whether `value` is of type `kind`; lists and mappings are looked through."""
    return any(_is(value, each) for each in members_of(kind))


def _is(value: object, kind: Kind) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    cls = get_origin(kind) or kind
    arguments = get_args(kind)
    if cls in _LISTS:
        return isinstance(value, (tuple, list)) and _all_are(value, arguments[:1])
    if cls is Mapping or cls is dict:
        return isinstance(value, Mapping) and _all_are(value.values(), arguments[1:])
    if cls in {int, float}:
        wanted = (int, float) if cls is float else int
        return isinstance(value, wanted) and not isinstance(value, bool)
    return isinstance(cls, type) and isinstance(value, cls)


def _all_are(values: Iterable[object], kinds: tuple[object, ...]) -> bool:
    return not kinds or kinds[0] is object or all(conforms(each, kinds[0]) for each in values)


_NAMES: Mapping[object, str] = {
    type(None): "nothing",
    object: "anything",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    bytes: "bytes",
}


def described(kind: Kind) -> str:
    """Return `kind` in an author's words."""
    parts = [_described(each) for each in members_of(kind)]
    return " or ".join(dict.fromkeys(parts))


def _described(kind: Kind) -> str:
    if kind in _NAMES:
        return _NAMES[kind]
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    cls = get_origin(kind) or kind
    if cls in _LISTS:
        arguments = get_args(kind)
        return f"a list of {described(arguments[0])}" if arguments else "a list"
    if cls is Mapping or cls is dict:
        return "a mapping"
    return cls.__name__ if isinstance(cls, type) else str(cls)
