"""References to environment variables inside string values."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\{([^}]*)\}|([A-Za-z0-9_]+))")


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
    expanded = Expanded(_REFERENCE.sub(lambda match: _replacement(match, environ), text))
    expanded.authored = text
    whole = _REFERENCE.fullmatch(text)
    expanded.is_reference = whole is not None and text != "$$"
    return expanded


def _replacement(match: re.Match[str], environ: Mapping[str, str]) -> str:
    braced, bare = match.groups()
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
