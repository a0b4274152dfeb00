"""Go templates: a safe subset, checked when it is loaded, bounded when it runs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Union, cast

import attrs

from vsr.graph.transform.go_template_check import check
from vsr.graph.transform.go_template_parse import parse
from vsr.graph.transform.go_template_text import refuse
from vsr.graph.transform.go_template_tree import (
    Apply,
    Assign,
    Constant,
    Expression,
    If,
    Member,
    Part,
    Range,
    Read,
    Shape,
    Show,
)
from vsr.graph.transform.template_refused import TemplateRefused

Data = Union[str, int, bool, Sequence["Data"], Mapping[str, "Data"]]  # noqa: UP007  # recursive

MAX_OUTPUT_CHARACTERS = 1 << 22
MAX_STEPS = 200_000
"""Parts and expressions of one run, with a step more for every 4096 characters handled."""

_CHARACTERS_PER_STEP = 4096
_VERBS = re.compile(r"%(.?)", re.DOTALL)
_KINDS_OF_VERBS = {"s": ("text",), "d": ("number",), "v": ("text", "number", "truth")}
_SIGNS = {"eq": (0,), "ne": (-1, 1), "lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1)}
"""What the first value may be compared to another: -1 for smaller, 0 for equal, 1 for greater."""


@attrs.frozen
class GoTemplate:
    """A template that was checked."""

    source: str
    parts: tuple[Part, ...] = attrs.field(repr=False)

    def render(self, data: Data) -> str:
        """Return the text.

        Raises:
            TemplateRefused: it does what its data do not allow, or too much; no data is shown.
        """
        run = _Run(self.source, [{"$": data}])
        run.parts(self.parts, data, {})
        return "".join(run.output)


def compile_template(source: str, data: Shape) -> GoTemplate:
    """Return the template, which may read what `data` has.

    Raises:
        TemplateRefused: it cannot be used; the message says where and why.
    """
    parts = parse(source)
    check(source, parts, data)
    return GoTemplate(source, parts)


@attrs.define
class _Run:
    template: str
    scopes: list[dict[str, Data]]
    output: list[str] = attrs.field(factory=list)
    size: int = 0
    steps: int = 0

    def refusal(self, at: int, what: str) -> TemplateRefused:
        return refuse(self.template, at, what)

    def spend(self, at: int, characters: int = 0) -> None:
        self.steps += 1 + characters // _CHARACTERS_PER_STEP
        if self.steps > MAX_STEPS:
            raise self.refusal(at, f"the template takes more than {MAX_STEPS} steps")
        if characters > MAX_OUTPUT_CHARACTERS:
            raise self.refusal(at, "a text becomes too long")

    def write(self, text: str, at: int) -> None:
        self.size += len(text)
        if self.size > MAX_OUTPUT_CHARACTERS:
            what = f"the text becomes longer than {MAX_OUTPUT_CHARACTERS} characters"
            raise self.refusal(at, what)
        self.output.append(text)

    def parts(self, parts: tuple[Part, ...], dot: Data, names: dict[str, Data]) -> None:
        self.scopes.append(names)
        for part in parts:
            self.part(part, dot)
        self.scopes.pop()

    def part(self, part: Part, dot: Data) -> None:
        if isinstance(part, str):
            self.write(part, 0)
            return
        self.spend(part.at)
        value = self.value(part.expression, dot)
        if isinstance(part, Show):
            self.write(self.shown(value, part.at), part.at)
        elif isinstance(part, Assign):
            self.scope_of(part)[part.variable] = value
        elif isinstance(part, If):
            names = {part.variable: value} if part.variable else {}
            if value:
                self.parts(part.then, value if part.sets_dot else dot, names)
            else:
                self.parts(part.otherwise, dot, names)
        else:
            self.loop(part, value, dot)

    def scope_of(self, part: Assign) -> dict[str, Data]:
        if part.declares:
            return self.scopes[-1]
        return next(scope for scope in reversed(self.scopes) if part.variable in scope)

    def loop(self, part: Range, value: Data, dot: Data) -> None:
        if not _is_list(value):
            raise self.refusal(part.at, "'range' goes through a list")
        items = cast("Sequence[Data]", value)
        for index, item in enumerate(items):
            self.spend(part.at)
            names: dict[str, Data] = {part.item: item} if part.item else {}
            if part.index:
                names[part.index] = index
            self.parts(part.body, item, names)
        if not items:
            self.parts(part.otherwise, dot, {})

    def value(self, expression: Expression, dot: Data) -> Data:
        self.spend(expression.at)
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Apply):
            return self.applied(expression, dot)
        if isinstance(expression, Member):
            return self.member(self.value(expression.of, dot), expression)
        if not expression.variable:
            return self.member(dot, expression)
        scopes = reversed(self.scopes)
        found = next(scope for scope in scopes if expression.variable in scope)
        return self.member(found[expression.variable], expression)

    def member(self, value: Data, read: Read | Member) -> Data:
        for name in read.fields:
            if not isinstance(value, Mapping) or name not in value:
                raise self.refusal(read.at, f"there is no field {name!r}")
            value = value[name]
        return value

    def applied(self, call: Apply, dot: Data) -> Data:
        if call.function in {"and", "or"}:
            return self.chosen(call, dot)
        values = [self.value(argument, dot) for argument in call.arguments]
        if call.function == "not":
            return not values[0]
        return _FUNCTIONS[call.function](self, call, values)

    def chosen(self, call: Apply, dot: Data) -> Data:
        """Return the first argument that decides, else the last one."""
        value: Data = False
        for argument in call.arguments:
            value = self.value(argument, dot)
            if bool(value) is (call.function == "or"):
                break
        return value

    def sum(self, call: Apply, values: list[Data]) -> Data:
        if not all(_kind(value) == "number" for value in values):
            raise self.refusal(call.at, "'add' takes numbers")
        total = sum(cast("list[int]", values))
        if not -(1 << 63) <= total < 1 << 63:
            raise self.refusal(call.at, "a number becomes too large")
        return total

    def length(self, call: Apply, values: list[Data]) -> Data:
        value = values[0]
        if isinstance(value, str):
            self.spend(call.at, len(value))
            return len(value.encode("utf-8", "surrogatepass"))
        if not _is_list(value):
            raise self.refusal(call.at, "this has no length")
        return len(cast("Sequence[Data]", value))

    def item(self, call: Apply, values: list[Data]) -> Data:
        items, index = values
        if not _is_list(items) or _kind(index) != "number":
            raise self.refusal(call.at, "'index' takes a list and a number")
        known, at = cast("Sequence[Data]", items), cast("int", index)
        if not 0 <= at < len(known):
            raise self.refusal(call.at, "the list has no item of this index")
        return known[at]

    def compared(self, call: Apply, values: list[Data]) -> Data:
        """Return whether the first value compares so to any of the others."""
        kinds = {_kind(value) for value in values}
        if len(kinds) > 1 or "" in kinds or (kinds == {"truth"} and call.function[:1] in "lg"):
            raise self.refusal(call.at, f"{call.function!r} cannot compare these")
        first, *others = cast("list[int]", values)  # all of one kind, whichever it is
        self.spend(call.at, sum(len(value) for value in values if isinstance(value, str)))
        signs = _SIGNS[call.function]
        return any((first > other) - (first < other) in signs for other in others)

    def formatted(self, call: Apply, values: list[Data]) -> Data:
        """Return what `printf` makes of `%s`, `%d`, `%v` and `%%`."""
        if not isinstance(values[0], str):
            raise self.refusal(call.at, "'printf' takes a text first")
        given = iter(values[1:])
        total = len(values[0]) + sum(len(each) for each in values if isinstance(each, str))
        self.spend(call.at, total)
        text = _VERBS.sub(lambda verb: self.verb(call, verb[1], given), values[0])
        if next(given, None) is not None:
            raise self.refusal(call.at, "'printf' has more values than its text takes")
        return text

    def verb(self, call: Apply, verb: str, given: Iterator[Data]) -> str:
        if verb == "%":
            return "%"
        if verb not in _KINDS_OF_VERBS:
            raise self.refusal(call.at, "'printf' knows %s, %d, %v and %%")
        value = next(given, None)
        if value is None or _kind(value) not in _KINDS_OF_VERBS[verb]:
            raise self.refusal(call.at, f"'printf' has no fitting value for %{verb}")
        return self.shown(value, call.at)

    def shown(self, value: Data, at: int) -> str:
        kind = _kind(value)
        if not kind:
            raise self.refusal(at, "only texts, numbers and truth values can be written")
        return str(value).lower() if kind == "truth" else str(value)


_FUNCTIONS: Mapping[str, Callable[[_Run, Apply, list[Data]], Data]] = {
    "add": _Run.sum,
    "len": _Run.length,
    "index": _Run.item,
    "printf": _Run.formatted,
    **dict.fromkeys(_SIGNS, _Run.compared),
}


def _kind(value: Data) -> str:
    """Return the scalar that a value is, empty if it is none."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "number"
    return "text" if isinstance(value, str) else ""


def _is_list(value: Data) -> bool:
    return isinstance(value, (tuple, list))
