"""Active health checks: what their results make of one endpoint, and when the next is due."""

from enum import StrEnum
from typing import assert_never

import attrs

from vsr.resources.reliability import HealthCheck
from vsr.upstream.policy.host import Host

_PASSING_STATUS = 200


class CheckResult(StrEnum):
    """How one check ended; the values are those of the check metric's label `outcome`."""

    SUCCESS = "success"
    WRONG_STATUS = "status"
    NETWORK_ERROR = "network"
    """No response: not connected, broken off, or not within the check's timeout."""


def check_result(status: int | None) -> CheckResult:
    """Return what a check's response status means; None: there was no response."""
    if status is None:
        return CheckResult.NETWORK_ERROR
    return CheckResult.SUCCESS if status == _PASSING_STATUS else CheckResult.WRONG_STATUS


@attrs.define(eq=False)
class HealthState:
    """Decides whether one endpoint under active checks is healthy, and writes `Host.is_healthy`.

    The endpoint is unhealthy from the moment this is made until a check passes.

    Source: the reference, health checks; Envoy, "Health checking", for how results add up.
    """

    settings: HealthCheck
    host: Host
    is_pending: bool = attrs.field(default=True, init=False)
    """Whether no check has ended yet."""
    _contrary: int = attrs.field(default=0, init=False)
    """Results in a row that speak against what the endpoint counts as."""
    _checked_at: float = attrs.field(default=0.0, init=False)
    """When the last check ended."""

    def __attrs_post_init__(self) -> None:
        self.host.is_healthy = False

    def record(self, result: CheckResult, now: float) -> bool:
        """Take in the end of a check at `now`; return whether `Host.is_healthy` changed.

        The first check decides alone, whatever the thresholds.
        """
        is_first = self.is_pending
        self.is_pending = False
        self._checked_at = now
        has_passed = result is CheckResult.SUCCESS
        if has_passed == self.host.is_healthy:
            self._contrary = 0
            return False
        self._contrary += 1
        if self._contrary < self._needed(result) and not is_first:
            return False
        self._contrary = 0
        self.host.is_healthy = has_passed
        return True

    def next_at(self, now: float, *, has_traffic: bool) -> float:
        """Return when the next check is due, in monotonic seconds.

        Args:
            now: when the first check is due.
            has_traffic: whether the cluster has ever carried a request.
        """
        if self.is_pending:
            return now
        settings = self.settings
        interval_s = settings.interval_s if has_traffic else settings.no_traffic_interval_s
        return self._checked_at + interval_s

    def _needed(self, result: CheckResult) -> int:
        """Return how many contrary results in a row, `result` the last, change the endpoint."""
        match result:
            case CheckResult.SUCCESS:
                return self.settings.healthy_threshold
            case CheckResult.WRONG_STATUS:
                return 1
            case CheckResult.NETWORK_ERROR:
                return self.settings.unhealthy_threshold
            case _:
                assert_never(result)
