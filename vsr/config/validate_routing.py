"""What signals, decisions and model cards must hold to be compiled."""

import json
from collections.abc import Mapping

import re2

from vsr.config.checks import check_names, check_word
from vsr.config.document import (
    ContextRule,
    Decision,
    KeywordRule,
    ModelCard,
    Routing,
    RuleNode,
    TokenCount,
)
from vsr.config.names import is_regex_method
from vsr.config.position import Path
from vsr.config.quantities import parse_token_count
from vsr.config.report import Report
from vsr.config.validate_providers import check_model_name

STRATEGIES = ("priority", "confidence")
KEYWORD_OPERATORS = ("AND", "OR", "NOR")
RULE_OPERATORS = ("AND", "OR", "NOT")

_SIGNALS: Path = ("routing", "signals")
_COLLECTIONS = {"keyword": "keywords", "context": "context"}
# Source: the canonical configuration document, "routing.decisions[]".
_MAX_ANNOTATIONS = 32
_MAX_ANNOTATIONS_BYTES = 4_096

Declared = Mapping[str, set[str]]
"""Signal names by condition type."""


def check_routing(routing: Routing, models: set[str], report: Report) -> None:
    """Report every fault of `routing`; `models` are the aliases that may be named."""
    if routing.strategy is not None:
        check_word(
            ("routing", "strategy"), "Routing.strategy", routing.strategy, STRATEGIES, report
        )
    _check_cards(routing.modelCards, models, report)
    signals = routing.signals
    _check_keywords(signals.keywords, report)
    _check_contexts(signals.context, report)
    declared = {
        "keyword": {rule.name for rule in signals.keywords},
        "context": {rule.name for rule in signals.context},
    }
    root: Path = ("routing", "decisions")
    decisions = routing.decisions
    check_names((((*root, at, "name"), each.name) for at, each in enumerate(decisions)), report)
    for at, decision in enumerate(decisions):
        _check_decision(decision, models, declared, (*root, at), report)


def _check_cards(cards: tuple[ModelCard, ...], models: set[str], report: Report) -> None:
    root: Path = ("routing", "modelCards")
    check_names((((*root, at, "name"), card.name) for at, card in enumerate(cards)), report)
    for at, card in enumerate(cards):
        path = (*root, at)
        if card.name:
            check_model_name((*path, "name"), card.name, models, report)
        for key, count in (
            ("context_window_size", card.context_window_size),
            ("max_output_tokens", card.max_output_tokens),
        ):
            if count is not None and count < 1:
                report.add((*path, key), "must be at least 1")


def _check_keywords(rules: tuple[KeywordRule, ...], report: Report) -> None:
    root = (*_SIGNALS, "keywords")
    check_names((((*root, at, "name"), rule.name) for at, rule in enumerate(rules)), report)
    for at, rule in enumerate(rules):
        path = (*root, at)
        if not rule.operator:
            report.add((*path, "operator"), "is missing", mend="write AND, OR or NOR")
        else:
            check_word(
                (*path, "operator"),
                "KeywordRule.operator",
                rule.operator,
                KEYWORD_OPERATORS,
                report,
            )
        is_regex = is_regex_method(rule.method)
        if rule.method and not is_regex:
            check_word(
                (*path, "method"), "KeywordRule.method", rule.method.lower(), ("regex",), report
            )
        if not rule.keywords:
            report.add((*path, "keywords"), "is missing or empty", mend="give at least one keyword")
        for index, keyword in enumerate(rule.keywords):
            _check_keyword(keyword, (*path, "keywords", index), report, is_regex=is_regex)


def _check_keyword(keyword: str, path: Path, report: Report, *, is_regex: bool) -> None:
    if not keyword.strip():
        report.add(path, "is blank", "it would match everything", "remove it")
        return
    if not is_regex:
        return
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(keyword, options)
    except re2.error as error:
        # The part after the colon repeats the expression.
        why = str(error.args[0] if error.args else "")
        why = why.removeprefix("b'").partition(":")[0]
        mend = "RE2 has no look-around and no back-references"
        report.add(path, "is not a regular expression", why, mend)


def _check_contexts(rules: tuple[ContextRule, ...], report: Report) -> None:
    root = (*_SIGNALS, "context")
    check_names((((*root, at, "name"), rule.name) for at, rule in enumerate(rules)), report)
    for at, rule in enumerate(rules):
        path = (*root, at)
        if rule.min_tokens is None and rule.max_tokens is None:
            report.add(path, "has no limit", mend="give min_tokens or max_tokens")
        low = _token_count(rule.min_tokens, (*path, "min_tokens"), report)
        high = _token_count(rule.max_tokens, (*path, "max_tokens"), report)
        if low is not None and high is not None and low > high:
            report.add((*path, "max_tokens"), "is below min_tokens", "nothing could match")


def _token_count(value: TokenCount | None, path: Path, report: Report) -> int | None:
    if value is None:
        return None
    try:
        return parse_token_count(value)
    except ValueError:
        what = f"{report.quote(path)} is not a number of tokens"
        report.add(path, what, mend="write it like 1000, 24K or 1.5M, not negative")
        return None


def _check_decision(
    decision: Decision, models: set[str], declared: Declared, path: Path, report: Report
) -> None:
    if decision.tier < 0:
        report.add((*path, "tier"), "must not be negative")
    if decision.rules != RuleNode():
        _check_rule(decision.rules, declared, (*path, "rules"), report, is_root=True)
    for at, ref in enumerate(decision.modelRefs):
        place = (*path, "modelRefs", at)
        check_model_name((*place, "model"), ref.model, models, report)
        if ref.weight < 0:
            report.add((*place, "weight"), "must not be negative")
        if ref.use_reasoning:
            what = "true is not served by this version"
            report.add((*place, "use_reasoning"), what, mend="remove it or write false")
    algorithm = decision.algorithm.type
    check_word((*path, "algorithm", "type"), "Algorithm.type", algorithm, ("static",), report)
    _check_annotations(decision.annotations, (*path, "annotations"), report)


def _check_annotations(annotations: Mapping[str, object], path: Path, report: Report) -> None:
    if len(annotations) > _MAX_ANNOTATIONS:
        report.add(path, f"has more than {_MAX_ANNOTATIONS} keys")
    if len(json.dumps(annotations, ensure_ascii=False).encode()) > _MAX_ANNOTATIONS_BYTES:
        report.add(path, f"is larger than {_MAX_ANNOTATIONS_BYTES} bytes of JSON")


def _check_rule(
    node: RuleNode, declared: Declared, path: Path, report: Report, *, is_root: bool = False
) -> None:
    is_leaf = node.type is not None or node.name is not None
    if is_leaf and (node.operator is not None or node.conditions is not None):
        why = "`type` and `name` make a leaf, `operator` and `conditions` a composite"
        report.add(path, "mixes a leaf and a composite", why, "split it into two nodes")
    elif is_leaf:
        _check_leaf(node, declared, path, report)
    else:
        _check_composite(node, declared, path, report, is_root=is_root)


def _check_leaf(node: RuleNode, declared: Declared, path: Path, report: Report) -> None:
    if not node.type:
        report.add((*path, "type"), "is missing", "a leaf names a signal by type and name")
        return
    if not check_word((*path, "type"), "RuleNode.type", node.type, declared, report):
        return
    if not node.name:
        report.add((*path, "name"), "is missing", "a leaf names a signal by type and name")
        return
    collection = (*_SIGNALS, _COLLECTIONS[node.type])
    if node.name not in declared[node.type] and report.is_whole(collection):
        place = (*path, "name")
        report.add(
            place,
            f"{report.quote(place)} is not declared under routing.signals.{collection[-1]}",
            mend="declare it there or correct the name",
        )


def _check_composite(
    node: RuleNode, declared: Declared, path: Path, report: Report, *, is_root: bool
) -> None:
    conditions = node.conditions or ()
    if node.operator is None:
        mend = "write AND, OR or NOT"
        report.add((*path, "operator"), "is missing", "readers disagree on its default", mend)
    elif check_word(
        (*path, "operator"), "RuleNode.operator", node.operator.upper(), RULE_OPERATORS, report
    ):
        _check_arity(node.operator.upper(), len(conditions), path, report, is_root=is_root)
    for at, condition in enumerate(conditions):
        _check_rule(condition, declared, (*path, "conditions", at), report)


def _check_arity(operator: str, count: int, path: Path, report: Report, *, is_root: bool) -> None:
    if operator == "NOT" and count != 1:
        report.add(path, f"NOT takes one condition, not {count}", mend="put them under AND or OR")
    elif not count and not is_root:
        why = "only the rules of a decision may have none"
        report.add(path, f"{operator} has no conditions", why)
