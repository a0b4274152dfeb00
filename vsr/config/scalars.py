"""From plain values to the document's scalars, with exact types."""

import math
import types
from collections.abc import Callable, Mapping

from vsr.config.checks import about_unknown
from vsr.config.document.kinds import (
    AutoValue,
    Bounds,
    DurationText,
    MinLength,
    PairValue,
    PeriodValue,
    TokenCountValue,
)
from vsr.config.environment import Expanded
from vsr.config.load import read_bool, read_int
from vsr.config.position import Path, Value
from vsr.config.quantities import parse_duration_s, parse_token_count
from vsr.config.report import Report
from vsr.config.yaml_schema import FLOAT_PATTERN, INT_PATTERN

Reader = Callable[[Value, Path, Report], object]
"""Returns the value in its type; a fault goes to the report and gives the type's neutral value."""

_PAIR = 2


def read_str(value: Value, path: Path, report: Report) -> str:
    """Return a text."""
    if type(value) is str:
        return value
    if isinstance(value, Expanded):
        return str(value)
    wrong_type("text", value, path, report)
    return ""


def read_int_exactly(value: Value, path: Path, report: Report) -> int:
    """Return a whole number."""
    if type(value) is int:
        return value
    if isinstance(value, Expanded) and value.is_reference and INT_PATTERN.fullmatch(value):
        try:
            return read_int(value)
        except ValueError:
            pass
    wrong_type("a whole number", value, path, report)
    return 0


def read_float(value: Value, path: Path, report: Report) -> float:
    """Return a finite number."""
    if type(value) is int or type(value) is float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    if isinstance(value, Expanded) and value.is_reference and FLOAT_PATTERN.fullmatch(value):
        return float(value)
    wrong_type("a finite number", value, path, report)
    return 0.0


def read_bool_exactly(value: Value, path: Path, report: Report) -> bool:
    """Return a truth value."""
    if type(value) is bool:
        return value
    if isinstance(value, Expanded) and value.is_reference:
        try:
            return read_bool(value)
        except ValueError:
            pass
    wrong_type("true or false", value, path, report)
    return False


def read_any(value: Value, path: Path, report: Report) -> Value:
    """Return any value, references in it as plain text."""
    if isinstance(value, dict):
        return {key: read_any(item, (*path, key), report) for key, item in value.items()}
    if isinstance(value, list):
        return [read_any(item, (*path, index), report) for index, item in enumerate(value)]
    return str(value) if isinstance(value, Expanded) else value


SCALARS: Mapping[object, Reader] = {
    str: read_str,
    int: read_int_exactly,
    float: read_float,
    bool: read_bool_exactly,
    object: read_any,
}
"""By type."""


def words_reader(words: tuple[str, ...]) -> Reader:
    """Return the reader of one of a closed set of words."""

    def read(value: Value, path: Path, report: Report) -> str:
        if type(value) in {int, float} and str(value) in words:
            return str(value)  # YAML takes a word of digits for a number
        word = read_str(value, path, report)
        if word not in words and not report.is_broken(path):
            what = f"{report.quote(path)} is unknown"
            report.add_broken(path, what, *about_unknown(word, words))
        return word if word in words else words[0]

    return read


def marked_reader(base: Reader, marker: object) -> Reader:
    """Return the reader of a type with a marker of `document.kinds`.

    Args:
        base: reader of the type itself.
        marker: what the type is annotated with.
    """
    match marker:
        case Bounds():
            reader = _bounded(base, marker)
        case MinLength(characters):
            reader = _at_least_long(characters)
        case DurationText(may_be_zero):
            reader = _duration(may_be_zero=may_be_zero)
        case AutoValue(minimum):
            reader = _auto(minimum)
        case PeriodValue():
            reader = _read_period
        case TokenCountValue():
            reader = _read_token_count
        case PairValue():
            reader = _pair(base)
        case _:
            raise TypeError(f"no reader for {marker!r}")
    return reader


def _bounded(base: Reader, bounds: Bounds) -> Reader:
    low, high = bounds.minimum, bounds.maximum
    words = _bounds_in_words(low, high)

    def read(value: Value, path: Path, report: Report) -> object:
        number = base(value, path, report)
        is_low = low is not None and isinstance(number, int | float) and number < low
        is_high = high is not None and isinstance(number, int | float) and number > high
        if is_low or is_high:
            report.add_broken(path, words)
        return number

    return read


def _bounds_in_words(low: float | None, high: float | None) -> str:
    if high is not None:
        return f"must be from {low or 0:g} to {high:.15g}"
    return "must not be negative" if not low else f"must be at least {low:g}"


def _at_least_long(characters: int) -> Reader:
    def read(value: Value, path: Path, report: Report) -> str:
        text = read_str(value, path, report)
        if len(text) < characters:
            report.add_broken(path, "is empty", mend="give a value or remove the key")
        return text

    return read


def _duration(*, may_be_zero: bool) -> Reader:
    def read(value: Value, path: Path, report: Report) -> str:
        text = read_str(value, path, report)
        if not report.is_broken(path):
            check_duration(path, text, report, may_be_zero=may_be_zero)
        return text

    return read


def check_duration(path: Path, text: str, report: Report, *, may_be_zero: bool = True) -> None:
    """The text is a Go duration, not negative."""
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        what = f"{report.quote(path)} is not a duration"
        report.add_broken(path, what, mend="write it like 1m30s, 250ms or 0s")
        return
    if seconds < 0 or (seconds == 0 and not may_be_zero):
        words = "must not be negative" if may_be_zero else "must be longer than 0s"
        report.add_broken(path, words)


def _read_period(value: Value, path: Path, report: Report) -> str | int:
    if type(value) is int:
        if value < 0:
            report.add_broken(path, "must not be negative")
        return value
    if not isinstance(value, str):
        wrong_type("a duration such as 10s, or whole nanoseconds", value, path, report)
        return 0
    check_duration(path, value, report)
    return str(value)


def _read_token_count(value: Value, path: Path, report: Report) -> str | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        wrong_type("a number of tokens such as 24K", value, path, report)
        return 0
    count = str(value) if isinstance(value, str) else value
    try:
        parse_token_count(count)
    except (ValueError, OverflowError):
        what = f"{report.quote(path)} is not a number of tokens"
        mend = "write it like 1000, 24K or 1.5M, not negative"
        report.add_broken(path, what, mend=mend)
    return count


def _auto(minimum: int) -> Reader:
    def read(value: Value, path: Path, report: Report) -> str | int:
        if isinstance(value, str) and value == "auto":
            return "auto"
        if type(value) is int:
            if value < minimum:
                report.add_broken(path, f"must be auto or at least {minimum}")
            return value
        wrong_type("auto or a whole number", value, path, report)
        return minimum

    return read


def _pair(base: Reader) -> Reader:
    def read(value: Value, path: Path, report: Report) -> object:
        pair = base(value, path, report)
        if report.is_broken(path) or not isinstance(pair, tuple):
            return pair
        if len(pair) != _PAIR or not pair[0] < pair[1]:
            report.add_broken(path, "must be two numbers, the first below the second")
        return pair

    return read


def wrong_type(wanted: str, value: Value, path: Path, report: Report) -> None:
    """Report that `value` is not what is wanted, without showing what it is."""
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
