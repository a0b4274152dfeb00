"""One endpoint of a cluster as it is doing."""

from typing import TYPE_CHECKING

import attrs

from vsr.resources.cluster import Endpoint
from vsr.upstream.policy.stats import HostStats

if TYPE_CHECKING:
    from vsr.upstream.h2_pool import AnyPool  # policies hand it around and never look inside


@attrs.define(eq=False)
class Host:
    """State that the policies of one cluster share; each member is written by one of them."""

    endpoint: Endpoint
    active: int = 0
    """Attempts under way, those whose body is still being read included."""
    is_ejected: bool = False
    """By outlier detection."""
    is_healthy: bool = True
    """By active health checks."""
    is_quarantined: bool = False
    """By an operator: no call goes there, however few endpoints are left."""
    latency_s: float | None = None
    """Moving average of the time to the response head; None before the first one."""
    latency_at: float = 0.0
    """Monotonic seconds of its last change."""
    pool: "AnyPool" = attrs.field(init=False, repr=False)
    """Where its connections come from; set before the first attempt, and then never again: as long
    as this is the state of its cluster, its security domain stays the same."""
    stats: HostStats = attrs.field(factory=HostStats, init=False, repr=False)

    @property
    def is_rotating(self) -> bool:
        """Return whether calls may go there."""
        return self.is_healthy and not self.is_ejected and not self.is_quarantined
