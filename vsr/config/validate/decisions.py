"""Checks of decisions."""

import json
from collections.abc import Mapping

from vsr.config.checks import check_names
from vsr.config.document.decisions import (
    CandidateIterationConfig,
    Decision,
    DecisionAdaptationsConfig,
    EmitDirective,
)
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.algorithms import check_algorithm
from vsr.config.validate.candidates import check_model_ref
from vsr.config.validate.declared import Declared
from vsr.config.validate.models import Models, check_model_name
from vsr.config.validate.output_contracts import check_output_contract
from vsr.config.validate.plugins import check_plugins
from vsr.config.validate.rules import check_rules, has_leaf

# Source: the canonical configuration document, "routing.decisions[]".
_MAX_ANNOTATIONS = 32
_MAX_ANNOTATIONS_BYTES = 4_096
_WITH_CONTRACT = frozenset({"remom", "fusion", "workflows"})


def check_decisions(
    decisions: tuple[Decision, ...], declared: Declared, models: Models, report: Report
) -> None:
    """Report every fault of a recipe's decisions."""
    root = (*declared.path, "decisions")
    check_names((((*root, at, "name"), each.name) for at, each in enumerate(decisions)), report)
    for at, decision in enumerate(decisions):
        path = (*root, at)
        check_rules(decision.rules, declared, (*path, "rules"), report)
        for index, ref in enumerate(decision.modelRefs):
            check_model_ref(ref, (*path, "modelRefs", index), models, report)
        check_algorithm(decision, declared, (*path, "algorithm"), models, report)
        check_plugins(decision.plugins, (*path, "plugins"), models, report)
        _check_consequences(decision, path, models, report)


def _check_consequences(decision: Decision, path: Path, models: Models, report: Report) -> None:
    action = decision.action
    if action is not None:
        check_model_name((*path, "action", "destination"), action.destination, models, report)
        if not has_leaf(decision.rules, "jailbreak"):
            why = "an action answers to a jailbreak condition"
            report.add((*path, "action"), "is out of place", why, "add the condition to the rules")
    for at, iteration in enumerate(decision.candidateIterations):
        _check_iteration(iteration, decision, (*path, "candidateIterations", at), report)
    _check_emits(decision.emits, (*path, "emits"), report)
    if decision.adaptations is not None:
        _check_adaptations(decision.adaptations, (*path, "adaptations"), report)
    if decision.output_contract_spec is not None:
        place = (*path, "output_contract_spec")
        check_output_contract(decision.output_contract_spec, place, report)
    kind = "static" if decision.algorithm is None else decision.algorithm.type
    for key in ("output_contract", "output_contract_spec"):
        if getattr(decision, key) and kind not in _WITH_CONTRACT:
            # So it is in the reference, which takes such decisions.
            report.warn((*path, key), f"has no effect on the algorithm {kind!r}", "remove it")
    _check_annotations(decision.annotations, (*path, "annotations"), report)


def _check_iteration(
    iteration: CandidateIterationConfig, decision: Decision, path: Path, report: Report
) -> None:
    if not iteration.variable.strip():
        report.add((*path, "variable"), "is missing or blank", mend="name the variable")
    if iteration.source == "decision.candidates" and not decision.modelRefs:
        report.add((*path, "source"), "has nothing to go through", "modelRefs is empty")
    if iteration.source == "models" and not iteration.models:
        report.add((*path, "models"), "is missing or empty", "source says models", "list some")
    for at, output in enumerate(iteration.outputs):
        if output.value is not None and output.value != iteration.variable:
            report.add((*path, "outputs", at, "value"), "must be the variable")


def _check_emits(emits: tuple[EmitDirective, ...], path: Path, report: Report) -> None:
    if len(emits) > 1:
        report.add((*path, 1), "is one too many", "a decision emits at most one retention")
    for at, emit in enumerate(emits):
        retention = emit.retention
        if retention is not None and retention.drop and (retention.ttl_turns or 0) > 0:
            why = "what is dropped has no lifetime"
            report.add((*path, at, "retention", "ttl_turns"), "excludes drop", why, "keep one")


def _check_adaptations(adaptations: DecisionAdaptationsConfig, path: Path, report: Report) -> None:
    for key in ("adaptation", "protection"):
        part = getattr(adaptations, key)
        mode = "" if part is None else part.mode or ""
        if adaptations.mode == "bypass" and mode not in {"", "bypass"}:
            report.add((*path, key, "mode"), "must be bypass", "the decision bypasses learning")
        if adaptations.mode == "observe" and mode == "apply":
            report.add((*path, key, "mode"), "can't be apply", "the decision only observes")


def _check_annotations(annotations: Mapping[str, object], path: Path, report: Report) -> None:
    if len(annotations) > _MAX_ANNOTATIONS:
        report.add(path, f"has more than {_MAX_ANNOTATIONS} keys")
    if len(json.dumps(annotations, ensure_ascii=False).encode()) > _MAX_ANNOTATIONS_BYTES:
        report.add(path, f"is larger than {_MAX_ANNOTATIONS_BYTES} bytes of JSON")
