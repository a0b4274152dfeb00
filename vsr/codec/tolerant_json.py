"""A JSON object in what a model wrote around it, mended where models err."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

T = TypeVar("T")

JsonObject = Mapping[str, object]

_FENCE = "```"
_OBJECT = msgspec.json.Decoder(dict[str, object])

# No alternative gives back what it took, so that each search is linear in the text.
_STRING = r'"(?:[^"\\]++|\\.?)*+"?'
_STRING_OR_BACKTICK = re.compile(_STRING + "|`", re.DOTALL)
_ONLY_STRING = re.compile(_STRING, re.DOTALL)
_STRING_OR_COMMA = re.compile(_STRING + r"|,(?=[ \t\r\n]*+[}\]])", re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')


class NoJsonObject(ValueError):
    """No text holds an object of the wanted kind; the message quotes nothing of them."""


def read_object(*texts: str) -> JsonObject:
    """Return the object in the first text that has one; of a repeated key the last value counts.

    Raises:
        NoJsonObject: there is none, even after repair.
    Source: looper-algorithms 14.
    """
    return read_as(dict, *texts)


def read_as(convert: Callable[[JsonObject], T], *texts: str) -> T:
    """Return the first object that `convert` takes, converted.

    Of each text are tried: all of it without a Markdown fence, what stands between the outermost
    braces, and then these two repaired. The time is linear in the text's length.

    Args:
        convert: raises ValueError for an object of another kind; the message is shown.
        texts: in the order in which they are tried.

    Raises:
        NoJsonObject: there is none.
    Source: looper-algorithms 14.
    """
    problems: list[str] = []
    for text in texts:
        for candidate in _candidates(text):
            try:
                return convert(_OBJECT.decode(candidate))
            except ValueError as error:  # msgspec's errors among them
                problems.append(str(error))
            except RecursionError:
                problems.append("JSON is nested too deeply")
    raise NoJsonObject("; ".join(problems) or "there is no text")


def _candidates(text: str) -> Iterator[str]:
    whole = _without_fence(text.strip())
    start, end = whole.find("{"), whole.rfind("}")
    inner = whole[start : end + 1] if 0 <= start <= end else ""
    seen = {""}
    for candidate in (whole, inner):
        if candidate not in seen:
            seen.add(candidate)
            yield candidate
    for candidate in tuple(dict.fromkeys((whole, inner))):
        repaired = _repair(candidate)
        if repaired not in seen:
            seen.add(repaired)
            yield repaired


def _without_fence(text: str) -> str:
    """Return what a fence at the start of the text encloses."""
    if not text.startswith(_FENCE):
        return text
    inside = text.partition("\n")[2].rstrip()
    body, _, last = inside.rpartition("\n")
    return (body if last.strip().startswith(_FENCE) else inside).strip()


def _repair(text: str) -> str:
    text = _STRING_OR_BACKTICK.sub(lambda found: '"' if found[0] == "`" else found[0], text)
    text = _ONLY_STRING.sub(lambda found: _ESCAPE.sub(_mend_escape, found[0]), text)
    return _STRING_OR_COMMA.sub(lambda found: "" if found[0] == "," else found[0], text)


def _mend_escape(found: re.Match[str]) -> str:
    return found[0] if found[1] else r"\\"
