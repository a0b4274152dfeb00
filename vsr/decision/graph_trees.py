"""Rule trees in the conditions of a decision's graph, and what one request says to them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from vsr.codec.chat import ChatRequest
from vsr.decision.heard import judged
from vsr.decision.rules import Matcher, compile_tree, leaves
from vsr.decision.signals.signal import LearnedSignal, Signal
from vsr.resources.program import Rule, RuleTree


class GraphTrees(msgspec.Struct, frozen=True):
    """The trees of one decision's graph, compiled."""

    matchers: tuple[Matcher, ...]
    signals: tuple[tuple[str, Signal | LearnedSignal], ...] = ()
    """By type, those that they use and that no decision does."""

    @property
    def learned(self) -> tuple[LearnedSignal, ...]:
        """Return the signals among these that a model judges."""
        return tuple(it for _, it in self.signals if isinstance(it, LearnedSignal))


class TreeAnswers(msgspec.Struct, frozen=True, gc=False):
    """What one request says to the trees of a graph; found when the graph begins."""

    trees: GraphTrees
    chat: ChatRequest
    answers: Mapping[str, bytes]
    """Of the model runtime."""
    matches: Mapping[str, float | None]
    """Of the signals that decisions use."""

    def find(self) -> tuple[bool, ...]:
        """Return whether each tree holds, in their order.

        Raises:
            InvalidRequest: a text that a signal reads is not UTF-8.
            SignalUnknown: a tree needs an answer that is missing, and fails the request then.
        """
        matches = dict(self.matches)
        for signal_type, signal in self.trees.signals:
            if isinstance(signal, LearnedSignal):
                found = judged(signal_type, signal, (self.chat, self.answers), matches)
            else:
                found = signal(self.chat)
            matches.update((f"{signal_type}:{it.name}", it.confidence) for it in found)
        return tuple(matcher(matches) is not None for matcher in self.trees.matchers)


def compile_trees(
    trees: Sequence[RuleTree], signals: Iterable[tuple[str, Signal | LearnedSignal]]
) -> GraphTrees:
    """Return the trees of a graph, ready to be asked.

    Args:
        trees: in the order in which they are answered.
        signals: by type, those that decisions do not use; of them the trees' are kept.
    """
    used = types_of(tree.rule for tree in trees)
    return GraphTrees(tuple(map(compile_tree, trees)), tuple(it for it in signals if it[0] in used))


def types_of(rules: Iterable[Rule]) -> frozenset[str]:
    """Return the types of signals that rules name."""
    return frozenset(leaf.type.strip().lower() for rule in rules for leaf in leaves(rule))
