"""Checks of the block of `workflows`."""

from collections.abc import Iterator

from vsr.config.checks import check_names, check_word, suggestion
from vsr.config.document.looper_algorithms import WorkflowRoleConfig, WorkflowsAlgorithmConfig
from vsr.config.looper_roles import (
    DEFAULT_MAX_PARALLEL,
    DEFAULT_MAX_STEPS,
    Sources,
    step_id,
)
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.models import Models, check_model_name


def check_workflows(
    block: WorkflowsAlgorithmConfig | None,
    refs: set[str],
    path: Path,
    models: Models,
    report: Report,
) -> None:
    """Report every fault of the block at `path`; `refs` are the decision's candidates."""
    # Without any candidates a decision waits for its models, and so do planner and roles.
    if block is None:
        if refs:
            why = "a static workflow has some"
            report.add((*path, "roles"), "is missing or empty", why, "write them")
        return
    _check_mode(block, refs, path, report)
    if block.planner is not None and block.planner.model:
        _check_planner(block.planner.model, (*path, "planner", "model"), models, report)
    if block.final is not None and block.final.model:
        _check_member(block.final.model, refs, (*path, "final", "model"), report)
    check_word((*path, "on_error"), block.on_error, ("skip", "fail"), report)
    _check_roles(block, refs, (*path, "roles"), report)
    for what, why in _quorum_faults(block):
        report.add((*path, "min_successful_responses"), what, why, "lower it")


def _check_mode(
    block: WorkflowsAlgorithmConfig, refs: set[str], path: Path, report: Report
) -> None:
    if block.mode == "dynamic":
        if block.roles:
            report.add((*path, "roles"), "is out of place", "a planner makes them", "remove it")
        if refs and (block.planner is None or not block.planner.model):
            why = "a dynamic workflow is planned by a model"
            report.add((*path, "planner", "model"), "is missing", why, "name one")
    elif not block.roles and (refs or block.mode == "static"):
        report.add((*path, "roles"), "is missing or empty", "a static workflow has some")


def _check_planner(name: str, path: Path, models: Models, report: Report) -> None:
    if models.loopers.get(name) == "workflows":
        what = f"{report.quote(path)} is the algorithm itself"
        report.add(path, what, "it would call itself without end", "name a model")
    elif name not in models.loras:
        check_model_name(path, name, models, report)


def _check_roles(
    block: WorkflowsAlgorithmConfig, refs: set[str], path: Path, report: Report
) -> None:
    roles = block.roles
    check_names((((*path, at, "name"), role.name) for at, role in enumerate(roles)), report)
    most = block.max_steps or DEFAULT_MAX_STEPS
    if len(roles) > most:
        report.add(path, f"has {len(roles)} roles", f"max_steps is {most}", "raise it")
    ids: set[str] = set()
    earlier = Sources()
    for at, role in enumerate(roles):
        place = (*path, at)
        _check_models(block, role, refs, (*place, "models"), report)
        _check_access(role, earlier, (*place, "access_list"), report)
        own = step_id(role.name)
        # Of equal names, which are told already, nothing more is said.
        if own in ids and role.name not in {each.name for each in roles[:at]}:
            why = f"as a step it is {own!r}, like an earlier role"
            report.add((*place, "name"), "is taken", why, "rename one")
        ids.add(own)
        earlier.add(role)


def _check_models(
    block: WorkflowsAlgorithmConfig,
    role: WorkflowRoleConfig,
    refs: set[str],
    path: Path,
    report: Report,
) -> None:
    if not role.models:
        report.add(path, "is missing or empty", "somebody plays the role", "name a candidate")
    most = block.max_parallel or DEFAULT_MAX_PARALLEL
    if len(role.models) > most:
        report.add(path, f"names {len(role.models)} models", f"max_parallel is {most}", "raise it")
    for at, name in enumerate(role.models):
        if name in role.models[:at]:
            place = (*path, at)
            report.add(place, f"{report.quote(place)} is given twice", mend="keep one of the two")
        else:
            _check_member(name, refs, (*path, at), report)


def _check_access(role: WorkflowRoleConfig, earlier: Sources, path: Path, report: Report) -> None:
    seen: set[str] = set()
    for at, written in enumerate(role.access_list or ()):
        place, source = (*path, at), earlier.resolve(written)
        if not written.strip():
            report.add(place, "is blank", mend="remove it")
        elif source is None:
            what = f"{report.quote(place)} is not an earlier role"
            report.add(place, what, mend="name a role that stands before this one")
        elif source in seen:
            report.add(place, f"{report.quote(place)} is given twice", mend="keep one of the two")
        else:
            seen.add(source)


def _quorum_faults(block: WorkflowsAlgorithmConfig) -> Iterator[tuple[str, str]]:
    least = block.min_successful_responses or 0
    most = block.max_parallel or DEFAULT_MAX_PARALLEL
    if least > most:
        yield "is more than max_parallel", f"that is {most}"
    for role in block.roles:
        if least > len(role.models) > 0:
            yield "is more than a role has", f"{role.name!r} has {len(role.models)}"


def _check_member(name: str, refs: set[str], path: Path, report: Report) -> None:
    if name not in refs:
        what = f"{report.quote(path)} is not one of modelRefs"
        report.add(path, what, mend=suggestion(name, refs))
