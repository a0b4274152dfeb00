"""Checks of rule trees."""

import math

import msgspec

from vsr.config.attempt import Code
from vsr.config.checks import check_word, suggestion
from vsr.config.document.rules import NumericPredicate, RuleNode
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.declared import Declared

RULE_OPERATORS = ("AND", "OR", "NOT")
_LEVELS = ("easy", "medium", "hard")
_LOCAL_MINIMUM = 0.5


def check_rules(rules: RuleNode, declared: Declared, path: Path, report: Report) -> None:
    """The tree of a decision is well formed and names what the recipe declares."""
    if msgspec.structs.replace(rules, on_unknown=None) != RuleNode():
        _check_node(rules, declared, path, report, is_root=True)


def _check_node(
    node: RuleNode, declared: Declared, path: Path, report: Report, *, is_root: bool = False
) -> None:
    if node.on_unknown is not None and not is_root:
        report.add(
            (*path, "on_unknown"), "is out of place", mend="write it on the rules themselves"
        )
    is_leaf = node.type is not None or node.name is not None
    if is_leaf and (node.operator is not None or node.conditions is not None):
        why = "`type` and `name` make a leaf, `operator` and `conditions` a composite"
        report.add(path, "mixes a leaf and a composite", why, "split it into two nodes")
    elif is_leaf:
        _check_leaf(node, declared, path, report)
    else:
        _check_composite(node, declared, path, report, is_root=is_root)


def _check_leaf(node: RuleNode, declared: Declared, path: Path, report: Report) -> None:
    why = "a leaf names a signal by type and name"
    if not node.type:
        report.add((*path, "type"), "is missing", why)
    if not node.type or report.is_broken((*path, "type")):
        return
    if node.type == "classifier":
        _check_classifier_leaf(node, declared, path, report)
    else:
        for key, value in (("label", node.label), ("on_error", node.on_error)):
            if value is not None:
                mend = "remove it"
                report.add((*path, key), "is out of place", "only classifiers have it", mend)
    if node.predicate is not None:
        check_predicate(node.predicate, (*path, "predicate"), report)
    if not node.name:
        report.add((*path, "name"), "is missing", why)
        return
    _check_name(node.type, node.name, declared, (*path, "name"), report)


def _check_name(kind: str, name: str, declared: Declared, path: Path, report: Report) -> None:
    if kind == "complexity":
        name, colon, level = name.rpartition(":")
        if not colon or level not in _LEVELS:
            what = f"{report.quote(path)} has no level"
            report.add(path, what, mend="write it like name:hard, name:medium or name:easy")
            return
    names = declared.names(kind)
    if names is None or name in names or not report.is_whole(declared.place(kind)):
        return
    place = ".".join(map(str, declared.place(kind)[-2:]))
    what = f"{report.quote(path)} is not declared under {'routing.' + place}"
    near = suggestion(name, names)
    mend = near if near.startswith("did") else "declare it there or correct the name"
    report.add(path, what, mend=mend, code=Code.UNRESOLVED_REFERENCE)


def _check_classifier_leaf(node: RuleNode, declared: Declared, path: Path, report: Report) -> None:
    rule = declared.classifiers.get(node.name or "")
    if node.predicate is None and node.name not in declared.calibrated:
        why = "a classifier's score is compared"
        report.add((*path, "predicate"), "is missing", why, "write predicate: {gte: 0.5}")
    if node.label is None:
        report.add((*path, "label"), "is missing", "a classifier scores labels", "name one")
    elif rule is not None and rule.labels and node.label not in rule.labels:
        place = (*path, "label")
        what = f"{report.quote(place)} is not a label of {node.name!r}"
        report.add(place, what, mend=suggestion(node.label, rule.labels))
    if rule is not None and rule.type == "local" and node.predicate is not None:
        only = NumericPredicate(gte=node.predicate.gte)
        if node.predicate != only or (only.gte or 0) < _LOCAL_MINIMUM:
            why = "a local classifier's score takes gte from 0.5 only"
            report.add((*path, "predicate"), "can't be used here", why, "write {gte: 0.5}")


def _check_composite(
    node: RuleNode, declared: Declared, path: Path, report: Report, *, is_root: bool
) -> None:
    conditions = node.conditions or ()
    if node.operator is None:
        mend = "write AND, OR or NOT"
        report.add((*path, "operator"), "is missing", "readers disagree on its default", mend)
    elif check_word((*path, "operator"), node.operator.upper(), RULE_OPERATORS, report):
        _check_arity(node.operator.upper(), len(conditions), path, report, is_root=is_root)
    for at, condition in enumerate(conditions):
        _check_node(condition, declared, (*path, "conditions", at), report)


def _check_arity(operator: str, count: int, path: Path, report: Report, *, is_root: bool) -> None:
    if operator == "NOT" and count != 1:
        report.add(path, f"NOT takes one condition, not {count}", mend="put them under AND or OR")
    elif not count and not is_root:
        why = "only the rules of a decision may have none"
        report.add(path, f"{operator} has no conditions", why)


def check_predicate(predicate: NumericPredicate, path: Path, report: Report) -> None:
    """The bounds are there, one per side, and leave something between them."""
    if predicate == NumericPredicate():
        report.add(path, "has no bound", mend="give gt, gte, lt or lte")
    for one, other in (("gt", "gte"), ("lt", "lte")):
        if getattr(predicate, one) is not None and getattr(predicate, other) is not None:
            report.add((*path, other), f"excludes {one}", mend="keep one of the two")
            return
    low = predicate.gt if predicate.gte is None else predicate.gte
    high = predicate.lt if predicate.lte is None else predicate.lte
    is_open = predicate.gt is not None or predicate.lt is not None
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if low > high or (low == high and is_open):
        report.add(path, "leaves no value", "its lower bound is not below the upper one")


def has_leaf(rules: RuleNode, kind: str) -> bool:
    """Return whether some leaf of the tree is of the type."""
    return rules.type == kind or any(has_leaf(each, kind) for each in rules.conditions or ())
