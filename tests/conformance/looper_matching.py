"""The matchers of the looper fixtures. Source: the README beside them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

ABSENT = object()
"""Stands for what is not there; a JSON null is there."""
_MOST_CHARACTERS = 300


def differences(wanted: Any, got: Any, path: str) -> Iterator[str]:  # noqa: ANN401  # JSON
    """Yield what of `got` is not as `wanted`, one line each, with its path."""
    if _is_matcher(wanted):
        yield from _matcher_differences(wanted, got, path)
    elif got is ABSENT:
        yield _line(path, wanted, got)
    elif isinstance(wanted, dict) and isinstance(got, dict):
        for name, value in wanted.items():
            yield from differences(value, got.get(name, ABSENT), f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(got, list):
        yield from _list_differences(wanted, got, path)
    elif not is_equal(wanted, got):
        yield _line(path, wanted, got)


def is_equal(one: Any, other: Any) -> bool:  # noqa: ANN401  # JSON
    """Return whether two JSON values are the same; numbers compare by value."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    return bool(one == other)


def shown(value: object) -> str:
    """Return a value as a line of a diff shows it."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "..."


def _line(path: str, wanted: object, got: object) -> str:
    return f"{path}: expected {shown(wanted)}, got {shown(got)}"


def _is_matcher(wanted: object) -> bool:
    return isinstance(wanted, dict) and bool(wanted) and all(str(key)[:1] == "$" for key in wanted)


def _list_differences(wanted: list[Any], got: list[Any], path: str) -> Iterator[str]:
    if len(wanted) != len(got):
        counted = f"{len(wanted)} elements {shown(wanted)}"
        yield f"{path}: expected {counted}, got {len(got)} {shown(got)}"
        return
    for at, (each, value) in enumerate(zip(wanted, got, strict=True)):
        yield from differences(each, value, f"{path}[{at}]")


def _matcher_differences(wanted: Mapping[str, Any], got: object, path: str) -> Iterator[str]:
    for name, argument in wanted.items():
        holds = _MATCHERS.get(name)
        if holds is None:
            yield f"{path}: {name} is no matcher"
        elif not holds(argument, got):
            yield _line(path, {name: argument}, got)


def _texts(got: object) -> tuple[str, ...]:
    """Return the text to search: of what is no string its JSON, however it is spaced."""
    if isinstance(got, str):
        return (got,)
    compact = json.dumps(got, ensure_ascii=False, separators=(",", ":"))
    return (compact, json.dumps(got, ensure_ascii=False))


def _has(part: object, got: object) -> bool:
    return any(str(part) in text for text in _texts(got))


def _items(value: Any) -> Counter[str]:  # noqa: ANN401  # JSON
    items = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    return Counter(json.dumps(item, sort_keys=True) for item in items)


def _is_near(argument: list[float], got: object) -> bool:
    if isinstance(got, bool) or not isinstance(got, int | float):
        return False
    return abs(got - argument[0]) <= argument[1]


def _if_there(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda wanted, got: got is not ABSENT and holds(wanted, got)


_MATCHERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$any": lambda wanted, got: (got is not ABSENT) == bool(wanted),
    "$absent": lambda wanted, got: (got is ABSENT) == bool(wanted),
    "$exact": _if_there(is_equal),
    "$contains": _if_there(lambda wanted, got: all(_has(part, got) for part in wanted)),
    "$not_contains": _if_there(lambda wanted, got: not any(_has(part, got) for part in wanted)),
    "$regex": _if_there(lambda wanted, got: bool(re.search(wanted, _texts(got)[0]))),
    "$set": _if_there(
        lambda wanted, got: isinstance(got, list | str) and _items(got) == _items(wanted)
    ),
    "$len": _if_there(lambda wanted, got: hasattr(got, "__len__") and len(got) == wanted),
    "$approx": _if_there(_is_near),
    "$one_of": _if_there(
        lambda wanted, got: any(not list(differences(each, got, "")) for each in wanted)
    ),
}
