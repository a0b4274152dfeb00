"""Owner of attempts that are no call of a model: they count for nothing."""

from collections.abc import Callable

import msgspec
import trio

from vsr.errors import EgressRefused
from vsr.routing.outcome import Attempt
from vsr.upstream.policy.host import Host
from vsr.upstream.pool import PooledConnection


class Uncounted(msgspec.Struct, frozen=True):
    """Implements `upstream.response.AttemptOwner` for health checks and questions to services."""

    now: Callable[[], float] = trio.current_time

    def head_arrived(self, host: Host, attempt: Attempt, status: int) -> None:
        """Do nothing."""

    def attempt_failed(self, host: Host, attempt: Attempt, pooled: PooledConnection | None) -> None:
        """Drop the connection."""
        if pooled is not None:
            host.pool.drop(pooled)
        elif attempt.error == EgressRefused.code:
            host.stats.egress_refusals += 1

    def body_failed(self, host: Host, attempt: Attempt) -> None:
        """Do nothing."""

    def body_ended(self, host: Host, *, is_complete: bool) -> None:
        """Do nothing."""

    def attempt_ended(self, host: Host) -> None:
        """Do nothing."""


UNCOUNTED = Uncounted()
