"""Checks of signals that need a model."""

from vsr.config.checks import suggestion
from vsr.config.document.model_catalog import ModelCatalog
from vsr.config.document.signals import Signals
from vsr.config.document.signals_learned import (
    ClassifierSignalRule,
    ComplexityRule,
    EmbeddingRule,
    KBSignalRule,
    SafetyRule,
)
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.declared import BUILT_IN_KBS

_FEWEST_LABELS = 2


def check_learned_signals(
    signals: Signals, catalog: ModelCatalog, root: Path, report: Report
) -> None:
    """Report the faults of every rule; names are checked elsewhere."""
    for at, embedding in enumerate(signals.embeddings):
        _check_embedding(embedding, (*root, "embeddings", at), report)
    for at, complexity in enumerate(signals.complexity):
        _check_complexity(complexity, (*root, "complexity", at), report)
    for at, jailbreak in enumerate(signals.jailbreak):
        if jailbreak.method == "contrastive" and not jailbreak.jailbreak_patterns:
            why = "the contrastive method compares with them"
            place: Path = (*root, "jailbreak", at, "jailbreak_patterns")
            report.add(place, "is missing or empty", why, "give at least one")
    for at, safety in enumerate(signals.safety):
        _check_safety(safety, (*root, "safety", at), report)
    for at, kb in enumerate(signals.kb):
        _check_kb(kb, catalog, (*root, "kb", at), report)
    for at, classifier in enumerate(signals.classifiers):
        _check_classifier(classifier, catalog, (*root, "classifiers", at), report)


def _check_embedding(rule: EmbeddingRule, path: Path, report: Report) -> None:
    if not rule.candidates and not rule.image_candidates:
        report.add((*path, "candidates"), "is missing or empty", mend="give at least one")
    has_negatives = bool(rule.negative_candidates or rule.negative_image_candidates)
    limit = 2 if has_negatives else 1
    if rule.threshold is not None and abs(rule.threshold) > limit:
        report.add((*path, "threshold"), f"must be from -{limit} to {limit}")


def _check_complexity(rule: ComplexityRule, path: Path, report: Report) -> None:
    rising = rule.hard_above is not None or rule.easy_below is not None
    falling = rule.hard_below is not None or rule.easy_above is not None
    if rising and falling:
        why = "hard_above and easy_below go together, and hard_below and easy_above"
        report.add(path, "mixes cutoffs of two directions", why, "keep one pair")


def _check_safety(rule: SafetyRule, path: Path, report: Report) -> None:
    _check_labels(rule.labels, (*path, "labels"), report)
    if not rule.unsafe_labels or not set(rule.unsafe_labels) < set(rule.labels):
        what = "must be some of the labels, not all"
        report.add((*path, "unsafe_labels"), what, mend="list those that mean danger")
    _check_threshold(rule.threshold, (*path, "threshold"), report)
    hazard = rule.hazard
    if hazard is None:
        return
    place = (*path, "hazard")
    _check_labels(hazard.labels, (*place, "labels"), report)
    if not hazard.categories or not set(hazard.categories) <= set(hazard.labels):
        what = "must be one or more of the labels"
        report.add((*place, "categories"), what, mend="list those to look for")
    _check_threshold(hazard.threshold, (*place, "threshold"), report)


def _check_threshold(threshold: float | None, path: Path, report: Report) -> None:
    if threshold is not None and not 0 < threshold <= 1:
        report.add(path, "must be above 0 and at most 1")


def _check_labels(labels: tuple[str, ...], path: Path, report: Report) -> None:
    if len(labels) < _FEWEST_LABELS:
        report.add(path, "needs at least two labels")
    for at, label in enumerate(labels):
        if not label.strip() or label != label.strip() or ":" in label or label in labels[:at]:
            why = "a label is not blank, has no outer blanks and no colon, and stands once"
            report.add((*path, at), "can't be a label", why)


def _check_kb(rule: KBSignalRule, catalog: ModelCatalog, path: Path, report: Report) -> None:
    for key, value in (("kb", rule.kb), ("target", rule.target.value)):
        if not value.strip():
            report.add((*path, key), "is missing or blank", mend="add it")
    if rule.target.kind is None and rule.target.value:
        report.add((*path, "target", "kind"), "is missing", mend="write label or group")
    bases = {base.name: base for base in catalog.kbs or ()}
    if rule.kb and rule.kb not in bases and rule.kb not in BUILT_IN_KBS:
        place = (*path, "kb")
        what = f"{report.quote(place)} is not the name of a knowledge base"
        report.add(place, what, mend=suggestion(rule.kb, (*bases, *BUILT_IN_KBS)))
    base = bases.get(rule.kb)
    if base is not None and rule.target.kind == "group" and rule.target.value not in base.groups:
        place = (*path, "target", "value")
        what = f"{report.quote(place)} is not a group of {rule.kb!r}"
        report.add(place, what, mend=suggestion(rule.target.value, base.groups))


def _check_classifier(
    rule: ClassifierSignalRule, catalog: ModelCatalog, path: Path, report: Report
) -> None:
    if ":" in rule.name:
        report.add((*path, "name"), "must not hold a colon")
    match rule.type:
        case None:
            mend = "write local, llm or sequence_classifier"
            report.add((*path, "type"), "is missing", mend=mend)
        case "local":
            _check_local(rule, path, report)
        case "llm":
            if not (rule.instructions or "").strip():
                why = "a helper model needs them"
                report.add((*path, "instructions"), "is missing or blank", why, "add it")
            _check_helper(rule, catalog, (*path, "model"), report)
        case "sequence_classifier":
            _check_labels(rule.labels, (*path, "labels"), report)
            _check_helper(rule, catalog, (*path, "model"), report)


def _check_local(rule: ClassifierSignalRule, path: Path, report: Report) -> None:
    _check_labels(rule.labels, (*path, "labels"), report)
    for key, value in (("model", rule.model), ("instructions", rule.instructions)):
        if value is not None:
            why = "a local classifier has a model_path"
            report.add((*path, key), "is out of place", why, "remove it")


def _check_helper(
    rule: ClassifierSignalRule, catalog: ModelCatalog, path: Path, report: Report
) -> None:
    """The model is an external one that may classify."""
    if not (rule.model or "").strip():
        why = "it says which external model classifies"
        report.add(path, "is missing or blank", why, "name one of global.model_catalog.external")
        return
    known = [
        model.name
        for model in catalog.external
        if model.name is not None and model.model_role == "classification"
    ]
    if rule.model not in known:
        what = f"{report.quote(path)} is not an external model with the role classification"
        report.add(path, what, mend=suggestion(rule.model or "", known))
