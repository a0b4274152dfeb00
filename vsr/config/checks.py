"""Rules that many fields of the document share: names, words, header lines."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from vsr.config.attempt import Code
from vsr.config.moved_keys import RETIRED_WORDS
from vsr.config.position import Path, dotted
from vsr.config.report import Report

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Source: RFC 9110, section 5.6.2 (token) and 5.5 (field values; ours stay ASCII).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ANY = "use one of them"
_FEW_WORDS = 6
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")


_Item = TypeVar("_Item")


def check_each(
    items: Sequence[_Item],
    check: Callable[[_Item, Path, Report], None],
    path: Path,
    report: Report,
) -> None:
    """Check every item of the list at `path`."""
    for at, item in enumerate(items):
        check(item, (*path, at), report)


def check_names(
    names: Iterable[tuple[Path, str]], report: Report, *, fold: Callable[[str], str] = str
) -> None:
    """Every name is there, unique as `fold` sees it, and fit for a header value."""
    seen: dict[str, Path] = {}
    for path, name in names:
        folded = fold(name.strip())
        if not folded:
            report.add(path, "is missing or blank", mend="give it a name")
        elif folded in seen:
            first = f"{dotted(seen[folded])} has it already"
            # A default name is not in the document.
            shown = repr(name) if report.lines.value(path) is None else report.quote(path)
            what = f"the name {shown} is taken"
            report.add(path, what, first, "rename one", code=Code.DUPLICATE_NAME)
        else:
            seen[folded] = path
            check_text(path, name, report)


def check_text(path: Path, text: str, report: Report) -> None:
    """The text is not blank and has neither outer blanks nor control characters."""
    if not text.strip():
        report.add(path, "is blank", mend="give a value or remove the key")
    elif text != text.strip() or _CONTROL.search(text):
        why = "it begins or ends with a blank, or holds a control character"
        report.add(path, "is not a plain word", why)


def check_word(path: Path, word: str, known: Collection[str], report: Report) -> bool:
    """Return whether `word` is one of the known."""
    if word in known:
        return True
    report.add(path, f"{report.quote(path)} is unknown", *about_unknown(word, known))
    return False


def about_unknown(word: str, known: Collection[str]) -> tuple[str, str]:
    """Return why an unknown word of a closed set is none, and what to write in its place."""
    if word in RETIRED_WORDS:
        return RETIRED_WORDS[word], "remove it"
    mend = suggestion(word, known)
    told = ", ".join(sorted(filter(None, known)))
    is_short = len(known) <= _FEW_WORDS or mend == _ANY
    return f"known are {told}" if is_short else "", mend


def suggestion(word: str, known: Collection[str]) -> str:
    """Return a hint at the nearest known word."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else _ANY


def is_header_name(text: str) -> bool:
    """Return whether `text` may be the name of a header line."""
    return _TOKEN.fullmatch(text) is not None


def is_header_value(text: str) -> bool:
    """Return whether `text` may be the value of a header line: visible ASCII, not empty."""
    return _FIELD_VALUE.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    """Return whether `text` may be the name of an environment variable."""
    return _VARIABLE.fullmatch(text) is not None
