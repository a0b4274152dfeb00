"""The filters of prompt templates; each counts its work before it does it.

All raise `PromptFault` when the run's meter allows no more, or what they get is of the wrong type.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

import msgspec
from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.runtime import Context
from jinja2.tests import TESTS as JINJA_TESTS

from vsr.graph.transform.prompt_meter import Meter, PromptFault, as_number, as_text

METER = " meter"
"""Where the run's meter is among a template's names; no template can name it."""

Function = Callable[..., object]  # type: ignore[explicit-any]  # of any arguments

_MAX_INDENT = 100
_LISTS = (tuple, list, range)


def meter_of(context: Context) -> Meter:
    """Return the meter of this run."""
    return cast("Meter", context.parent[METER])


@pass_context
def write(context: Context, value: object) -> str:
    """Return what stands between double braces as text."""
    text = as_text(_defined(value))
    meter_of(context).spend_text(len(text))
    return text


@pass_context
def loop_over(context: Context, items: object, weight: int) -> Iterator[object]:
    """Yield a loop's items; each costs what the loop's body has of expressions."""
    meter = meter_of(context)
    for item in _listed(items):
        meter.spend(weight)
        yield item


def count_up(*bounds: object) -> range:
    """Return `range`."""
    numbers = [as_number(bound) for bound in bounds]
    if not all(isinstance(number, int) for number in numbers) or 0 in numbers[2:]:
        raise PromptFault("'range' takes integers")
    return range(*cast("list[int]", numbers))


@pass_context
def weigh(context: Context, value: object) -> object:
    """Return `value`, which something is about to go through."""
    if isinstance(value, (str, *_LISTS)):
        meter_of(context).spend_text(len(value))
    return value


@pass_context
def concat(context: Context, *values: object) -> str:
    """Return `~`."""
    return _joined(context, "", values)


@pass_context
def join(
    context: Context, items: object, separator: object = "", attribute: str | None = None
) -> str:
    """Return the items, or a member of each, as one text."""
    return _joined(context, as_text(separator), mapped(context, items, attribute))


@pass_context
def mapped(context: Context, items: object, attribute: str | None = None) -> list[object]:
    """Return a member of each item; dots lead further in."""
    meter, found = meter_of(context), []
    names = attribute.split(".") if attribute else []
    for item in _listed(items):
        meter.spend(1 + len(names))
        value = item
        for name in names:
            value = context.environment.getattr(value, name)
        found.append(value)
    return found


def default(value: object, instead: object = "", boolean: object = None) -> object:
    """Return `value`, or `instead` where it is missing or nothing; if `boolean`, where false."""
    is_missing = value is None or isinstance(value, Undefined)
    return instead if is_missing or (boolean and not value) else value


def length(value: object) -> int:
    """Return how many characters or items there are."""
    if isinstance(_defined(value), (str, Mapping, *_LISTS)):
        return len(cast("str", value))
    raise PromptFault("only texts and lists have a length")


def first(items: object) -> object:
    """Return the first item."""
    return next(iter(_listed(items)), StrictUndefined(name="first"))


def last(items: object) -> object:
    """Return the last item."""
    found = _listed(items)
    return found[-1] if isinstance(found, _LISTS) and found else StrictUndefined(name="last")


@pass_context
def replace(context: Context, text: object, old: object, new: object) -> str:
    """Return the text with every `old` as `new`."""
    whole, part, other = _text(text), _text(old), _text(new)
    meter_of(context).spend_text(len(whole))
    meter_of(context).spend_text(len(whole) + whole.count(part) * len(other))
    return whole.replace(part, other)


@pass_context
def indent(context: Context, text: object, width: int = 4, first: object = None) -> str:
    """Return the text with its lines moved to the right; the first only if `first`."""
    whole, spaces = _text(text), as_number(width)
    if not isinstance(spaces, int) or not 0 <= spaces <= _MAX_INDENT:
        raise PromptFault(f"'indent' takes 0 to {_MAX_INDENT} places")
    meter_of(context).spend_text(len(whole) + (1 + whole.count("\n")) * spaces)
    moved = whole.replace("\n", "\n" + " " * spaces)
    return " " * spaces + moved if first else moved


@pass_context
def truncate(context: Context, text: object, length: int = 255, end: object = "...") -> str:
    """Return the text if it is no longer than `length` characters, else its start and `end`."""
    whole, mark, most = _text(text), _text(end), as_number(length)
    if not isinstance(most, int) or most < len(mark):
        raise PromptFault("'truncate' takes a length that has room for its end")
    meter_of(context).spend_text(min(len(whole), most))
    return whole if len(whole) <= most else whole[: most - len(mark)] + mark


@pass_context
def tojson(context: Context, value: object) -> str:
    """Return any value as JSON."""
    try:
        text = msgspec.json.encode(_defined(value)).decode()
    except (TypeError, ValueError, RecursionError):
        raise PromptFault("a value cannot be written as JSON") from None
    meter_of(context).spend_text(len(text))
    return text


@pass_context
def items(context: Context, value: object) -> list[tuple[object, object]]:
    """Return the pairs of a mapping."""
    if not isinstance(_defined(value), Mapping):
        raise PromptFault("'items' takes a mapping")
    found = list(cast("Mapping[object, object]", value).items())
    meter_of(context).spend(len(found))
    return found


def _changed(change: Callable[[str], str]) -> Callable[[Context, object], str]:
    @pass_context
    def change_text(context: Context, text: object) -> str:
        whole = _text(text)
        meter_of(context).spend_text(len(whole))
        return change(whole)

    return change_text


def _joined(context: Context, separator: str, values: Iterable[object]) -> str:
    texts = [as_text(_defined(value)) for value in values]
    total = sum(map(len, texts)) + len(separator) * len(texts)
    meter_of(context).spend_text(total)
    return separator.join(texts)


def divisible(value: object, by: object) -> bool:
    """Return whether a number can be divided without a remainder."""
    # Never `%` on what may be a text: that is formatting, to any width.
    return as_number(value) % as_number(by) == 0


def _is_even(value: object) -> bool:
    return divisible(value, 2)


def _is_odd(value: object) -> bool:
    return not divisible(value, 2)


def _defined(value: object) -> object:
    """Return `value`; a missing one fails here, but for what an `if` without `else` leaves."""
    return str(value) if isinstance(value, Undefined) else value


def _text(value: object) -> str:
    if not isinstance(_defined(value), str):
        raise PromptFault("a filter of texts is used on something else")
    return cast("str", value)


def _listed(items: object) -> Iterable[object]:
    if not isinstance(_defined(items), (Mapping, *_LISTS)):
        raise PromptFault("only lists can be gone through")
    return cast("Iterable[object]", items)


AUTHORS_FILTERS: Mapping[str, Function] = {
    "capitalize": _changed(str.capitalize),
    "count": length,
    "d": default,
    "default": default,
    "first": first,
    "indent": indent,
    "items": items,
    "join": join,
    "last": last,
    "length": length,
    "lower": _changed(str.lower),
    "map": mapped,
    "replace": replace,
    "title": _changed(str.title),
    "tojson": tojson,
    "trim": _changed(str.strip),
    "truncate": truncate,
    "upper": _changed(str.upper),
}
"""What authors may use.

Source: Jinja, "List of Builtin Filters"; but `truncate` cuts through words, and `default` takes
nothing for missing.
"""

OUR_FILTERS: Mapping[str, Function] = {
    "_concat": concat,
    "_loop": loop_over,
    "_range": count_up,
    "_weigh": weigh,
}
"""What parts of a template are replaced by when it is loaded."""

_PLAIN_TESTS = (
    *("boolean", "defined", "false", "mapping", "none", "number"),
    *("sequence", "string", "true", "undefined"),
)

TESTS: Mapping[str, Function] = {
    **{name: cast("Function", JINJA_TESTS[name]) for name in _PLAIN_TESTS},
    "divisibleby": divisible,
    "even": _is_even,
    "odd": _is_odd,
}
"""What may stand behind `is`. Source: Jinja, "List of Builtin Tests"."""
