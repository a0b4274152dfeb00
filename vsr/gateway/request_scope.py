"""The two scopes of a request: its life, and the work done for it."""

import attrs
import trio

from vsr.routing.outcome import Cause

_ENDS_LIFE = frozenset({Cause.CLIENT_GONE, Cause.DRAIN})


@attrs.define(eq=False)
class RequestScope:
    """Ends a request for a cause; only the first cause is kept.

    `life` encloses writing to the client and ends when there is nobody to write to; `work`, inside
    it, is the request's nursery with its deadline. So a late answer can still be told as a 504.
    """

    life: trio.CancelScope
    work: trio.CancelScope | None = None
    cause: Cause | None = None

    def end(self, cause: Cause) -> None:
        """Record the first cause and cancel: the work, or the whole life."""
        if self.cause is None:
            self.cause = cause
        if self.work is not None:
            self.work.cancel(reason=cause)
        if cause in _ENDS_LIFE:
            self.life.cancel(reason=cause)
