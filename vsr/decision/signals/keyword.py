"""Signal `keyword`: literal words or regular expressions in the evaluation text."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import re2

from vsr.codec.chat import ChatRequest
from vsr.decision.signals.pattern_set import Pattern, PatternError, PatternSet, fault_of, pack
from vsr.decision.signals.signal import Signal, SignalMatch
from vsr.errors import ConfigRejected, Problem
from vsr.registry import Extension
from vsr.resources.program import KeywordMethod, KeywordOperator, KeywordSignal, Program

_LITERALS_PER_PATTERN = 64
"""So that a long list of keywords can be split over several sets."""

_WORD = re2.compile(r"[\pL\p{Nd}_]")
_HAN = re2.compile(r"\p{Han}")


class _Test(msgspec.Struct, frozen=True):
    """Asks a rule's ids about the ids found: `ask(found) is wanted` means that the rule matches."""

    match: SignalMatch
    ask: Callable[[AbstractSet[int]], bool]
    wanted: bool


class KeywordSignals:
    """All keyword rules of a program: the literal ones share a pass, each regex rule has its own.

    A regular expression of the author's is kept apart, since one whose automaton grows with the
    text would make the others pay.

    Raises:
        ConfigRejected: RE2 refuses a keyword; every such keyword is listed.
    """

    def __init__(self, program: Program) -> None:
        problems: list[Problem] = []
        literals: list[Pattern] = []
        self._tests: list[_Test] = []
        self._sets: list[PatternSet] = []
        next_id = 0
        for index, rule in enumerate(program.keywords):
            patterns = list(_patterns(rule, first_id=next_id))
            ids = frozenset(pattern.id for pattern in patterns)
            next_id += len(ids)
            self._tests.append(_test(rule, ids))
            if rule.method is KeywordMethod.LITERAL:
                literals += patterns
                continue
            try:
                self._sets.append(PatternSet(patterns, case_sensitive=rule.case_sensitive))
            except PatternError:
                problems += _problems(rule, index)
        try:
            self._sets[:0] = pack(literals)
        except PatternError:
            problems.append(Problem("signals.keywords", "a literal keyword is too large"))
        if problems:
            raise ConfigRejected(problems)
        self._if_nothing_found = self._matches(frozenset())

    def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
        """Return the rules that match the request's evaluation text."""
        text = chat.evaluation_text.encode()
        found: set[int] = set()
        for patterns in self._sets:
            found.update(patterns.find(text))
        return self._matches(found) if found else self._if_nothing_found

    def _matches(self, found: AbstractSet[int]) -> list[SignalMatch]:
        return [test.match for test in self._tests if test.ask(found) is test.wanted]


def _test(rule: KeywordSignal, ids: frozenset[int]) -> _Test:
    match = SignalMatch(rule.name)
    if rule.operator is KeywordOperator.AND:
        return _Test(match, ids.issubset, wanted=True)
    return _Test(match, ids.isdisjoint, wanted=rule.operator is KeywordOperator.NOR)


def _patterns(rule: KeywordSignal, *, first_id: int) -> Iterator[Pattern]:
    """Yield a rule's patterns: an id per keyword for AND, else one id for any of them."""
    tells_apart = rule.operator is KeywordOperator.AND
    if rule.method is KeywordMethod.REGEX:
        for index, keyword in enumerate(rule.keywords):
            yield Pattern(keyword, first_id + index if tells_apart else first_id)
    elif tells_apart:
        for index, keyword in enumerate(rule.keywords):
            yield Pattern(_any_of((keyword,), rule), first_id + index)
    else:
        for at in range(0, len(rule.keywords), _LITERALS_PER_PATTERN):
            some = rule.keywords[at : at + _LITERALS_PER_PATTERN]
            yield Pattern(_any_of(some, rule), first_id)


def _any_of(keywords: Sequence[str], rule: KeywordSignal) -> str:
    """Return an expression for any of the keywords, read literally.

    A keyword with a letter, digit or `_` and no Han character stands between word boundaries. Case
    folding is Unicode's, a boundary is ASCII's and asked for at both ends: so `C++` wants a word
    character behind it, and a Cyrillic keyword wants one on either side. It is the reference's
    behaviour, kept.
    """
    bounded: list[str] = []
    others: list[str] = []
    for keyword in keywords:
        is_bounded = _WORD.search(keyword) is not None and _HAN.search(keyword) is None
        (bounded if is_bounded else others).append(re2.escape(keyword))
    if bounded:
        others.append(rf"\b(?:{'|'.join(bounded)})\b")
    flags = "?:" if rule.case_sensitive else "?i:"
    return f"({flags}{'|'.join(others)})"


def _problems(rule: KeywordSignal, index: int) -> Iterator[Problem]:
    """Yield a problem per refused keyword, or one for the rule if only all together are."""
    path = f"signals.keywords[{index}].keywords"
    reasons = [fault_of(keyword) for keyword in rule.keywords]
    if not any(reasons):
        yield Problem(path, f"the patterns of rule {rule.name!r} are too large", mend="split it")
    for at, reason in enumerate(reasons):
        if reason:
            yield Problem(
                f"{path}[{at}]",
                f"rule {rule.name!r} has a pattern that is not valid RE2",
                why=reason,
                mend="use RE2 syntax, which has no look-around and no back-references",
            )


KEYWORD = Extension[Signal](name="keyword", config=KeywordSignals)
