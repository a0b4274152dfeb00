"""Checks of fallback policies and of what decisions change of them."""

from vsr.config.document.fallback import FallbackOverride, FallbackPolicy
from vsr.config.position import Path
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report


def check_fallback(policy: FallbackPolicy | FallbackOverride, path: Path, report: Report) -> None:
    """An attempt takes no longer than all attempts together."""
    keys = ((*path, "total_timeout"), (*path, "per_attempt_timeout"))
    if any(report.is_broken(key) for key in keys):
        return
    total, attempt = period_s(policy.total_timeout), period_s(policy.per_attempt_timeout)
    if 0 < total < attempt:
        why = f"that is {total:g} s"
        report.add(keys[1], "is longer than total_timeout", why, "shorten it")


def period_s(period: str | int | None) -> float:
    """Return the seconds of a duration or of nanoseconds; 0 for an omitted one."""
    if period is None:
        return 0.0
    return period / 1e9 if isinstance(period, int) else parse_duration_s(period)
