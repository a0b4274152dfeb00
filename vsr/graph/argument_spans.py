"""Where the values of a tool call's arguments stand in the text of a JSON object."""

import re
from collections.abc import Iterator

import attrs

_LEXEME = re.compile(
    r"""[ \t\r\n]*+(?:
        "(?P<string>(?:[^"\\]++|\\.)*+)"?   # an end without a quote is where the text breaks off
        | (?P<mark>[{}\[\]:,])
        | (?P<scalar>[^ \t\r\n{}\[\]:,"]++)
    )""",
    re.VERBOSE | re.DOTALL,
)
_KEY = "arguments"


@attrs.define
class _Container:
    """An object or array that is open."""

    is_object: bool
    wants_value: bool
    """What comes next is a value and no key."""
    key: str = ""
    """The last key read, as it is spelled."""


@attrs.define
class _Scanner:
    """Reads lexemes one by one; lenient, since a model's text may be broken off or no JSON."""

    open: list[_Container] = attrs.field(factory=list)
    active_depth: int = 0
    """How many containers were open where marking began; 0 while it is off."""

    def take(self, lexeme: "re.Match[str]") -> tuple[int, int] | None:
        """Return where the lexeme's part of a marked value stands, None if it has none."""
        kind = lexeme.lastgroup or ""
        if kind == "mark":
            self._take_mark(lexeme["mark"])
            return None
        innermost = self.open[-1]
        if innermost.wants_value:
            return lexeme.span(kind) if self.active_depth else None
        if kind == "string":
            innermost.key = lexeme["string"]
        return None

    def _take_mark(self, mark: str) -> None:
        if mark in "{[":
            self.open.append(_Container(is_object=mark == "{", wants_value=mark == "["))
        elif mark in "}]":
            self.open.pop()
            if len(self.open) < self.active_depth:
                self.active_depth = 0
        elif self.open[-1].is_object:
            self._take_separator(self.open[-1], mark)

    def _take_separator(self, innermost: _Container, mark: str) -> None:
        innermost.wants_value = mark == ":"
        if mark == ":" and innermost.key == _KEY and not self.active_depth:
            self.active_depth = len(self.open)


def argument_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece of `text` that belongs to the values of arguments.

    Text before an object is passed over. Pieces are the inside of strings, with their escapes, and
    numbers, booleans and nulls, however deep, but no keys. They count from a key `arguments` on, to
    the end of the object that has the key: values of later keys beside it count too.

    Source: the reference's token filter `tool_call_args`. It goes by bytes; characters give the
    same, since a token is made of whole ones.
    """
    scanner = _Scanner()
    at = text.find("{")
    while at >= 0 and (lexeme := _LEXEME.match(text, at)):
        span = scanner.take(lexeme)
        if span is not None:
            yield span
        at = lexeme.end() if scanner.open else text.find("{", lexeme.end())
