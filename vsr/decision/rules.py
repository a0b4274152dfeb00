"""Decision rules, compiled to closures over the signals that matched."""

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

import msgspec

from vsr.resources.program import And, Leaf, Not, Or, Rule

Matches = Mapping[str, float]
"""Confidence of each signal rule that matched, by its label `type:name`."""


class RuleMatch(msgspec.Struct, frozen=True, gc=False):
    """A rule that holds."""

    confidence: float
    labels: tuple[str, ...] = ()
    """Labels of the leaves that it holds by, in the order written."""


Matcher = Callable[[Matches], RuleMatch | None]


def compile_rule(rule: Rule) -> Matcher:
    """Return a closure that answers how `rule` matches, or None.

    Source: the reference's decision engine: AND means its children's confidences, OR takes its
    best child's and reports only that child, NOT is certain, and a rule without conditions is a
    catch-all of confidence 0.
    """
    match rule:
        case Leaf():
            return _leaf(label(rule.type, rule.name))
        case And():
            return _all_of([compile_rule(condition) for condition in rule.conditions])
        case Or():
            return _best_of([compile_rule(condition) for condition in rule.conditions])
        case Not():
            return _none_of(compile_rule(rule.condition))
        case _:
            assert_never(rule)


def label(signal_type: str, name: str) -> str:
    """Return how a signal rule is named in `Matches` and in evidence."""
    return f"{signal_type.strip().lower()}:{name}"


def leaves(rule: Rule) -> Iterator[Leaf]:
    """Yield the leaves of `rule` in the order written."""
    match rule:
        case Leaf():
            yield rule
        case And() | Or():
            for condition in rule.conditions:
                yield from leaves(condition)
        case Not():
            yield from leaves(rule.condition)
        case _:
            assert_never(rule)


def _leaf(leaf_label: str) -> Matcher:
    certain = RuleMatch(1.0, (leaf_label,))

    def match_leaf(matches: Matches) -> RuleMatch | None:
        confidence = matches.get(leaf_label)
        if confidence is None:
            return None
        return certain if confidence == 1.0 else RuleMatch(confidence, (leaf_label,))

    return match_leaf


def _all_of(children: list[Matcher]) -> Matcher:
    if len(children) == 1:
        return children[0]
    catch_all = RuleMatch(0.0)

    def match_all(matches: Matches) -> RuleMatch | None:
        total = 0.0
        labels: tuple[str, ...] = ()
        for child in children:
            found = child(matches)
            if found is None:
                return None
            total += found.confidence
            labels += found.labels
        return RuleMatch(total / len(children), labels)

    return match_all if children else lambda _: catch_all


def _best_of(children: list[Matcher]) -> Matcher:
    if len(children) == 1:
        return children[0]

    def match_best(matches: Matches) -> RuleMatch | None:
        best: RuleMatch | None = None
        for child in children:
            found = child(matches)
            if found is not None and (best is None or found.confidence > best.confidence):
                best = found
        return best

    return match_best


def _none_of(child: Matcher) -> Matcher:
    absent = RuleMatch(1.0)

    def match_none(matches: Matches) -> RuleMatch | None:
        return absent if child(matches) is None else None

    return match_none
