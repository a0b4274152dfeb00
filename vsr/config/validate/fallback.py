"""Checks of fallback policies, of what decisions change of them, and of what comes out."""

import msgspec

from vsr.config.compile.fallback import Layer, period_s
from vsr.config.document.fallback import CircuitBreakerConfig, FallbackPolicy, LastResort
from vsr.config.document.root import Document
from vsr.config.position import Path, dotted
from vsr.config.report import Report
from vsr.config.validate.layers import profiles_of
from vsr.resources import reliability as resources

_DEFAULTS = resources.FallbackPolicy()
_LONGEST_NS = 2**63 - 1
# Source: RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5: these responses have no content.
_WITHOUT_CONTENT = frozenset({204, 205, 304})
_PERIODS = ("total_timeout", "per_attempt_timeout")
_KEPT_BY_NOTHING = ("max_attempts", *_PERIODS, "retryable_status_codes", "triggers")
"""Keys whose 0 or empty list leaves the outer value, as if they were not there."""


class _Limit(msgspec.Struct, frozen=True):
    """A timeout as the layers so far give it."""

    seconds: float
    """0: unknown, since what was written can't be read."""
    origin: str = "by default"


class _Merged(msgspec.Struct, frozen=True):
    """What the layers so far say, as far as it matters to the next one."""

    is_enabled: bool = _DEFAULTS.enabled
    total: _Limit = _Limit(_DEFAULTS.total_timeout_s)
    attempt: _Limit = _Limit(_DEFAULTS.per_attempt_timeout_s)


def check_fallbacks(document: Document, report: Report) -> None:
    """Report every fault in the policies of the Router and its recipes, and of decisions."""
    router: Path = ("global", "router", "fallback")
    outer = _check_layer(document.global_.router.fallback, router, _Merged(), report)
    for path, routing in profiles_of(document):
        recipe = _check_layer(routing.fallback, (*path, "fallback"), outer, report)
        for at, decision in enumerate(routing.decisions):
            place = (*path, "decisions", at, "fallback")
            _check_layer(decision.fallback, place, recipe, report)


def _check_layer(layer: Layer | None, path: Path, outer: _Merged, report: Report) -> _Merged:
    """Report the faults of one layer and return what it makes of the outer ones."""
    if layer is None:
        return outer
    merged = _Merged(
        is_enabled=outer.is_enabled if layer.enabled is None else layer.enabled,
        total=_limit(layer.total_timeout, (*path, "total_timeout"), outer.total, report),
        attempt=_limit(
            layer.per_attempt_timeout, (*path, "per_attempt_timeout"), outer.attempt, report
        ),
    )
    if 0 < merged.total.seconds < merged.attempt.seconds:
        _report_timeouts(merged, outer, path, report)
    _check_nothings(layer, path, merged, report)
    if isinstance(layer, FallbackPolicy) and layer.circuit_breaker is not None:
        _check_breaker(layer.circuit_breaker, (*path, "circuit_breaker"), report)
    if layer.last_resort is not None:
        _check_last_resort(layer.last_resort, (*path, "last_resort"), report)
    return merged


def _limit(period: str | int | None, path: Path, outer: _Limit, report: Report) -> _Limit:
    seconds = _readable_s(period, path, report)
    if seconds is None:
        return _Limit(0)
    return _Limit(seconds, f"in {dotted(path[:-1])}") if seconds else outer


def _readable_s(period: str | int | None, path: Path, report: Report) -> float | None:
    """Return the seconds of what was written, None if that is faulty."""
    if isinstance(period, int) and period > _LONGEST_NS:
        report.add_broken(path, "is too long", "a number is nanoseconds", "write it like 30s")
    return None if report.is_broken(path) else period_s(period)


def _report_timeouts(merged: _Merged, outer: _Merged, path: Path, report: Report) -> None:
    """An attempt takes no longer than all attempts together; where one was changed, it says so."""
    if merged.attempt != outer.attempt:
        is_own = merged.total != outer.total
        why = f"that is {merged.total.seconds:g} s{'' if is_own else ' ' + merged.total.origin}"
        report.add(
            (*path, "per_attempt_timeout"), "is longer than total_timeout", why, "shorten it"
        )
    elif merged.total != outer.total:
        why = f"that is {merged.attempt.seconds:g} s {merged.attempt.origin}"
        mend = "give per_attempt_timeout too"
        report.add((*path, "total_timeout"), "is shorter than per_attempt_timeout", why, mend)


def _check_nothings(layer: Layer, path: Path, merged: _Merged, report: Report) -> None:
    for key in _KEPT_BY_NOTHING:
        place = (*path, key)
        value = getattr(layer, key)
        if key == "max_attempts" and value == 0 and _is_enabled_policy(layer, merged):
            why = "fallback is enabled, and the first call counts"
            report.add(place, "must be at least 1", why, "write 2 or more, or enabled: false")
        elif not value or (key in _PERIODS and _readable_s(value, place, report) == 0):
            _warn_of_nothing(place, report)


def _is_enabled_policy(layer: Layer, merged: _Merged) -> bool:
    return isinstance(layer, FallbackPolicy) and merged.is_enabled


def _check_breaker(block: CircuitBreakerConfig, path: Path, report: Report) -> None:
    for key in ("consecutive_failures", "half_open_probes"):
        if getattr(block, key) == 0:
            _warn_of_nothing((*path, key), report)
    place = (*path, "cooldown_period")
    if _readable_s(block.cooldown_period, place, report) == 0:
        _warn_of_nothing(place, report)


def _warn_of_nothing(path: Path, report: Report) -> None:
    """Say that 0 or an empty list, if it was written, leaves the outer value."""
    if report.lines.has(path):
        what = f"has no effect: {report.quote(path)} keeps what the layer outside says"
        report.warn(path, what, "remove it")


def _check_last_resort(block: LastResort, path: Path, report: Report) -> None:
    if block.status in _WITHOUT_CONTENT:
        why = f"a response of status {block.status} has no content"
        report.add((*path, "status"), "can't carry the answer", why, "use another")
