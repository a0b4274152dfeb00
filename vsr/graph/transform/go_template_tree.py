"""The parts of a Go template after parsing, and the shapes of what it may read."""

from collections.abc import Mapping
from typing import Literal, Union

import attrs

Scalar = Literal["text", "number", "truth"]


@attrs.frozen
class RecordOf:
    """A value with named fields."""

    fields: Mapping[str, "Shape"]


@attrs.frozen
class ListOf:
    """A list whose items are alike."""

    item: "Shape"


Shape = Union[Scalar, RecordOf, ListOf, None]  # noqa: UP007  # it refers to itself
"""None where a variable may hold this or that; it is looked at when the template runs."""


@attrs.frozen
class Constant:
    """A constant."""

    value: str | int | bool
    at: int


@attrs.frozen
class Read:
    """`.A.B`, `$x.A`; the name is empty for the dot, and `$` is the whole data."""

    variable: str
    fields: tuple[str, ...]
    at: int


@attrs.frozen
class Member:
    """`(…).A.B`."""

    of: "Expression"
    fields: tuple[str, ...]
    at: int


@attrs.frozen
class Apply:
    """A function of arguments."""

    function: str
    arguments: tuple["Expression", ...]
    at: int


Expression = Constant | Read | Member | Apply


@attrs.frozen
class Show:
    """Writes a value."""

    expression: Expression
    at: int


@attrs.frozen
class Assign:
    """`$x := …` or `$x = …`."""

    variable: str
    expression: Expression
    declares: bool
    at: int


@attrs.frozen
class If:
    """`if` and `with`: the latter makes the value the dot."""

    expression: Expression
    then: tuple["Part", ...]
    otherwise: tuple["Part", ...]
    variable: str | None
    sets_dot: bool
    at: int


@attrs.frozen
class Range:
    """A loop over a list; each item is the dot."""

    expression: Expression
    body: tuple["Part", ...]
    otherwise: tuple["Part", ...]
    index: str | None
    item: str | None
    at: int


Part = str | Show | Assign | If | Range
