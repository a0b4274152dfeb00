"""Checks of reasoning: a model's behaviour, and what a candidate asks of it."""

from collections.abc import Iterator

from vsr.config.checks import suggestion
from vsr.config.document.decisions import ModelRef
from vsr.config.document.providers import Reasoning
from vsr.config.position import Path
from vsr.config.reasoning import family_of
from vsr.config.reasoning_families import REASONING_FAMILIES
from vsr.config.report import Report
from vsr.config.validate.models import Models
from vsr.resources.reasoning import ReasoningFamily, ReasoningMode

_EFFORT_KINDS = frozenset({"reasoning_effort", "top_level_reasoning_effort"})


def check_reasoning(reasoning: Reasoning, path: Path, report: Report) -> None:
    """The block names a known family, or says all that its type needs and no more."""
    if reasoning.family is not None:
        if reasoning != Reasoning(family=reasoning.family):
            why = "a family has its own behaviour"
            report.add(path, "mixes a family and a behaviour", why, "keep one of the two")
        if reasoning.family not in REASONING_FAMILIES:
            place = (*path, "family")
            what = f"{report.quote(place)} is not a known reasoning family"
            report.add(place, what, mend=suggestion(reasoning.family, REASONING_FAMILIES))
        return
    for key, value in (("type", reasoning.type), ("parameter", reasoning.parameter)):
        if not (value or "").strip():
            why = "a behaviour has a type and a parameter"
            report.add((*path, key), "is missing or blank", why, "add it or name a family")
    _check_levels(reasoning, path, report)
    _check_modes(reasoning, path, report)
    _check_activation(reasoning, path, report)


def _check_levels(reasoning: Reasoning, path: Path, report: Report) -> None:
    if reasoning.type in _EFFORT_KINDS and not reasoning.levels:
        why = f"reasoning of type {reasoning.type!r} is asked for by level"
        report.add((*path, "levels"), "is missing or empty", why, "list the levels")
    default = reasoning.default
    if default is not None and reasoning.levels and default not in reasoning.levels:
        place = (*path, "default")
        what = f"{report.quote(place)} is not one of the levels"
        report.add(place, what, mend=suggestion(default, reasoning.levels))


def _check_modes(reasoning: Reasoning, path: Path, report: Report) -> None:
    modes = reasoning.modes
    if modes and reasoning.default_mode is None:
        report.add((*path, "default_mode"), "is missing", "modes need a default", "add it")
    elif reasoning.default_mode is not None and reasoning.default_mode not in modes:
        what = "is not one of the modes" if modes else "needs modes"
        report.add((*path, "default_mode"), what, mend="list it under modes")
    if reasoning.disabled is not None and modes and "disabled" not in modes:
        what = "needs the mode disabled among the modes"
        report.add((*path, "disabled"), what, mend="list it or remove this")


def _check_activation(reasoning: Reasoning, path: Path, report: Report) -> None:
    switch = reasoning.activation_parameter
    if switch is not None:
        place = (*path, "activation_parameter")
        if reasoning.type != "reasoning_effort":
            why = "only reasoning of type 'reasoning_effort' has a switch beside the level"
            report.add(place, "is out of place", why, "remove it")
        elif not switch.strip() or switch == reasoning.parameter:
            report.add(place, "is blank or the parameter itself", mend="name another parameter")
    if reasoning.effort_flags and switch is None:
        why = "flags go with an activation_parameter"
        report.add((*path, "effort_flags"), "is out of place", why, "add it or remove the flags")
    taken = {reasoning.parameter, switch}
    for level, flag in reasoning.effort_flags.items():
        place = (*path, "effort_flags", level)
        if level not in reasoning.levels:
            report.add(place, "is not one of the levels", mend=suggestion(level, reasoning.levels))
        if not flag.strip() or flag in taken:
            report.add(place, "is blank or taken", mend="give every level a flag of its own")
        taken.add(flag)


def check_candidate(ref: ModelRef, path: Path, models: Models, report: Report) -> None:
    """What a candidate asks for is what its model's family can do."""
    mode = ref.reasoning_mode
    if mode is not None and ref.use_reasoning is (mode == "disabled"):
        why = f"reasoning_mode {mode!r} says otherwise"
        report.add((*path, "use_reasoning"), "contradicts the mode", why, "keep one of the two")
        return
    model = models.aliases.get(ref.model)
    family = None if model is None else family_of(model.reasoning)
    if family is not None:
        for key, what, why, mend in _contradictions(ref, family):
            report.add((*path, key), what, why, mend)


def _contradictions(ref: ModelRef, family: ReasoningFamily) -> Iterator[tuple[str, str, str, str]]:
    mode = ref.reasoning_mode
    effort = (ref.reasoning_effort or "").strip()
    is_off = mode == "disabled" or ref.use_reasoning is False
    if is_off and not family.may_disable:
        key = "reasoning_mode" if mode is not None else "use_reasoning"
        what = "can't turn off the reasoning of this model"
        mend = "use another model, or give its reasoning the mode disabled"
        yield key, what, "its family always reasons", mend
    elif mode is not None and ReasoningMode(mode) not in family.modes:
        known = ", ".join(family.modes) or "none"
        yield "reasoning_mode", "is no mode of this model", f"its modes are {known}", ""
    if not effort:
        return
    if is_off:
        yield "reasoning_effort", "needs reasoning", "it is off", "remove it or turn it on"
    elif not family.has_levels:
        why = "its family only has modes"
        yield "reasoning_effort", "can't be given to this model", why, "remove it"
    elif family.levels and effort not in family.levels:
        known = ", ".join(family.levels)
        yield "reasoning_effort", "is no level of this model", f"its levels are {known}", ""
