"""Checks of the block of `fusion`."""

from vsr.config.checks import check_word
from vsr.config.document.decisions import Decision
from vsr.config.document.looper_algorithms import FusionAlgorithmConfig
from vsr.config.looper_panels import panel_of
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.models import Models, check_model_name


def check_fusion(
    decision: Decision, block: FusionAlgorithmConfig, path: Path, models: Models, report: Report
) -> None:
    """Report every fault of the block at `path`."""
    panel = panel_of(decision, block)
    if block.model is not None:
        _check_member((*path, "model"), block.model, models, report)
    for at, name in enumerate(block.analysis_models):
        if name.strip():
            _check_member((*path, "analysis_models", at), name.strip(), models, report)
    _check_overrides(block, panel, path, report)
    least = block.min_successful_responses or 0
    if panel and least > len(panel):
        why = f"the panel has {len(panel)}"
        report.add((*path, "min_successful_responses"), "is more than the panel", why)
    if block.analysis_template is not None and block.analysis_mode in {"one_call", "none"}:
        why = "only separate analyses have one"
        report.add((*path, "analysis_template"), "is out of place", why, "remove it")
    _check_quorum(block, panel, path, models, report)
    if block.grounding is not None and block.grounding.on_error is not None:
        place = (*path, "grounding", "on_error")
        check_word(place, block.grounding.on_error, ("skip", "fail"), report)


def _check_member(path: Path, name: str, models: Models, report: Report) -> None:
    """A judge or a panel's model is a model, an adapter, and not the algorithm itself."""
    if models.loopers.get(name) == "fusion":
        what = f"{report.quote(path)} is the algorithm itself"
        report.add(path, what, "it would call itself without end", "name a model")
    elif name not in models.loras:
        check_model_name(path, name, models, report)


def _check_overrides(
    block: FusionAlgorithmConfig, panel: tuple[str, ...], path: Path, report: Report
) -> None:
    seen: set[str] = set()
    for at, override in enumerate(block.analysis_overrides):
        place, name = (*path, "analysis_overrides", at, "model"), override.model.strip()
        if not name:
            report.add(place, "is missing or blank", mend="name a model of the panel")
        elif name in seen:
            report.add(place, f"{report.quote(place)} is given twice", mend="keep one of the two")
        elif panel and name not in panel:
            what = "names no model of the panel: it counts only for requests that bring their own"
            report.warn(place, what, "remove it, or add the model to the panel")
        seen.add(name)


def _check_quorum(
    block: FusionAlgorithmConfig,
    panel: tuple[str, ...],
    path: Path,
    models: Models,
    report: Report,
) -> None:
    target = block.quorum_fallback_target
    place = (*path, "quorum_fallback_target")
    if block.quorum_failure_policy == "fallback" and not target:
        report.add(place, "is missing", "quorum_failure_policy is fallback", "name a model")
        return
    if target is None:
        return
    if block.quorum_failure_policy != "fallback":
        why = "only quorum_failure_policy: fallback calls it"
        report.add(place, "is out of place", why, "remove it or write that")
    _check_member(place, target, models, report)
    if target in panel:
        report.add(place, "is a member of the panel", "it stands in for it", "name another")
