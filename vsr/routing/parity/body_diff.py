"""Compares two bodies: as JSON values, as events with JSON in them, or as text."""

import json
from collections.abc import Iterator
from enum import Enum
from itertools import takewhile, zip_longest

import msgspec

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]


class Absent(Enum):
    """Stands for a member that is not there."""

    ABSENT = "(absent)"


ABSENT = Absent.ABSENT
Member = Value | Absent
_EVENT = "data: "
_SHOWN_CHARACTERS = 160
_CONTEXT_CHARACTERS = 24


class BodyRule(Enum):
    """When two bodies are equal."""

    AS_JSON = "as_json"
    """Equal JSON values, members in any order; in a stream of events, those of each line."""
    AS_TEXT = "as_text"
    """Equal character by character."""


class Difference(msgspec.Struct, frozen=True):
    """One place at which two results differ."""

    path: str
    wanted: str
    got: str

    def __str__(self) -> str:
        return f"{self.path}: wanted {self.wanted}, got {self.got}"


def compare_bodies(path: str, wanted: str, got: str, rule: BodyRule) -> Iterator[Difference]:
    """Yield the differences of two bodies, each with the path inside the body."""
    if wanted == got:
        return
    if rule is BodyRule.AS_TEXT:
        yield _text_difference(path, wanted, got)
    elif any(line.startswith(_EVENT) for line in wanted.split("\n")):
        lines = zip_longest(wanted.split("\n"), got.split("\n"), fillvalue=ABSENT)
        for number, (first, second) in enumerate(lines, start=1):
            yield from _compare_event_line(f"{path}, line {number}", first, second)
    else:
        yield from _compare_json(path, wanted, got)


def compare_values(path: str, wanted: Member, got: Member) -> Iterator[Difference]:
    """Yield the differences of two plain values, members in any order."""
    match wanted, got:
        case dict(), dict():
            for key in wanted | got:
                yield from compare_values(
                    f"{path}.{key}", wanted.get(key, ABSENT), got.get(key, ABSENT)
                )
        case list(), list():
            for index, pair in enumerate(zip_longest(wanted, got, fillvalue=ABSENT)):
                yield from compare_values(f"{path}[{index}]", *pair)
        case _ if not is_same(wanted, got):
            yield Difference(path, shown(wanted), shown(got))


def is_same(wanted: Member, got: Member) -> bool:
    """Return whether two plain values are equal; true is not 1, but 1 is 1.0."""
    return isinstance(wanted, bool) == isinstance(got, bool) and wanted == got


def shown(value: Member) -> str:
    """Return `value` as a difference shows it, shortened."""
    if isinstance(value, Absent):
        return value.value
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _compare_event_line(path: str, wanted: str | Absent, got: str | Absent) -> Iterator[Difference]:
    if isinstance(wanted, Absent) or isinstance(got, Absent):
        yield Difference(path, shown(wanted), shown(got))
    elif wanted.startswith(_EVENT) and got.startswith(_EVENT):
        yield from _compare_json(path, wanted.removeprefix(_EVENT), got.removeprefix(_EVENT))
    elif wanted != got:
        yield _text_difference(path, wanted, got)


def _compare_json(path: str, wanted: str, got: str) -> Iterator[Difference]:
    """Yield the differences of two JSON texts; what is not JSON is compared as text."""
    try:
        first, second = _parse(wanted), _parse(got)
    except ValueError:
        if wanted != got:
            yield _text_difference(path, wanted, got)
    else:
        yield from compare_values(f"{path} $", first, second)


def _parse(text: str) -> Value:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, or a name is there twice, which readers take differently.
    """

    def unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
        value = dict(pairs)
        if len(value) != len(pairs):
            raise ValueError("a name is there twice")
        return value

    def refuse(constant: str) -> Value:
        raise ValueError(f"{constant} is not JSON")

    value: Value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    return value


def _text_difference(path: str, wanted: str, got: str) -> Difference:
    """Return the first place at which two texts part, with what stands around it."""
    common = takewhile(lambda pair: pair[0] == pair[1], zip(wanted, got, strict=False))
    at = sum(1 for _ in common)
    start = max(0, at - _CONTEXT_CHARACTERS)
    first, second = (shown(text[start : at + _CONTEXT_CHARACTERS]) for text in (wanted, got))
    return Difference(f"{path}, character {at}", first, second)
