"""The text of a Go template, cut into plain text and the words of its actions."""

import re
from collections.abc import Iterator

import msgspec

from vsr.graph.transform.template_refused import TemplateRefused

MAX_TEMPLATE_BYTES = 65536


class Token(msgspec.Struct, frozen=True):
    """One word of an action."""

    kind: str
    """`field`, `variable`, `word`, `text`, `number`, or the sign itself, like `(` or `:=`."""
    value: str
    at: int
    """Offset in the template."""


class Action(msgspec.Struct, frozen=True):
    """What stands between one pair of braces; comments are none."""

    tokens: tuple[Token, ...]
    at: int


_COMMENT = re.compile(r"\{\{(?:-\s)?\s*/\*.*?\*/\s*?(\s-)?\}\}", re.DOTALL)
_WORDS = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    |(?P<number>[+-]?[0-9]+(?![\w.]))
    |(?P<variable>\$\w*)
    |(?P<field>(?:\.[A-Za-z_]\w*)+|\.)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>:=|[=,|()])""",
    re.VERBOSE,
)
_SPACE = " \t\r\n"


def refuse(template: str, at: int, what: str) -> TemplateRefused:
    """Return the refusal of what stands at the offset `at`."""
    line = template.count("\n", 0, at) + 1
    column = at - (template.rfind("\n", 0, at) + 1) + 1
    return TemplateRefused(f"template line {line}, column {column}: {what}")


def read_template(template: str) -> Iterator[str | Action]:
    """Yield plain text and actions in order; text that trim marks leave empty is left out.

    Raises:
        TemplateRefused: an action is not closed or has a sign that none can have.

    Source: Go, package text/template, "Text and spaces".
    """
    if len(template.encode("utf-8", "replace")) > MAX_TEMPLATE_BYTES:
        raise TemplateRefused(f"the template is larger than {MAX_TEMPLATE_BYTES} bytes")
    position, trims_left = 0, False
    while True:
        start = template.find("{{", position)
        plain = template[position:] if start < 0 else template[position:start]
        if trims_left:
            plain = plain.lstrip(_SPACE)
        trims_right = start >= 0 and _has_left_mark(template, start)
        if trims_right:
            plain = plain.rstrip(_SPACE)
        if plain:
            yield plain
        if start < 0:
            return
        comment = _COMMENT.match(template, start)
        if comment:
            position, trims_left = comment.end(), comment[1] is not None
            continue
        tokens, position, trims_left = _read_action(template, start, 3 if trims_right else 2)
        yield Action(tokens, start)


def _has_left_mark(template: str, start: int) -> bool:
    return template[start + 2 : start + 3] == "-" and template[start + 3 : start + 4] in tuple(
        _SPACE
    )


def _read_action(template: str, start: int, skip: int) -> tuple[tuple[Token, ...], int, bool]:
    """Return the words of an action, where it ends, and whether it trims what follows."""
    tokens: list[Token] = []
    position = start + skip
    while True:
        if template.startswith("}}", position):
            return tuple(tokens), position + 2, False
        if template.startswith("-}}", position) and template[position - 1] in _SPACE:
            return tuple(tokens), position + 3, True
        found = _WORDS.match(template, position)
        if found is None:
            if template.find("}}", position) < 0:
                raise refuse(template, start, "this action is not closed with }}")
            raise refuse(template, position, f"unexpected {template[position]!r}")
        kind = found.lastgroup or ""
        if kind != "space":
            _add(tokens, kind, found[0], position)
        position = found.end()


def _add(tokens: list[Token], kind: str, value: str, at: int) -> None:
    tokens.append(Token(value if kind == "sign" else kind, value, at))
