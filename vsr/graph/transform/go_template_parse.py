"""Parses the safe subset of Go's templates; what is outside of it is refused with its place."""

from collections.abc import Iterator

import attrs
import msgspec

from vsr.graph.transform.go_template_text import Action, Token, read_template, refuse
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
    Show,
)
from vsr.graph.transform.template_refused import TemplateRefused

MAX_DEPTH = 20
_INT64 = 1 << 63

ARITIES = {
    "add": (2, 2),
    "len": (1, 1),
    "not": (1, 1),
    "and": (1, 9),
    "or": (1, 9),
    "eq": (2, 9),
    "ne": (2, 2),
    "lt": (2, 2),
    "le": (2, 2),
    "gt": (2, 2),
    "ge": (2, 2),
    "index": (2, 2),
    "printf": (1, 9),
}
"""The functions, with the fewest and the most arguments.

Source: Go, package text/template, "Functions"; `add` is looper-algorithms 8.1.
"""
_KEYWORDS = frozenset({"if", "with", "range", "else", "end"})
_UNSUPPORTED = frozenset({"define", "template", "block", "break", "continue", "nil"})


@attrs.frozen
class _Closing:
    """What ended a list of parts: `end`, or `else` with what follows it."""

    word: str
    words: "_Words"


@attrs.define
class _Words:
    """The words of one action, taken one by one."""

    template: str
    action: Action
    position: int = 0

    def peek(self) -> Token | None:
        tokens = self.action.tokens
        return tokens[self.position] if self.position < len(tokens) else None

    def is_next(self, *kinds: str) -> bool:
        tokens = self.action.tokens[self.position : self.position + len(kinds)]
        return tuple(token.kind for token in tokens) == kinds

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise self.refusal("something is missing at the end of this action")
        self.position += 1
        return token

    def refusal(self, what: str, token: Token | None = None) -> TemplateRefused:
        return refuse(self.template, self.action.at if token is None else token.at, what)

    def close(self) -> None:
        """Refuse what is left."""
        token = self.peek()
        if token is not None:
            raise self.refusal(f"unexpected {token.value!r}", token)


def parse(template: str) -> tuple[Part, ...]:
    """Return the parts of a template.

    Raises:
        TemplateRefused: it is no template, or uses what the subset does not have.
    """
    parts, closing = _read_parts(template, read_template(template), 0)
    if closing is not None:
        raise closing.words.refusal(f"unexpected {closing.word!r}")
    return parts


def _read_parts(
    template: str, items: Iterator[str | Action], depth: int
) -> tuple[tuple[Part, ...], _Closing | None]:
    parts: list[Part] = []
    for item in items:
        if isinstance(item, str):
            parts.append(item)
            continue
        words = _Words(template, item)
        if depth > MAX_DEPTH:
            raise words.refusal(f"nested more than {MAX_DEPTH} deep")
        first = words.take()
        if first.kind == "word" and first.value in {"else", "end"}:
            return tuple(parts), _Closing(first.value, words)
        if first.kind == "word" and first.value in _KEYWORDS:
            parts.append(_read_block(first.value, words, items, depth))
        else:
            words.position = 0
            parts.append(_read_statement(words))
    return tuple(parts), None


def _read_statement(words: _Words) -> Part:
    at = words.action.at
    if words.is_next("variable", ":=") or words.is_next("variable", "="):
        name, sign = words.take(), words.take()
        expression = _read_pipeline(words, 0)
        words.close()
        return Assign(_variable(name, words), expression, sign.kind == ":=", at)
    expression = _read_pipeline(words, 0)
    words.close()
    return Show(expression, at)


def _read_block(word: str, words: _Words, items: Iterator[str | Action], depth: int) -> Part:
    names = _read_names(word, words)
    expression = _read_pipeline(words, 0)
    words.close()
    then, closing = _read_parts(words.template, items, depth + 1)
    otherwise: tuple[Part, ...] = ()
    if closing is not None and closing.word == "else":
        otherwise, closing = _read_else(word, closing, items, depth)
    if closing is None:
        raise words.refusal(f"this {word!r} has no 'end'")
    closing.words.close()
    at = words.action.at
    if word == "range":
        index, item = names if len(names) > 1 else (None, names[0] if names else None)
        return Range(expression, then, otherwise, index, item, at)
    return If(expression, then, otherwise, names[0] if names else None, word == "with", at)


def _read_else(
    word: str, closing: _Closing, items: Iterator[str | Action], depth: int
) -> tuple[tuple[Part, ...], _Closing | None]:
    """Return the other arm; an `else if` has its own block, which shares the `end`."""
    words = closing.words
    following = words.peek()
    if following is not None and word != "range" and following.value == word:
        words.take()
        block = _read_block(word, words, items, depth + 1)
        return (block,), _Closing("end", _Words(words.template, Action((), words.action.at)))
    words.close()
    otherwise, end = _read_parts(words.template, items, depth + 1)
    if end is not None and end.word == "else":
        raise end.words.refusal("a second 'else'")
    return otherwise, end


def _read_names(word: str, words: _Words) -> list[str]:
    """Return the variables that a block declares."""
    names: list[str] = []
    if word == "range" and words.is_next("variable", ",", "variable", ":="):
        names.append(_variable(words.take(), words))
        words.take()
    if words.is_next("variable", ":="):
        names.append(_variable(words.take(), words))
        words.take()
    return names


def _variable(token: Token, words: _Words) -> str:
    if token.value == "$":
        raise words.refusal("'$' cannot be assigned", token)
    return token.value


def _read_pipeline(words: _Words, depth: int) -> Expression:
    if depth > MAX_DEPTH:
        raise words.refusal(f"nested more than {MAX_DEPTH} deep")
    value = _read_command(words, depth, None)
    while words.is_next("|"):
        words.take()
        value = _read_command(words, depth, value)
    return value


def _read_command(words: _Words, depth: int, piped: Expression | None) -> Expression:
    token = words.peek()
    if token is None or token.kind != "word" or token.value in {"true", "false"}:
        if piped is not None:
            raise words.refusal("behind '|' stands a function", token)
        return _read_operand(words, depth)
    words.take()
    if token.value not in ARITIES:
        known = ", ".join(sorted(ARITIES))
        kind = "is not supported" if token.value in _UNSUPPORTED | _KEYWORDS else "is no function"
        raise words.refusal(f"{token.value!r} {kind} here; functions are {known}", token)
    arguments: list[Expression] = []
    while words.peek() is not None and not (words.is_next("|") or words.is_next(")")):
        arguments.append(_read_operand(words, depth))
    if piped is not None:
        arguments.append(piped)
    fewest, most = ARITIES[token.value]
    if not fewest <= len(arguments) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise words.refusal(f"{token.value!r} takes {wanted} arguments", token)
    return Apply(token.value, tuple(arguments), token.at)


def _read_operand(words: _Words, depth: int) -> Expression:
    token = words.take()
    match token.kind:
        case "(":
            inner = _read_pipeline(words, depth + 1)
            closing = words.take()
            if closing.kind != ")":
                raise words.refusal("this '(' has no ')'", token)
            fields = _fields_behind(words, closing)
            return Member(inner, fields, closing.at) if fields else inner
        case "field":
            return Read("", tuple(name for name in token.value.split(".") if name), token.at)
        case "variable":
            fields = _fields_behind(words, token)
            return Read(token.value, fields, token.at)
        case "text" | "number":
            return Constant(_constant(token, words), token.at)
        case "word" if token.value in {"true", "false"}:
            return Constant(token.value == "true", token.at)
        case "word" if token.value in ARITIES:
            what = f"put {token.value!r} and its arguments in parentheses"
            raise words.refusal(what, token)
    raise words.refusal(f"unexpected {token.value!r}", token)


def _fields_behind(words: _Words, value: Token) -> tuple[str, ...]:
    """Return the fields that stand right behind the word that ends a value."""
    token = words.peek()
    is_behind = (
        token is not None
        and token.kind == "field"
        and token.value != "."
        and token.at == value.at + len(value.value)
    )
    return tuple(name for name in words.take().value.split(".") if name) if is_behind else ()


def _constant(token: Token, words: _Words) -> str | int:
    if token.kind == "number":
        if len(token.value) > len(str(_INT64)) or not -_INT64 <= int(token.value) < _INT64:
            raise words.refusal("this number is too large", token)
        return int(token.value)
    if token.value.startswith("`"):
        return token.value[1:-1]
    try:
        return msgspec.json.decode(token.value, type=str)
    except msgspec.DecodeError:
        raise words.refusal('write special characters as \\n, \\t, \\" or \\\\', token) from None
