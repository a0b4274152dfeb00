"""What a step of a graph says of the timeouts and retries of its call."""

from collections.abc import Callable, Mapping
from typing import cast

from vsr.config.compile.reliability import optional_override
from vsr.config.document.decisions import DecisionReliability
from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.structure import read_class
from vsr.config.validate.reliability import check_retries
from vsr.resources.reliability import CallOverride

Complain = Callable[[Path, str, str, str], None]


def read_step_reliability(
    raw: Mapping[str, object], path: Path, complain: Complain
) -> CallOverride | None:
    """Return what a step's `reliability` changes, in the form that decisions have; None: nothing.

    Args:
        raw: as authored.
        path: of it in its document.
        complain: gets every fault: where, what, why, how to mend it.
    """
    report = Report("")
    block = read_class(DecisionReliability, cast("Value", raw), (), report)
    if not report.has_problems():
        check_retries(block, (), report)
    for problem in report.problems():
        place = (*path, problem.path) if problem.path else path
        complain(place, problem.what, problem.why, problem.mend)
    return None if report.has_problems() else optional_override(block)
