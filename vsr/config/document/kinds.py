"""The kinds of values that fields of the document have, beyond Python's own types."""

from typing import Annotated

import msgspec


class Bounds(msgspec.Struct, frozen=True):
    """Limits of a number, both inclusive."""

    minimum: float | None = None
    maximum: float | None = None


class MinLength(msgspec.Struct, frozen=True):
    """Fewest characters of a text."""

    characters: int


class DurationText(msgspec.Struct, frozen=True):
    """A text that spells a Go duration such as `1m30s`."""

    may_be_zero: bool = True


class PeriodValue(msgspec.Struct, frozen=True):
    """A Go duration, or a whole number of nanoseconds."""


class TokenCountValue(msgspec.Struct, frozen=True):
    """A number of tokens such as `24K`, `1.5M` or 1000."""


class AutoValue(msgspec.Struct, frozen=True):
    """The word `auto`, or a whole number."""

    minimum: int


class PairValue(msgspec.Struct, frozen=True):
    """Two numbers, the first below the second."""


Count = Annotated[int, Bounds(0)]
Positive = Annotated[int, Bounds(1)]
Port = Annotated[int, Bounds(1, 65_535)]
Percent = Annotated[int, Bounds(0, 100)]
Percentile = Annotated[int, Bounds(1, 100)]
StatusCode = Annotated[int, Bounds(100, 599)]
Weight = Annotated[int, Bounds(0, 2**32 - 1)]
Retries = Annotated[int, Bounds(0, 5)]
Fraction = Annotated[float, Bounds(0, 1)]
NotNegative = Annotated[float, Bounds(0)]
Text = Annotated[str, MinLength(1)]
Duration = Annotated[str, DurationText()]
PositiveDuration = Annotated[str, DurationText(may_be_zero=False)]
Period = Annotated[str | int, PeriodValue()]
TokenCount = Annotated[str | int | float, TokenCountValue()]
AutoOrCount = Annotated[str | int, AutoValue(0)]
AutoOrPositive = Annotated[str | int, AutoValue(1)]
Pair = Annotated[tuple[float, ...], PairValue()]


def key_of(field_name: str) -> str:
    """Return the document's key for a field of the document's classes."""
    return field_name.rstrip("_")
