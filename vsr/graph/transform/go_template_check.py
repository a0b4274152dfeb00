"""Checks a Go template against the shape of its data, without running it."""

from collections.abc import Mapping

import attrs

from vsr.graph.transform.go_template_text import refuse
from vsr.graph.transform.go_template_tree import (
    Apply,
    Assign,
    Constant,
    Expression,
    If,
    ListOf,
    Member,
    Part,
    Range,
    Read,
    RecordOf,
    Scalar,
    Shape,
    Show,
)
from vsr.graph.transform.template_refused import TemplateRefused

_SCALARS = ("text", "number", "truth")
_SHAPES: Mapping[type, Scalar] = {str: "text", int: "number", bool: "truth"}
_WANTED: Mapping[str, Scalar] = {"add": "number", "printf": "text"}
"""What a function takes, and gives."""


def check(template: str, parts: tuple[Part, ...], data: Shape) -> None:
    """Refuse what would fail whatever the data; a mix of types is left to the run.

    Raises:
        TemplateRefused: an unknown field or variable, or a value of the wrong type.
    """
    _Checker(template, [{"$": data}]).parts(parts, data)


@attrs.define
class _Checker:
    template: str
    scopes: list[dict[str, Shape]]

    def refusal(self, at: int, what: str) -> TemplateRefused:
        return refuse(self.template, at, what)

    def parts(self, parts: tuple[Part, ...], dot: Shape, **names: Shape) -> None:
        """Check the parts of one block, which sees `names` of its own."""
        self.scopes.append(names)
        for part in parts:
            self.part(part, dot)
        self.scopes.pop()

    def part(self, part: Part, dot: Shape) -> None:
        if isinstance(part, Show):
            shape = self.shape(part.expression, dot)
            if isinstance(shape, (RecordOf, ListOf)):
                raise self.refusal(part.at, f"{_named(shape)} cannot be written as text")
        elif isinstance(part, Assign):
            self.assign(part, self.shape(part.expression, dot))
        elif isinstance(part, If):
            shape = self.shape(part.expression, dot)
            names = {part.variable: shape} if part.variable else {}
            self.parts(part.then, shape if part.sets_dot else dot, **names)
            self.parts(part.otherwise, dot, **names)
        elif isinstance(part, Range):
            self.loop(part, dot)

    def assign(self, part: Assign, shape: Shape) -> None:
        if part.declares:
            self.scopes[-1][part.variable] = shape
            return
        scope = self.scope_of(part.variable, part.at)
        if scope[part.variable] != shape:
            scope[part.variable] = None

    def loop(self, part: Range, dot: Shape) -> None:
        shape = self.shape(part.expression, dot)
        if shape is not None and not isinstance(shape, ListOf):
            raise self.refusal(part.at, f"'range' goes through a list, not {_named(shape)}")
        item = shape.item if isinstance(shape, ListOf) else None
        names: dict[str, Shape] = {part.item: item} if part.item else {}
        if part.index:
            names[part.index] = "number"
        self.parts(part.body, item, **names)
        self.parts(part.otherwise, dot)

    def scope_of(self, variable: str, at: int) -> dict[str, Shape]:
        for scope in reversed(self.scopes):
            if variable in scope:
                return scope
        raise self.refusal(at, f"unknown variable {variable}")

    def shape(self, expression: Expression, dot: Shape) -> Shape:
        """Return the shape of an expression's value."""
        if isinstance(expression, Constant):
            return _SHAPES[type(expression.value)]
        if isinstance(expression, Apply):
            shapes = [self.shape(argument, dot) for argument in expression.arguments]
            return self.applied(expression, shapes)
        if isinstance(expression, Member):
            return self.member(self.shape(expression.of, dot), expression)
        if not expression.variable:
            return self.member(dot, expression)
        scope = self.scope_of(expression.variable, expression.at)
        return self.member(scope[expression.variable], expression)

    def member(self, shape: Shape, read: Read | Member) -> Shape:
        for name in read.fields:
            if shape is None:
                return None
            if not isinstance(shape, RecordOf) or name not in shape.fields:
                has = f"; it has {', '.join(shape.fields)}" if isinstance(shape, RecordOf) else ""
                raise self.refusal(read.at, f"{_named(shape)} has no field {name!r}{has}")
            shape = shape.fields[name]
        return shape

    def applied(self, call: Apply, shapes: list[Shape]) -> Shape:
        if call.function in {"and", "or"}:
            return shapes[0] if all(shape == shapes[0] for shape in shapes) else None
        if call.function == "index":
            return self.item(call, shapes)
        wanted = _WANTED.get(call.function)
        if wanted is not None:
            self.want(call, shapes if call.function == "add" else shapes[:1], wanted)
            return wanted
        if call.function == "len":
            return self.length(call, shapes[0])
        return "truth" if call.function == "not" else self.compared(call, shapes)

    def length(self, call: Apply, shape: Shape) -> Shape:
        if shape is not None and shape != "text" and not isinstance(shape, ListOf):
            raise self.refusal(call.at, f"{_named(shape)} has no length")
        return "number"

    def item(self, call: Apply, shapes: list[Shape]) -> Shape:
        self.want(call, shapes[1:], "number")
        if shapes[0] is not None and not isinstance(shapes[0], ListOf):
            raise self.refusal(call.at, f"'index' takes a list, not {_named(shapes[0])}")
        return shapes[0].item if shapes[0] is not None else None

    def compared(self, call: Apply, shapes: list[Shape]) -> Shape:
        known = [shape for shape in shapes if shape is not None]
        if any(shape not in _SCALARS or shape != known[0] for shape in known):
            named = " and ".join(map(_named, known))
            raise self.refusal(call.at, f"{call.function!r} cannot compare {named}")
        return "truth"

    def want(self, call: Apply, shapes: list[Shape], wanted: Scalar) -> None:
        for shape in shapes:
            if shape is not None and shape != wanted:
                what = f"{call.function!r} takes a {wanted}, not {_named(shape)}"
                raise self.refusal(call.at, what)


def _named(shape: Shape) -> str:
    if isinstance(shape, RecordOf):
        return "a record"
    return "a list" if isinstance(shape, ListOf) else f"a {shape}"
