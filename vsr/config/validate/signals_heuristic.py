"""Checks of signals that need no model."""

import re

import re2

from vsr.config.checks import check_each, check_word
from vsr.config.document.signals import Signals
from vsr.config.document.signals_heuristic import (
    ContextRule,
    ConversationRule,
    InputModalityRule,
    KeywordRule,
    LanguageRule,
    MetadataRule,
    ModalityRule,
    RoleBinding,
    StructureRule,
    StructureSource,
)
from vsr.config.names import is_regex_method
from vsr.config.position import Path
from vsr.config.quantities import parse_token_count
from vsr.config.report import Report
from vsr.config.validate.rules import check_predicate

KEYWORD_OPERATORS = ("AND", "OR", "NOR")
KEYWORD_METHODS = ("regex", "bm25", "ngram")
MODALITIES = ("AR", "DIFFUSION", "BOTH")
_LANGUAGE = re.compile(r"[a-z]{2}")
_FEWEST_MARKERS = 2


def check_heuristic_signals(signals: Signals, root: Path, report: Report) -> None:
    """Report the faults of every rule; names are checked elsewhere."""
    check_each(signals.keywords, _check_keyword_rule, (*root, "keywords"), report)
    check_each(signals.language, _check_language, (*root, "language"), report)
    check_each(signals.context, _check_context, (*root, "context"), report)
    check_each(signals.structure, _check_structure, (*root, "structure"), report)
    check_each(signals.conversation, _check_conversation, (*root, "conversation"), report)
    check_each(signals.metadata, _check_metadata, (*root, "metadata"), report)
    check_each(signals.role_bindings, _check_binding, (*root, "role_bindings"), report)
    check_each(signals.modality, _check_modality, (*root, "modality"), report)
    check_each(signals.input_modality, _check_part, (*root, "input_modality"), report)


def _check_keyword_rule(rule: KeywordRule, path: Path, report: Report) -> None:
    if not rule.operator:
        report.add((*path, "operator"), "is missing", mend="write AND, OR or NOR")
    else:
        check_word((*path, "operator"), rule.operator, KEYWORD_OPERATORS, report)
    if rule.method:
        check_word((*path, "method"), rule.method.lower(), KEYWORD_METHODS, report)
    if rule.ngram_arity == 1 or rule.ngram_arity < 0:
        report.add((*path, "ngram_arity"), "must be at least 2")
    if not rule.keywords:
        report.add((*path, "keywords"), "is missing or empty", mend="give at least one keyword")
    for index, keyword in enumerate(rule.keywords):
        _check_keyword(keyword, rule, (*path, "keywords", index), report)


def _check_keyword(keyword: str, rule: KeywordRule, path: Path, report: Report) -> None:
    if not keyword:
        # The reference takes it for a rule that always matches.
        report.warn(path, "is empty and matches every request", "leave out the rule instead")
    elif not keyword.strip():
        report.add(path, "is blank", "it would match almost everything", "remove it")
    elif is_regex_method(rule.method):
        check_expression(keyword, path, report)


def check_expression(text: str, path: Path, report: Report) -> None:
    """The text is a regular expression of RE2."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except re2.error as error:
        # The part after the colon repeats the expression.
        why = str(error.args[0] if error.args else "")
        why = why.removeprefix("b'").partition(":")[0]
        mend = "RE2 has no look-around and no back-references"
        report.add(path, "is not a regular expression", why, mend)


def _check_language(rule: LanguageRule, path: Path, report: Report) -> None:
    if rule.name and not _LANGUAGE.fullmatch(rule.name):
        place = (*path, "name")
        what = f"{report.quote(place)} is not a language code"
        report.add(place, what, mend="write two small letters such as en or zh")


def _check_context(rule: ContextRule, path: Path, report: Report) -> None:
    low, high = rule.min_tokens, rule.max_tokens
    if low is None and high is None:
        report.add(path, "has no limit", mend="give min_tokens or max_tokens")
    elif low is None or high is None or report.is_broken((*path, "min_tokens")):
        return
    elif not report.is_broken((*path, "max_tokens")) and (
        parse_token_count(low) > parse_token_count(high)
    ):
        report.add((*path, "max_tokens"), "is below min_tokens", "nothing could match")


def _check_structure(rule: StructureRule, path: Path, report: Report) -> None:
    feature, source = rule.feature, rule.feature.source
    place = (*path, "feature")
    for where, word in (
        ((*place, "type"), feature.type),
        ((*place, "source", "type"), source.type),
    ):
        if word is None:
            report.add(where, "is missing", mend="add it")
    if (feature.type == "sequence") != (source.type == "sequence"):
        why = "a sequence is counted in a source of type sequence, and nothing else is"
        report.add((*place, "source", "type"), "does not fit the feature", why)
    if source.type == "text_bytes" and feature.type != "count":
        report.add((*place, "type"), "must be count", "text_bytes can only be counted")
    if feature.type == "exists" and rule.predicate is not None:
        report.add((*path, "predicate"), "is out of place", "exists compares nothing", "remove it")
    elif rule.predicate is not None:
        check_predicate(rule.predicate, (*path, "predicate"), report)
    _check_source(source, (*place, "source"), report)


def _check_source(source: StructureSource, path: Path, report: Report) -> None:
    if source.type == "regex" and not source.pattern:
        report.add((*path, "pattern"), "is missing", "a source of type regex has one", "add it")
    elif source.type == "regex":
        check_expression(source.pattern or "", (*path, "pattern"), report)
    if source.type == "keyword_set" and not source.keywords:
        why = "a source of type keyword_set has some"
        report.add((*path, "keywords"), "is missing or empty", why, "add it")
    if source.type == "sequence" and not source.sequences:
        why = "a source of type sequence has some"
        report.add((*path, "sequences"), "is missing or empty", why, "add it")
    for at, markers in enumerate(source.sequences):
        if len(markers) < _FEWEST_MARKERS:
            report.add((*path, "sequences", at), "needs at least two markers")


def _check_conversation(rule: ConversationRule, path: Path, report: Report) -> None:
    place = (*path, "feature")
    feature, source = rule.feature, rule.feature.source
    for where, word in (
        ((*place, "type"), feature.type),
        ((*place, "source", "type"), source.type),
    ):
        if word is None:
            report.add(where, "is missing", mend="add it")
    if source.role is not None and source.type != "message":
        why = "only messages have a role"
        report.add((*place, "source", "role"), "is out of place", why, "remove it")
    if feature.type == "exists" and rule.predicate is not None:
        report.add((*path, "predicate"), "is out of place", "exists compares nothing", "remove it")
    elif rule.predicate is not None:
        check_predicate(rule.predicate, (*path, "predicate"), report)


def _check_metadata(rule: MetadataRule, path: Path, report: Report) -> None:
    if not rule.key.strip() or rule.key != rule.key.strip():
        report.add((*path, "key"), "is missing, blank or has outer blanks", mend="name a key")
    predicate = rule.predicate
    given = sum((predicate.equals is not None, bool(predicate.in_), predicate.exists is not None))
    if given != 1:
        what = "takes exactly one comparator"
        report.add((*path, "predicate"), what, mend="write equals, in or exists")


def _check_binding(rule: RoleBinding, path: Path, report: Report) -> None:
    if not rule.role.strip():
        report.add((*path, "role"), "is missing or blank", mend="name the role")
    if not rule.subjects:
        report.add((*path, "subjects"), "is missing or empty", mend="name a User or a Group")
    for at, subject in enumerate(rule.subjects):
        place = (*path, "subjects", at)
        if subject.kind is None:
            report.add((*place, "kind"), "is missing", mend="write User or Group")
        if not subject.name.strip():
            report.add((*place, "name"), "is missing or blank", mend="name the user or group")


def _check_modality(rule: ModalityRule, path: Path, report: Report) -> None:
    if rule.name:
        check_word((*path, "name"), rule.name, MODALITIES, report)


def _check_part(rule: InputModalityRule, path: Path, report: Report) -> None:
    if rule.modality is None:
        mend = "write text, image, audio or video"
        report.add((*path, "modality"), "is missing", mend=mend)
