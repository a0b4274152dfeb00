"""A cluster whose outliers are ejected: what its endpoints answer, and which of them are out."""

from vsr.resources.cluster import Endpoint
from vsr.resources.reliability import OutlierDetection
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outlier import OutlierDetector

NEVER = 10**6
"""A threshold that no test reaches."""


def hosts(count: int) -> list[Host]:
    """Return endpoints that are all in rotation."""
    return [Host(Endpoint(str(place), "127.0.0.1", 8000 + place)) for place in range(count)]


def detector_of(cluster: list[Host], settings: OutlierDetection) -> OutlierDetector:
    """Return a detector that begins at 0."""
    return OutlierDetector(settings, cluster, 0.0)


def fail(detector: OutlierDetector, host: Host, now: float, *, times: int = 1) -> list[bool]:
    """Record failures; return what each said."""
    return [detector.record(host, 500, now) for _ in range(times)]


def answer(
    detector: OutlierDetector, host: Host, percent: int, *, requests: int = 100, now: float = 5.0
) -> None:
    """Record requests of which `percent` in a hundred succeed."""
    for place in range(requests):
        detector.record(host, 200 if place % 100 < percent else 503, now)


def lasts(detector: OutlierDetector, host: Host, now: float, duration_s: float) -> bool:
    """Return whether the ejection that began at `now` lasts exactly so long."""
    detector.sweep(now + duration_s - 0.001)
    is_out_before = host.is_ejected
    detector.sweep(now + duration_s)
    return is_out_before and not host.is_ejected


def ejected(cluster: list[Host]) -> list[int]:
    """Return the places of the endpoints that are out."""
    return [place for place, host in enumerate(cluster) if host.is_ejected]
