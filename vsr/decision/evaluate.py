"""From a request to the decision that serves it."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

import msgspec

from vsr.codec.chat import ChatRequest
from vsr.decision.rules import Matcher, Matches, RuleMatch, compile_rule, leaves
from vsr.decision.signals.builtin import BUILTIN_SIGNALS
from vsr.decision.signals.signal import LearnedSignal, Signal, SignalMatch
from vsr.registry import Registry
from vsr.resources.program import Decision, Program, Strategy

BUILTIN: Registry[Signal | LearnedSignal] = Registry("signal", BUILTIN_SIGNALS)
NO_ANSWERS: Mapping[str, bytes] = MappingProxyType({})
"""Nothing was asked, or the runtime knows nothing."""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What a program says of a request."""

    decision: Decision | None = None
    confidence: float = 0.0
    matched_rules: tuple[str, ...] = ()
    """Labels `type:name` that the decision holds by."""
    signals: dict[str, list[str]] = {}
    """Signal type -> names of the rules that matched, in configuration order."""


class _Candidate(msgspec.Struct, frozen=True):
    decision: Decision
    match: Matcher


_Found = tuple[Decision, RuleMatch]
_Judge = Callable[[ChatRequest, Mapping[str, bytes]], Sequence[SignalMatch]]


def _judged(
    judge: _Judge | None, chat: ChatRequest, answers: Mapping[str, bytes]
) -> Sequence[SignalMatch]:
    return () if judge is None else judge(chat, answers)


class Evaluator:
    """A compiled program; pure, and shared by all requests."""

    def __init__(
        self,
        signals: Sequence[tuple[str, Signal | LearnedSignal]],
        decisions: Sequence[Decision],
        strategy: Strategy,
    ) -> None:
        self._learned = [it for _, it in signals if isinstance(it, LearnedSignal)]
        self._signals: list[tuple[str, Signal | None, _Judge | None]] = [
            (name, None, it.judge) if isinstance(it, LearnedSignal) else (name, it, None)
            for name, it in signals
        ]
        self._strategy = strategy
        self._candidates = [
            _Candidate(decision, compile_rule(decision.rules))
            for decision in sorted(decisions, key=lambda it: (-it.priority, it.name))
        ]
        self._groups = [
            [(it.decision, it.match) for it in group]
            for _, group in groupby(self._candidates, key=lambda it: it.decision.priority)
        ]
        # Then the first group of equal priority with a match has the winner.
        self._is_ordered = strategy is Strategy.PRIORITY and not any(it.tier for it in decisions)

    @property
    def is_learned(self) -> bool:
        """Return whether `asks` may return anything."""
        return bool(self._learned)

    def asks(self, chat: ChatRequest) -> dict[str, bytes]:
        """Return what the model runtime is to be asked before `evaluate`, in one bundle.

        Raises:
            InvalidRequest: a text that a signal reads is not UTF-8.
        """
        bundle: dict[str, bytes] = {}
        if self._candidates and not chat.is_blank:
            for signal in self._learned:
                bundle.update(signal.asks(chat))
        return bundle

    def evaluate(self, chat: ChatRequest, answers: Mapping[str, bytes] = NO_ANSWERS) -> Verdict:
        """Return the winning decision and why.

        Args:
            chat: the request.
            answers: the runtime's; what is missing is unknown.

        Raises:
            InvalidRequest: a text that a signal reads is not UTF-8.
        """
        if not self._candidates or chat.is_blank:
            return Verdict()
        matches: dict[str, float] = {}
        names: dict[str, list[str]] = {}
        for signal_type, signal, judge in self._signals:
            found = signal(chat) if signal is not None else _judged(judge, chat, answers)
            if found:
                matching = names[signal_type] = []
                for it in found:
                    matching.append(it.name)
                    matches[f"{signal_type}:{it.name}"] = it.confidence
        best = self._first(matches) if self._is_ordered else self._best(matches)
        if best is None:
            return Verdict(signals=names)
        decision, match = best
        return Verdict(decision, match.confidence, match.labels, names)

    def _first(self, matches: Matches) -> _Found | None:
        best: _Found | None = None
        for group in self._groups:
            for decision, matcher in group:
                match = matcher(matches)
                if match is not None and (best is None or match.confidence > best[1].confidence):
                    best = decision, match
            if best is not None:
                break
        return best

    def _best(self, matches: Matches) -> _Found | None:
        found = [
            (candidate.decision, match)
            for candidate in self._candidates
            if (match := candidate.match(matches)) is not None
        ]
        if any(decision.tier for decision, _ in found):
            return min(found, key=_by_tier)
        by_strategy = _by_priority if self._strategy is Strategy.PRIORITY else _by_confidence
        return min(found, key=by_strategy, default=None)


def compile_program(
    program: Program, signals: Registry[Signal | LearnedSignal] | None = None
) -> Evaluator:
    """Compile `program`, with the signal types it uses out of `signals` or the built-in ones.

    As in the reference a type without a leaf in a decision is not evaluated; of any other, all
    rules are, since the client sees which ones matched.

    Raises:
        ConfigRejected: a rule of a signal can't be compiled.
    """
    known = BUILTIN if signals is None else signals
    used = {
        leaf.type.strip().lower()
        for decision in program.decisions
        for leaf in leaves(decision.rules)
    }
    built = [(it.name, it.config(program)) for it in known if it.name in used]
    return Evaluator(built, program.decisions, program.strategy)


def _by_tier(found: _Found) -> tuple[int, float, int, str]:
    decision, match = found
    return decision.tier, -match.confidence, -decision.priority, decision.name


def _by_priority(found: _Found) -> tuple[int, float, str]:
    decision, match = found
    return -decision.priority, -match.confidence, decision.name


def _by_confidence(found: _Found) -> tuple[float, int, str]:
    decision, match = found
    return -match.confidence, -decision.priority, decision.name
