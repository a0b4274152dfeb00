"""References to environment variables inside string values."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\{(?P<braced>[^}]*)\}|(?P<bare>[A-Za-z0-9_]+))")
_BRACED = re.compile(r"\$(?:\$(?=\{)|\{(?P<braced>[^}]*)\})")


class Expanded(str):
    """A string that held references, after expansion; its `repr` shows the authored text."""

    __slots__ = ("authored", "is_reference")

    authored: str
    """The text with its references; safe to show, unlike the string itself."""
    is_reference: bool
    """Whether the text was one reference and nothing else, so that it may stand for a number."""

    def __repr__(self) -> str:
        return repr(self.authored)


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` with its references replaced, as `Expanded` if there were any.

    `${VAR}` and `$VAR` give the value or nothing, `${VAR:-word}` gives `word` for an unset or
    empty variable, `${VAR-word}` for an unset one, `$$` a dollar. Anything else is literal. The
    result is not read again.
    """
    if "$" not in text:
        return text
    return _expanded(_REFERENCE, text, environ)


def expand_braced(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` with its references in braces replaced, as `Expanded` if there were any.

    For request graphs, where `$name.path` is a reference to a value of the graph: only the forms
    `${VAR}`, `${VAR:-word}` and `${VAR-word}` mean the environment, and `$${` is a literal `${`.
    """
    if "${" not in text:
        return text
    return _expanded(_BRACED, text, environ)


def _expanded(pattern: re.Pattern[str], text: str, environ: Mapping[str, str]) -> Expanded:
    expanded = Expanded(pattern.sub(lambda match: _replacement(match, environ), text))
    expanded.authored = text
    whole = pattern.fullmatch(text)
    expanded.is_reference = whole is not None and text != "$$"
    return expanded


def _replacement(match: re.Match[str], environ: Mapping[str, str]) -> str:
    braced, bare = match["braced"], match.groupdict().get("bare")
    if bare is not None:
        return environ.get(bare, "")
    if braced is None:
        return "$"
    # `:-` is looked for first, so a name can't hold a `-`.
    name, operator, word = braced.partition(":-")
    if operator:
        return environ.get(name) or word
    name, operator, word = braced.partition("-")
    return environ.get(name, word if operator else "")
