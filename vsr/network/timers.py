"""Read timeouts of all connections, served by one task.

A timer per read would cost more than the read. A connection that waits again and again with a
later and later limit keeps one entry: when the entry comes up early, it is moved to where the
limit has gone meanwhile.
"""

import heapq
from collections.abc import Callable
from math import inf

import attrs
import trio

_COMPACT_ABOVE = 256


@attrs.define(eq=False)
class Timer:
    """One connection's limit; `expired` runs in the timer task when `at` has passed."""

    expired: Callable[[], None] | None
    at: float = inf
    """Monotonic seconds; infinity while nobody waits."""
    queued_at: float = inf
    """Where the entry stands in the queue; infinity when it has none."""


class LazyTimers:
    """The queue of timers; changed only between checkpoints, so it needs no lock."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Timer]] = []
        self._sequence = 0
        self._dead = 0
        self._sleep: trio.CancelScope | None = None

    def set(self, timer: Timer, at: float) -> None:
        """Let `timer` expire at `at` unless it is set again before."""
        timer.at = at
        if at < timer.queued_at:
            if timer.queued_at != inf:
                self._dead += 1
            self._push(timer)

    def discard(self, timer: Timer) -> None:
        """Forget a timer whose owner is gone."""
        timer.at = inf
        timer.expired = None
        if timer.queued_at != inf:
            timer.queued_at = inf
            self._dead += 1
            if self._dead > _COMPACT_ABOVE and self._dead * 2 > len(self._queue):
                self._compact()

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            self._expire(trio.current_time())
            wake_at = self._queue[0][0] if self._queue else inf
            with trio.CancelScope(deadline=wake_at) as self._sleep:
                await trio.sleep_forever()

    def _push(self, timer: Timer) -> None:
        self._sequence += 1
        timer.queued_at = timer.at
        heapq.heappush(self._queue, (timer.at, self._sequence, timer))
        if self._sleep is not None and timer.at < self._sleep.deadline:
            self._sleep.deadline = timer.at

    def _expire(self, now: float) -> None:
        while self._queue and self._queue[0][0] <= now:
            entry_at, _, timer = heapq.heappop(self._queue)
            if timer.queued_at != entry_at:
                self._dead -= 1
                continue
            timer.queued_at = inf
            if timer.at > now:
                if timer.at != inf:
                    self._push(timer)
                continue
            timer.at = inf
            if timer.expired is not None:
                timer.expired()

    def _compact(self) -> None:
        self._queue = [entry for entry in self._queue if entry[2].queued_at == entry[0]]
        heapq.heapify(self._queue)
        self._dead = 0
