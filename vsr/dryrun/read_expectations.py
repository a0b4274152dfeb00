"""What a scenario expects of its run."""

import re
from typing import cast

from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.scalars import wrong_type
from vsr.dryrun.read_times import read_time
from vsr.dryrun.scenario import Amounts, Expectations, TextTest
from vsr.dryrun.written import WrittenExpectations

_TOTAL = "total"
_TESTS = ("equals", "contains", "matches")


def read_expectations(
    written: WrittenExpectations | None, path: Path, report: Report
) -> Expectations | None:
    """Return what is expected; None where nothing is."""
    if written is None:
        return None
    calls, by_model = _calls(cast("Value", written.calls), (*path, "calls"), report)
    return Expectations(
        status=written.status,
        result=_text_test(cast("Value", written.result), (*path, "result"), report),
        calls=calls,
        calls_of=by_model,
        attempts=_amounts(cast("Value", written.attempts), (*path, "attempts"), report),
        order=written.order,
        never_called=written.never_called,
        max_cost=written.max_cost,
        max_tokens=written.max_tokens,
        latency_s=read_time(cast("Value", written.latency), (*path, "latency"), report),
        cancelled=written.cancelled,
        cancelled_within_s=read_time(
            cast("Value", written.cancelled_within), (*path, "cancelled_within"), report
        ),
    )


def _calls(value: Value, path: Path, report: Report) -> tuple[Amounts | None, dict[str, Amounts]]:
    if not isinstance(value, dict) or {"min", "max"} & value.keys():
        return _amounts(value, path, report), {}
    by_model = {key: _amounts(item, (*path, key), report) for key, item in value.items()}
    total = by_model.pop(_TOTAL, None)
    return total, {key: amounts for key, amounts in by_model.items() if amounts is not None}


def _amounts(value: Value, path: Path, report: Report) -> Amounts | None:
    """Return a number, or a range of them as `{min: 1, max: 3}`."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return Amounts(_count(value, path, report), value)
    if not isinstance(value, dict) or not value or value.keys() - {"min", "max"}:
        wrong_type("a whole number, or a mapping with min and max", value, path, report)
        return None
    bounds = {key: _count(item, (*path, key), report) for key, item in value.items()}
    return Amounts(bounds.get("min"), bounds.get("max"))


def _count(value: Value, path: Path, report: Report) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        wrong_type("a whole number", value, path, report)
        return 0
    if value < 0:
        report.add_broken(path, "must not be negative")
    return value


def _text_test(value: Value, path: Path, report: Report) -> TextTest | None:
    if value is None:
        return None
    if isinstance(value, str):
        return TextTest(equals=str(value))
    if not isinstance(value, dict) or not value or value.keys() - set(_TESTS):
        wrong_type(f"a text, or a mapping with {', '.join(_TESTS)}", value, path, report)
        return None
    for key, item in value.items():
        if not isinstance(item, str):
            wrong_type("text", item, (*path, key), report)
            return None
    tests = {key: str(item) for key, item in value.items()}
    pattern = tests.get("matches")
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            report.add_broken((*path, "matches"), "is no regular expression", str(error))
            return None
    return TextTest(tests.get("equals"), tests.get("contains"), pattern)
