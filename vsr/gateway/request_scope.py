"""The two scopes of a request: its life, and the work done for it."""

from collections.abc import Awaitable, Callable

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
    tasks: trio.Nursery | None = None
    """The request's nursery, whose scope is `work`."""
    cause: Cause | None = None
    move_end: Callable[[float], None] | None = None
    """Sets when the work ends; None where nothing but its own calls ends it."""
    has_started_tasks: bool = False
    """Whether anything was begun in the nursery: it may still run, or have failed unseen."""

    def start_soon(self, task: Callable[[], Awaitable[object]], /) -> None:
        """Start `task` in the request's nursery."""
        if self.tasks is None:
            raise RuntimeError("the request's nursery is not open")
        self.has_started_tasks = True
        self.tasks.start_soon(task)

    def end_at(self, at: float) -> None:
        """Let the work go on until `at`, monotonic seconds."""
        if self.move_end is not None:
            self.move_end(at)

    def end(self, cause: Cause) -> None:
        """Record the first cause and cancel: the work, or the whole life."""
        if self.cause is None:
            self.cause = cause
        if self.tasks is not None:
            self.tasks.cancel_scope.cancel(reason=cause)
        if cause in _ENDS_LIFE:
            self.life.cancel(reason=cause)
