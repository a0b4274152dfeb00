"""Decision rules, compiled to closures over the signals that matched."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final, assert_never, cast

import msgspec

from vsr.errors import SignalUnknown
from vsr.resources.program import And, Leaf, Not, OnUnknown, Or, Rule, RuleTree

Matches = Mapping[str, float | None]
"""Confidence of each signal rule that matched, by its label `type:name`; None: unknown."""


class RuleMatch(msgspec.Struct, frozen=True, gc=False):
    """A rule that holds."""

    confidence: float
    labels: tuple[str, ...] = ()
    """Labels of the leaves that it holds by, in the order written."""


class Unknown(Enum):
    """What a rule comes to that an unknown signal leaves open."""

    UNKNOWN = 0


UNKNOWN: Final = Unknown.UNKNOWN
_NOT_KNOWN = "a signal that the request is routed by could not be evaluated"
_BY_DEFAULT = RuleMatch(1.0, ("on_unknown:match",))

Matcher = Callable[[Matches], RuleMatch | None]
_Judge = Callable[[Matches], RuleMatch | Unknown | None]
_JudgeLeaf = Callable[[str], _Judge]


def compile_tree(tree: RuleTree) -> Matcher:
    """Return a closure that answers how `tree` matches, or None.

    Where its root says what an unknown signal means, that signal leaves open what is made of it:
    false if any condition of an AND is, true if any of an OR is, else unknown.

    The closure raises SignalUnknown where the whole tree is unknown and fails the request then.

    Source: the reference's `on_unknown`.
    """
    if tree.on_unknown is None:
        return compile_rule(tree.rule)
    judge, on_unknown = _compiled(tree.rule, _open_leaf), tree.on_unknown

    def match_tree(matches: Matches) -> RuleMatch | None:
        found = judge(matches)
        if found is not UNKNOWN:
            return found
        if on_unknown is OnUnknown.FAIL_REQUEST:
            raise SignalUnknown(_NOT_KNOWN)
        return _BY_DEFAULT if on_unknown is OnUnknown.MATCH else None

    return match_tree


def compile_rule(rule: Rule) -> Matcher:
    """Return a closure that answers how `rule` matches, or None; what is unknown does not match.

    Source: the reference's decision engine: AND means its children's confidences, OR takes its
    best child's and reports only that child, NOT is certain, and a rule without conditions is a
    catch-all of confidence 0.
    """
    return cast("Matcher", _compiled(rule, _leaf))  # none of its leaves is ever unknown


def compile_guess(tree: RuleTree, types: frozenset[str]) -> Callable[[Matches], bool]:
    """Return a closure that answers whether `tree` may match before signals of `types` are known.

    Without them it is told what the other signals say.
    """

    def leaf(leaf_label: str) -> _Judge:
        return _any_leaf if leaf_label.partition(":")[0] in types else _leaf(leaf_label)

    judge = _compiled(tree.rule, leaf)
    return lambda matches: judge(matches) is not None


def _compiled(rule: Rule, leaf: _JudgeLeaf) -> _Judge:
    match rule:
        case Leaf():
            return leaf(label(rule.type, rule.name))
        case And():
            return _all_of([_compiled(condition, leaf) for condition in rule.conditions])
        case Or():
            return _best_of([_compiled(condition, leaf) for condition in rule.conditions])
        case Not():
            return _none_of(_compiled(rule.condition, leaf))
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


def _any_leaf(matches: Matches) -> RuleMatch | Unknown | None:
    del matches
    return UNKNOWN


def _open_leaf(leaf_label: str) -> _Judge:
    known = _leaf(leaf_label)

    def match_leaf(matches: Matches) -> RuleMatch | Unknown | None:
        if matches.get(leaf_label, 0.0) is None:
            return UNKNOWN
        return known(matches)

    return match_leaf


def _leaf(leaf_label: str) -> _Judge:
    certain = RuleMatch(1.0, (leaf_label,))

    def match_leaf(matches: Matches) -> RuleMatch | None:
        confidence = matches.get(leaf_label)
        if confidence is None:
            return None
        return certain if confidence == 1.0 else RuleMatch(confidence, (leaf_label,))

    return match_leaf


def _all_of(children: list[_Judge]) -> _Judge:
    if len(children) == 1:
        return children[0]
    catch_all = RuleMatch(0.0)

    def match_all(matches: Matches) -> RuleMatch | Unknown | None:
        total = 0.0
        labels: tuple[str, ...] = ()
        is_open = False
        for child in children:
            found = child(matches)
            if found is None:
                return None
            if found is UNKNOWN:
                is_open = True
            else:
                total += found.confidence
                labels += found.labels
        return UNKNOWN if is_open else RuleMatch(total / len(children), labels)

    return match_all if children else lambda _: catch_all


def _best_of(children: list[_Judge]) -> _Judge:
    if len(children) == 1:
        return children[0]

    def match_best(matches: Matches) -> RuleMatch | Unknown | None:
        best: RuleMatch | None = None
        is_open = False
        for child in children:
            found = child(matches)
            if found is UNKNOWN:
                is_open = True
            elif found is not None and (best is None or found.confidence > best.confidence):
                best = found
        return UNKNOWN if best is None and is_open else best

    return match_best


def _none_of(child: _Judge) -> _Judge:
    absent = RuleMatch(1.0)

    def match_none(matches: Matches) -> RuleMatch | Unknown | None:
        found = child(matches)
        if found is None:
            return absent
        return UNKNOWN if found is UNKNOWN else None

    return match_none
