"""What is known of a cluster's endpoints and calls; it outlives the configuration that began it."""

import random
from collections.abc import Iterable, Iterator

import attrs
import msgspec

from vsr.resources.cluster import Cluster
from vsr.resources.reliability import HealthCheck
from vsr.upstream.gate import Gate
from vsr.upstream.policy.balancer import make_balancer
from vsr.upstream.policy.breaker import Breaker, BreakerLimit
from vsr.upstream.policy.health import HealthState
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outcome import FailureKind
from vsr.upstream.policy.outlier import OutlierDetector
from vsr.upstream.policy.retry_slots import RetrySlots
from vsr.upstream.policy.rotation import Rotation
from vsr.upstream.policy.stats import ClusterStats


@attrs.define(eq=False)
class ClusterState:
    """The policies of one cluster with all that they remember.

    A cluster that a new configuration has unchanged goes on with the state it had.
    """

    hosts: tuple[Host, ...]
    rotation: Rotation
    gate: Gate
    slots: RetrySlots
    outliers: OutlierDetector | None
    health: tuple[HealthState, ...]
    """Of the hosts that are asked for their health, in order."""
    stats: ClusterStats = attrs.field(factory=ClusterStats, init=False, repr=False)
    has_traffic: bool = attrs.field(default=False, init=False)
    """Whether it has ever carried a call."""

    def note_overflow(self) -> None:
        """Count an attempt that the breaker just refused."""
        limit = self.gate.breaker.overflow_limit
        self.stats.overflows[limit or BreakerLimit.MAX_REQUESTS] += 1
        self.stats.unplaced[FailureKind.OVERFLOW] += 1

    def rotation_changed(self) -> None:
        """Let calls go where they may go now, and count what was ejected."""
        self.rotation.changed()
        if self.outliers is not None:
            for each in self.outliers.events:
                self.stats.ejections[each.host.endpoint.name, each.reason] += 1
            self.outliers.events.clear()

    @property
    def is_warm(self) -> bool:
        """Return whether every host that is checked has been checked once."""
        return not any(health.is_pending for health in self.health)


def new_state(cluster: Cluster, rng: random.Random) -> ClusterState:
    """Return the state of a cluster that nobody has called yet."""
    hosts = tuple(Host(endpoint) for endpoint in cluster.endpoints)
    check = cluster.health_check
    # Before the rotation, which looks at what they make of the hosts.
    health = () if check is None else tuple(_health_states(check, hosts))
    detection = cluster.outliers
    return ClusterState(
        hosts,
        Rotation(hosts, make_balancer(cluster.lb_policy, rng)),
        Gate(Breaker(cluster.breaker)),
        RetrySlots(cluster.breaker.max_retries, cluster.retry_budget),
        # Its first sweep is due when somebody begins to sweep.
        None if detection is None else OutlierDetector(detection, hosts, 0.0),
        health,
    )


def _health_states(check: HealthCheck, hosts: Iterable[Host]) -> Iterator[HealthState]:
    for host in hosts:
        path = host.endpoint.health_path
        if path is None:
            yield HealthState(check, host)
        elif path:
            yield HealthState(msgspec.structs.replace(check, path=path), host)
