"""The matchers of the reference's phase fixtures; their README says what each means."""

import re
from collections.abc import Mapping, Sequence


def matches(actual: object, matcher: object) -> bool:
    """Return whether `actual` is what `matcher` asks for."""
    if isinstance(matcher, Mapping):
        word = next(iter(matcher), "")
        if isinstance(word, str) and word.startswith("$"):
            return _matches_word(actual, word, matcher[word])
        return isinstance(actual, Mapping) and all(
            matches(actual.get(key), inner) for key, inner in matcher.items()
        )
    if isinstance(matcher, Sequence) and not isinstance(matcher, str):
        return (
            isinstance(actual, Sequence)
            and len(actual) == len(matcher)
            and all(map(matches, actual, matcher))
        )
    return actual == matcher and isinstance(actual, bool) == isinstance(matcher, bool)


_KINDS = {"int": int, "string": str, "list": list, "object": dict}


def _matches_word(actual: object, word: str, argument: object) -> bool:
    match word:
        case "$exact":
            return _is_exactly(actual, argument)
        case "$regex":
            return isinstance(actual, str) and re.search(str(argument), actual) is not None
        case "$absent":
            return actual is None
        case "$any" | "$bind":
            return actual is not None
        case "$type":
            return isinstance(actual, _KINDS[str(argument)])
        case _:
            raise NotImplementedError(word)


def _is_exactly(actual: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return actual.keys() == wanted.keys() and all(
            _is_exactly(actual[key], inner) for key, inner in wanted.items()
        )
    return matches(actual, wanted)
