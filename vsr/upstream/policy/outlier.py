"""Outlier ejection: endpoints of one cluster that answer badly leave rotation for a while."""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

import attrs
import msgspec

from vsr.resources.reliability import OutlierDetection
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage

# Source of the three: Envoy, "Outlier detection", its defaults for success rates. Of fewer than
# five endpoints none can be so many sigmas off: the most is the square root of (count - 1).
_SUCCESS_RATE_MIN_HOSTS = 5
_SUCCESS_RATE_MIN_REQUESTS = 100
_SUCCESS_RATE_SIGMAS = 1.9

_FIRST_FAILED_STATUS = 500


class EjectionReason(StrEnum):
    """Why an endpoint was ejected; the values are those of the ejection metric's label."""

    CONSECUTIVE_5XX = "consecutive_5xx"
    SUCCESS_RATE = "success_rate"


class Ejection(msgspec.Struct, frozen=True):
    """One ejection that happened."""

    host: Host
    reason: EjectionReason


def observed_status(outcome: AttemptOutcome) -> int | None:
    """Return the status that an attempt, or its broken body, counts as; None: it is not observed.

    A response counts as what it says, at the time of its head. A body that breaks afterwards is a
    second outcome, without a status, and counts once more.

    Source: the reference, outlier ejection.
    """
    match outcome.failure:
        case None:
            return outcome.status
        case FailureKind.CONNECT_FAILURE | FailureKind.REFUSED_STREAM | FailureKind.RESET:
            return 503
        case FailureKind.TIMEOUT:
            return None if outcome.stage is TimeoutStage.IDLE else 504
        case FailureKind.OVERFLOW | FailureKind.NO_HEALTHY_UPSTREAM | FailureKind.CANCELLED:
            return None
        case _:
            assert_never(outcome.failure)


class OutlierDetector:
    """Decides which endpoints of one cluster are ejected, and writes their `Host.is_ejected`.

    An endpoint is ejected for failures in a row as soon as they are recorded, and for a success
    rate far below the others' by a sweep. It comes back by the first sweep after its time, or by
    a passing health check. Times are monotonic seconds.

    Source: the reference, outlier ejection; Envoy, "Outlier detection", for how they add up.
    """

    __slots__ = ("_threshold", "_trackers", "events", "next_sweep_at", "settings")

    def __init__(self, settings: OutlierDetection, hosts: Sequence[Host], now: float) -> None:
        self.settings = settings
        self._threshold = settings.consecutive_5xx
        self._trackers = {host: _Tracker() for host in hosts}
        self.next_sweep_at = now + settings.interval_s
        """When `sweep` is due."""
        self.events: list[Ejection] = []
        """Ejections in the order they happened; whoever reads them clears the list."""

    def record(self, host: Host, status: int, now: float) -> bool:
        """Count one observation of `host`; return whether that took it out of rotation.

        Args:
            host: one of the detector's own.
            status: of a response, or what `observed_status` makes of a failure.
            now: monotonic seconds.

        Raises:
            KeyError: `host` is not one of the detector's.
        """
        tracker = self._trackers[host]
        tracker.requests += 1
        if status < _FIRST_FAILED_STATUS:
            tracker.consecutive_5xx = 0
            return False
        tracker.failures += 1
        tracker.consecutive_5xx += 1
        # Equal, not "at least": a count that went past it while the endpoint was out of rotation
        # must not eject the endpoint by its first failure afterwards.
        if tracker.consecutive_5xx != self._threshold or not host.is_rotating:
            return False
        tracker.consecutive_5xx = 0
        return self._eject(host, EjectionReason.CONSECUTIVE_5XX, now)

    def sweep(self, now: float) -> bool:
        """Do what is due every `interval_s`; return whether rotation changed.

        An endpoint that is returned and at once ejected again counts as a change, though rotation
        ends as it began: there is an event to read.
        """
        self.next_sweep_at = now + self.settings.interval_s
        has_returned = self._return_elapsed(now)
        rates = self._close_tallies()
        has_ejected = self._eject_low_rates(rates, now)
        self._forgive(now)
        return has_returned or has_ejected

    def passed_check(self, host: Host, now: float) -> bool:
        """End the ejection of `host`, if any, since it passed an active health check.

        Returns:
            Whether rotation changed. It doesn't while the checks want more passes of an unhealthy
            endpoint, which is no longer ejected even so.
        """
        return host.is_ejected and self._end_ejection(host, self._trackers[host], now)

    def last_ejection(self, host: Host) -> tuple[EjectionReason | None, float]:
        """Return why an endpoint was ejected last, None if it never was, and until when."""
        tracker = self._trackers[host]
        return tracker.reason, tracker.ejected_until

    def _eject(self, host: Host, reason: EjectionReason, now: float) -> bool:
        """Eject a rotating endpoint if the cluster may lose one more; return whether it did."""
        settings = self.settings
        # What is quarantined is as good as not there: of the others some must be left.
        others = [other for other in self._trackers if not other.is_quarantined]
        out = 1 + sum(other.is_ejected for other in others)
        if 100 * out > settings.max_ejection_percent * len(others):
            return False
        base_s = settings.base_ejection_s
        longest_s = max(settings.max_ejection_s, base_s)
        tracker = self._trackers[host]
        if tracker.multiplier * base_s < longest_s + base_s:
            tracker.multiplier += 1
        tracker.ejected_until = now + min(tracker.multiplier * base_s, longest_s)
        tracker.reason = reason
        host.is_ejected = True
        self.events.append(Ejection(host, reason))
        return True

    def _return_elapsed(self, now: float) -> bool:
        has_changed = False
        for host, tracker in self._trackers.items():
            if host.is_ejected and now >= tracker.ejected_until:
                has_changed |= self._end_ejection(host, tracker, now)
        return has_changed

    @staticmethod
    def _end_ejection(host: Host, tracker: "_Tracker", now: float) -> bool:
        """End an ejection; return whether calls may go there again."""
        host.is_ejected = False
        # What failed meanwhile, in panic or from before, must not eject it again.
        tracker.consecutive_5xx = 0
        tracker.returned_at = now
        return host.is_rotating

    def _close_tallies(self) -> dict[Host, float]:
        """Begin a new interval; return the closed one's success rates, in percent.

        Endpoints out of rotation and those with too few requests are absent.
        """
        rates: dict[Host, float] = {}
        for host, tracker in self._trackers.items():
            if host.is_rotating and tracker.requests >= _SUCCESS_RATE_MIN_REQUESTS:
                successes = tracker.requests - tracker.failures
                rates[host] = 100.0 * successes / tracker.requests
            tracker.requests = 0
            tracker.failures = 0
        return rates

    def _eject_low_rates(self, rates: dict[Host, float], now: float) -> bool:
        """Eject endpoints whose rate is far below the mean; return whether there were any."""
        count = len(rates)
        if count < _SUCCESS_RATE_MIN_HOSTS:
            return False
        mean = math.fsum(rates.values()) / count
        sigma = math.sqrt(math.fsum((rate - mean) ** 2 for rate in rates.values()) / count)
        lowest = mean - _SUCCESS_RATE_SIGMAS * sigma
        has_changed = False
        for host, rate in rates.items():
            if rate < lowest:
                has_changed |= self._eject(host, EjectionReason.SUCCESS_RATE, now)
        return has_changed

    def _forgive(self, now: float) -> None:
        """Let the next ejection be shorter where an endpoint stayed in rotation."""
        for host, tracker in self._trackers.items():
            # The same sum as that of `next_sweep_at`: a difference could fall short by rounding.
            has_stayed = now >= tracker.returned_at + self.settings.interval_s
            if tracker.multiplier > 0 and host.is_rotating and has_stayed:
                tracker.multiplier -= 1


@attrs.define
class _Tracker:
    """What is remembered of one endpoint."""

    consecutive_5xx: int = 0
    requests: int = 0
    """Since the last sweep."""
    failures: int = 0
    """Since the last sweep."""
    multiplier: int = 0
    """How many times the base ejection the last one was, less what has been forgiven since."""
    ejected_until: float = 0.0
    reason: EjectionReason | None = None
    """Of the last ejection."""
    returned_at: float = 0.0
