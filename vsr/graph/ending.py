"""Why a group of steps was ended before its time."""

from math import inf

import msgspec
import trio

from vsr.routing.outcome import Cause


class Ending(msgspec.Struct, eq=False, gc=False):
    """Of one cancel scope: whoever cancels it records the cause before; the first one counts."""

    cause: Cause | None = None
    deadline_at: float = inf
    """Monotonic seconds."""
    outer: "Ending | None" = None
    scope: trio.CancelScope | None = None

    def end(self, cause: Cause) -> None:
        """Record the cause and cancel."""
        if self.cause is None:
            self.cause = cause
        if self.scope is not None:
            self.scope.cancel(reason=cause)

    def reason(self, request_cause: Cause | None, now: float) -> Cause | None:
        """Return why work inside was cancelled, the innermost group that was ended first.

        Args:
            request_cause: why the request itself was ended, if it was.
            now: monotonic seconds.
        """
        ending: Ending | None = self
        while ending is not None:
            if ending.cause is not None:
                return ending.cause
            ending = ending.outer
        if request_cause is not None:
            return request_cause
        ending = self
        while ending is not None:
            if now >= ending.deadline_at:
                return Cause.DEADLINE
            ending = ending.outer
        return None
