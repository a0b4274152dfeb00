"""When two answers are the same, and where in a reply the answer stands."""

import re
from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec
import re2

Normalization: TypeAlias = Literal["exact", "trimmed", "casefold", "number"]
"""What makes two texts the same answer.

`exact`: every character. `trimmed`: all but white space around. `casefold`: also whatever the case.
`number`: the last number in them has the same value, so that `42`, `= 42.0` and `1,042 - 1,000 is
42` are one answer.
"""

Extraction: TypeAlias = Literal["content", "last_line", "pattern", "json"]
"""Which part of a reply's content is the answer.

`content`: all of it. `last_line`: the last line that is not blank. `pattern`: what the group of the
last match of an RE2 expression holds. `json`: a member of the JSON object that the content has
between its first `{` and its last `}`; a string as it is, anything else as compact JSON with sorted
keys.
"""

_NUMBER = re.compile(
    r"""(?:(?<![\w.])[-\u2212])?        # a hyphen behind a word or number is no sign
    (?:(?:[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9]++)(?:\.[0-9]++)?|\.[0-9]++)
    (?:[eE][+-]?[0-9]{1,3}+(?!\w))?""",
    re.VERBOSE,
)


def answer_key(text: str, normalization: Normalization) -> str | Decimal | None:
    """Return what is equal for texts that are the same answer; None for one that is no answer.

    A blank text is no answer: that several models say nothing is not agreement.
    """
    if not text.strip():
        return None
    match normalization:
        case "exact":
            return text
        case "trimmed":
            return text.strip()
        case "casefold":
            return text.strip().casefold()
        case "number":
            return _last_number(text)


def extract_answer(
    content: str, extraction: Extraction, *, pattern: str = "", member: str = ""
) -> str | None:
    """Return the answer in a reply's content, None if there is none.

    Args:
        content: of the reply.
        extraction: how to find it.
        pattern: for `pattern`, an RE2 expression with one group.
        member: for `json`, name of a member of the object.
    """
    match extraction:
        case "content":
            return content
        case "last_line":
            return next((line for line in reversed(content.splitlines()) if line.strip()), None)
        case "pattern":
            return _last_group(content, pattern)
        case "json":
            return _json_member(content, member)


def _last_number(text: str) -> Decimal | None:
    numbers: list[str] = _NUMBER.findall(text)
    return Decimal(numbers[-1].replace(",", "").replace("\u2212", "-")) if numbers else None


def _last_group(content: str, pattern: str) -> str | None:
    groups: list[str | None] = [match.group(1) for match in re2.finditer(pattern, content)]
    return groups[-1] if groups else None


def _json_member(content: str, member: str) -> str | None:
    text = content[content.find("{") : content.rfind("}") + 1]
    try:
        found = msgspec.json.decode(text, type=dict[str, object])[member]
    except (ValueError, KeyError, RecursionError):
        return None
    if found is None:
        return None
    return found if isinstance(found, str) else msgspec.json.encode(found, order="sorted").decode()
