"""Rules that many fields of the document share: names, words, durations, header lines."""

import difflib
import re
from collections.abc import Collection, Iterable

from vsr.config.not_served import NOT_SERVED_VALUES
from vsr.config.position import Path, dotted
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Source: RFC 9110, section 5.6.2 (token) and 5.5 (field values; ours stay ASCII).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")


def check_names(names: Iterable[tuple[Path, str]], report: Report) -> None:
    """Every name is there, unique, and fit for a header value."""
    seen: dict[str, Path] = {}
    for path, name in names:
        if not name.strip():
            report.add(path, "is missing or blank", mend="give it a name")
        elif name in seen:
            first = f"{dotted(seen[name])} has it already"
            # A default name is not in the document.
            shown = repr(name) if report.lines.value(path) is None else report.quote(path)
            report.add(path, f"the name {shown} is taken", first, "rename one")
        else:
            seen[name] = path
            check_text(path, name, report)


def check_text(path: Path, text: str, report: Report) -> None:
    """The text is not blank and has neither outer blanks nor control characters."""
    if not text.strip():
        report.add(path, "is blank", mend="give a value or remove the key")
    elif text != text.strip() or _CONTROL.search(text):
        why = "it begins or ends with a blank, or holds a control character"
        report.add(path, "is not a plain word", why)


def check_word(path: Path, owner: str, word: str, served: Collection[str], report: Report) -> bool:
    """Return whether `word` is in the served part of the closed set of field `owner`."""
    if word in served:
        return True
    known = f"served are {', '.join(sorted(served))}"
    if word in NOT_SERVED_VALUES.get(owner, ()):
        what = f"{report.quote(path)} is not served by this version"
        report.add(path, what, known, "use one of them")
    else:
        report.add(path, f"{report.quote(path)} is unknown", known, suggestion(word, served))
    return False


def check_duration(path: Path, text: str, report: Report, *, may_be_zero: bool = True) -> None:
    """The text is a Go duration, not negative."""
    try:
        seconds = parse_duration_s(text)
    except ValueError:
        what = f"{report.quote(path)} is not a duration"
        report.add(path, what, mend="write it like 1m30s, 250ms or 0s")
        return
    if seconds < 0 or (seconds == 0 and not may_be_zero):
        report.add(path, "must not be negative" if may_be_zero else "must be longer than 0s")


def suggestion(word: str, known: Collection[str]) -> str:
    """Return a hint at the nearest known word."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else "use one of them"


def is_header_name(text: str) -> bool:
    """Return whether `text` may be the name of a header line."""
    return _TOKEN.fullmatch(text) is not None


def is_header_value(text: str) -> bool:
    """Return whether `text` may be the value of a header line: visible ASCII, not empty."""
    return _FIELD_VALUE.fullmatch(text) is not None
