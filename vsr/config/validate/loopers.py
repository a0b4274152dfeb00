"""Checks of the blocks of algorithms that ask several models."""

import math
from collections.abc import Iterator

from vsr.config.checks import check_names, suggestion
from vsr.config.document.algorithms import Algorithm
from vsr.config.document.looper_algorithms import (
    ConfidenceAlgorithmConfig,
    FusionAlgorithmConfig,
    ReMoMAlgorithmConfig,
    WorkflowRoleConfig,
    WorkflowsAlgorithmConfig,
)
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.models import Models, check_model_name


def check_looper(
    algorithm: Algorithm, refs: set[str], path: Path, models: Models, report: Report
) -> None:
    """Report every fault of the algorithm's block.

    Args:
        algorithm: its type is one that asks several models.
        refs: the decision's candidates.
        path: of the algorithm.
        models: the document's.
        report: gets the faults.
    """
    if algorithm.confidence is not None:
        _check_confidence(algorithm.confidence, (*path, "confidence"), report)
    if algorithm.type == "remom":
        _check_remom(algorithm.remom, refs, (*path, "remom"), report)
    if algorithm.fusion is not None:
        _check_fusion(algorithm.fusion, (*path, "fusion"), models, report)
    if algorithm.workflows is not None:
        _check_workflows(algorithm.workflows, refs, (*path, "workflows"), models, report)


def _check_confidence(block: ConfidenceAlgorithmConfig, path: Path, report: Report) -> None:
    if block.threshold is not None and not 0 <= block.threshold <= 1:
        report.add((*path, "threshold"), "must be from 0 to 1")
    weights = block.hybrid_weights
    if weights is not None:
        total = (weights.logprob_weight or 0.5) + (weights.margin_weight or 0.5)
        if not math.isclose(total, 1, abs_tol=1e-6):
            report.add((*path, "hybrid_weights"), "must sum to 1", "0 counts as 0.5")
    if block.confidence_method != "automix_entailment":
        for key in ("verifier_server_url", "verifier_timeout_seconds"):
            if getattr(block, key) is not None:
                why = "only automix_entailment asks a verifier"
                report.add((*path, key), "is out of place", why, "remove it")


def _check_remom(
    block: ReMoMAlgorithmConfig | None, refs: set[str], path: Path, report: Report
) -> None:
    if block is None or not block.breadth_schedule:
        why = "it says how many calls each round makes"
        report.add((*path, "breadth_schedule"), "is missing or empty", why, "write [4, 2]")
        return
    if block.synthesis_model is not None:
        _check_member(block.synthesis_model, refs, (*path, "synthesis_model"), report)


def _check_fusion(block: FusionAlgorithmConfig, path: Path, models: Models, report: Report) -> None:
    if block.model is not None:
        check_model_name((*path, "model"), block.model, models, report)
    for at, name in enumerate(block.analysis_models):
        check_model_name((*path, "analysis_models", at), name, models, report)
    for at, override in enumerate(block.analysis_overrides):
        place = (*path, "analysis_overrides", at, "model")
        if block.analysis_models and override.model not in block.analysis_models:
            mend = suggestion(override.model, block.analysis_models)
            report.add(place, "is not one of analysis_models", mend=mend)
    least = block.min_successful_responses or 0
    if block.analysis_models and least > len(block.analysis_models):
        why = f"the panel has {len(block.analysis_models)}"
        report.add((*path, "min_successful_responses"), "is more than the panel", why)
    if block.analysis_template is not None and block.analysis_mode in {"one_call", "none"}:
        why = "only separate analyses have one"
        report.add((*path, "analysis_template"), "is out of place", why, "remove it")
    _check_quorum(block, path, models, report)


def _check_quorum(block: FusionAlgorithmConfig, path: Path, models: Models, report: Report) -> None:
    target = block.quorum_fallback_target
    place = (*path, "quorum_fallback_target")
    if block.quorum_failure_policy == "fallback" and not target:
        report.add(place, "is missing", "quorum_failure_policy is fallback", "name a model")
    elif target is not None:
        check_model_name(place, target, models, report)
        if target in block.analysis_models:
            report.add(place, "is a member of the panel", "it stands in for it", "name another")


def _check_workflows(
    block: WorkflowsAlgorithmConfig,
    refs: set[str],
    path: Path,
    models: Models,
    report: Report,
) -> None:
    if block.mode == "dynamic":
        if block.roles:
            report.add((*path, "roles"), "is out of place", "a planner makes them", "remove it")
        # Without any candidates a decision waits for its models, the planner's too.
        if refs and (block.planner is None or not block.planner.model):
            why = "a dynamic workflow is planned by a model"
            report.add((*path, "planner", "model"), "is missing", why, "name one")
    elif block.mode == "static" and not block.roles:
        report.add((*path, "roles"), "is missing or empty", "a static workflow has some")
    if block.planner is not None and block.planner.model:
        check_model_name((*path, "planner", "model"), block.planner.model, models, report)
    if block.final is not None and block.final.model:
        _check_member(block.final.model, refs, (*path, "final", "model"), report)
    _check_roles(block.roles, refs, (*path, "roles"), report)
    for what, why in _quorum_faults(block):
        report.add((*path, "min_successful_responses"), what, why, "lower it")


def _check_roles(
    roles: tuple[WorkflowRoleConfig, ...], refs: set[str], path: Path, report: Report
) -> None:
    check_names((((*path, at, "name"), role.name) for at, role in enumerate(roles)), report)
    earlier: set[str] = set()
    for at, role in enumerate(roles):
        for index, name in enumerate(role.models):
            _check_member(name, refs, (*path, at, "models", index), report)
        for index, source in enumerate(role.access_list):
            place = (*path, at, "access_list", index)
            if source.partition(":")[0] not in earlier and source not in earlier:
                what = f"{report.quote(place)} is not an earlier role"
                report.add(place, what, mend="name a role that stands before this one")
        earlier.add(role.name)


def _quorum_faults(block: WorkflowsAlgorithmConfig) -> Iterator[tuple[str, str]]:
    least = block.min_successful_responses or 0
    if least > (block.max_parallel or 2):
        yield "is more than max_parallel", f"that is {block.max_parallel or 2}"
    for role in block.roles:
        if least > len(role.models) > 0:
            yield "is more than a role has", f"{role.name!r} has {len(role.models)}"


def _check_member(name: str, refs: set[str], path: Path, report: Report) -> None:
    if name not in refs:
        what = f"{report.quote(path)} is not one of modelRefs"
        report.add(path, what, mend=suggestion(name, refs))
