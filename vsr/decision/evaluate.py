"""From a request to the decision that serves it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

import msgspec

from vsr.codec.chat import ChatRequest
from vsr.decision.graph_trees import GraphTrees, TreeAnswers, compile_trees, types_of
from vsr.decision.heard import Heard, hear, judged
from vsr.decision.rules import Matcher, Matches, RuleMatch, compile_guess, compile_tree
from vsr.decision.signals.builtin import BUILTIN_SIGNALS
from vsr.decision.signals.signal import LearnedSignal, Signal
from vsr.registry import Registry
from vsr.resources.program import Decision, OnUnknown, Program, RuleTree, Strategy

BUILTIN: Registry[Signal | LearnedSignal] = Registry("signal", BUILTIN_SIGNALS)
NO_ANSWERS: Mapping[str, bytes] = MappingProxyType({})
"""Nothing was asked, or the runtime knows nothing."""
NO_MATCHES: Matches = MappingProxyType({})
NO_TREES: Mapping[str, Sequence[RuleTree]] = MappingProxyType({})


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What a program says of a request."""

    decision: Decision | None = None
    confidence: float = 0.0
    matched_rules: tuple[str, ...] = ()
    """Labels `type:name` that the decision holds by."""
    signals: dict[str, list[str]] = {}
    """Signal type -> names of the rules that matched, in configuration order."""
    conditions: TreeAnswers | None = None
    """What the request says to the rule trees in the conditions of the decision's graph; None
    where it has none."""
    matches: Matches = NO_MATCHES
    """Confidence of each signal rule that matched, by its label; None: unknown."""


class _Candidate(msgspec.Struct, frozen=True):
    decision: Decision
    match: Matcher


_Found = tuple[Decision, RuleMatch]


class Evaluator:
    """A compiled program; pure, and shared by all requests."""

    def __init__(
        self,
        signals: Sequence[tuple[str, Signal | LearnedSignal]],
        decisions: Sequence[Decision],
        strategy: Strategy,
        trees: Mapping[str, GraphTrees] = MappingProxyType({}),
    ) -> None:
        self._learned = [it for _, it in signals if isinstance(it, LearnedSignal)]
        self._signals: list[tuple[str, Signal | None, LearnedSignal | None]] = [
            (name, None, it) if isinstance(it, LearnedSignal) else (name, it, None)
            for name, it in signals
        ]
        self._strategy = strategy
        self._trees = trees
        types = frozenset(name for name, it in signals if isinstance(it, LearnedSignal))
        self._guesses = [
            (compile_guess(decision.tree, types), trees[decision.name].learned)
            for decision in decisions
            if decision.name in trees and trees[decision.name].learned
        ]
        self._candidates = [
            _Candidate(decision, compile_tree(decision.tree))
            for decision in sorted(decisions, key=lambda it: (-it.priority, it.name))
        ]
        self._groups = [
            [(it.decision, it.match) for it in group]
            for _, group in groupby(self._candidates, key=lambda it: it.decision.priority)
        ]
        # Then the first group of equal priority with a match has the winner; unless a decision
        # behind it may fail the request all the same.
        self._is_ordered = strategy is Strategy.PRIORITY and not any(
            it.tier or it.on_unknown is OnUnknown.FAIL_REQUEST for it in decisions
        )

    @property
    def is_learned(self) -> bool:
        """Return whether `asks` may return anything."""
        return bool(self._learned or self._guesses)

    def asks(self, chat: ChatRequest, heard: Heard | None = None) -> dict[str, bytes]:
        """Return what the model runtime is to be asked before `evaluate`, in one bundle.

        What only conditions of a decision's graph need is asked for requests that the decision
        may still get, as far as signals without a model tell.

        Args:
            chat: the request.
            heard: of the request, for `evaluate` to go on with.

        Raises:
            InvalidRequest: a text that a signal reads is not UTF-8.
        """
        bundle: dict[str, bytes] = {}
        if not self._candidates or chat.is_blank:
            return bundle
        for signal in self._learned:
            bundle.update(signal.asks(chat))
        if self._guesses:
            matches, heard = dict[str, float | None](), {} if heard is None else heard
            for signal_type, plain, _ in self._signals:
                for it in () if plain is None else hear(signal_type, plain, chat, heard):
                    matches[f"{signal_type}:{it.name}"] = it.confidence
            for may_match, signals in self._guesses:
                for signal in signals if may_match(matches) else ():
                    bundle.update(signal.asks(chat))
        return bundle

    def evaluate(
        self,
        chat: ChatRequest,
        answers: Mapping[str, bytes] = NO_ANSWERS,
        heard: Heard | None = None,
    ) -> Verdict:
        """Return the winning decision and why.

        Args:
            chat: the request.
            answers: the runtime's; what is missing is unknown.
            heard: what `asks` has found out already.

        Raises:
            InvalidRequest: a text that a signal reads is not UTF-8.
            SignalUnknown: a decision's rules need an answer that is missing.
        """
        if not self._candidates or chat.is_blank:
            return Verdict()
        matches: dict[str, float | None] = {}
        names: dict[str, list[str]] = {}
        for signal_type, signal, learned in self._signals:
            if signal is None:
                found = judged(signal_type, learned, (chat, answers), matches)
            else:
                found = signal(chat) if heard is None else hear(signal_type, signal, chat, heard)
            if found:
                matching = names[signal_type] = []
                for it in found:
                    matching.append(it.name)
                    matches[f"{signal_type}:{it.name}"] = it.confidence
        best = self._first(matches) if self._is_ordered else self._best(matches)
        if best is None:
            return Verdict(signals=names, matches=matches)
        decision, match = best
        trees = self._trees.get(decision.name) if self._trees else None
        conditions = None if trees is None else TreeAnswers(trees, chat, answers, matches)
        return Verdict(decision, match.confidence, match.labels, names, conditions, matches)

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
    program: Program,
    signals: Registry[Signal | LearnedSignal] | None = None,
    trees: Mapping[str, Sequence[RuleTree]] = NO_TREES,
) -> Evaluator:
    """Compile `program`, with the signal types it uses out of `signals` or the built-in ones.

    As in the reference a type without a leaf in a decision is not evaluated; of any other, all
    rules are, since the client sees which ones matched. A type that only a graph's conditions use
    is evaluated when the graph begins, and is not shown.

    Args:
        program: what to compile.
        signals: by type; None: the built-in ones.
        trees: by decision, what the conditions of its graph ask.

    Raises:
        ConfigRejected: a rule of a signal can't be compiled.
    """
    known = BUILTIN if signals is None else signals
    used = types_of(decision.rules for decision in program.decisions)
    more = types_of(tree.rule for each in trees.values() for tree in each) - used
    built = [(it.name, it.config(program)) for it in known if it.name in used]
    further = [(it.name, it.config(program)) for it in known if it.name in more]
    compiled = {name: compile_trees(each, further) for name, each in trees.items() if each}
    return Evaluator(built, program.decisions, program.strategy, compiled)


def _by_tier(found: _Found) -> tuple[int, float, int, str]:
    decision, match = found
    return decision.tier, -match.confidence, -decision.priority, decision.name


def _by_priority(found: _Found) -> tuple[int, float, str]:
    decision, match = found
    return -decision.priority, -match.confidence, decision.name


def _by_confidence(found: _Found) -> tuple[float, int, str]:
    decision, match = found
    return -match.confidence, -decision.priority, decision.name
