"""The slots of one cluster, for those who wait for them."""

import attrs
import trio

from vsr.errors import UpstreamOverflow
from vsr.upstream.policy.breaker import Breaker, Ticket


@attrs.define(eq=False)
class Gate:
    """A circuit breaker and the tasks that wait at it; each slot is given back once."""

    breaker: Breaker
    _waiters: dict[Ticket, trio.Event] = attrs.field(factory=dict, init=False)

    async def enter(self) -> None:
        """Take a slot, in turn; whoever gives up waiting leaves nothing behind.

        Raises:
            UpstreamOverflow: too many run or wait already.
        """
        if self.breaker.try_admit():
            return
        ticket = self.breaker.queue()
        if ticket is None:
            raise UpstreamOverflow
        handed_over = self._waiters[ticket] = trio.Event()
        try:
            await handed_over.wait()
            # A slot that comes in the instant in which the call ends is passed on.
            await trio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            self.wake(self.breaker.leave(ticket))
            raise
        finally:
            del self._waiters[ticket]

    def leave(self) -> None:
        """Give a slot back, to the one who waits longest if anybody does."""
        self.wake(self.breaker.release())

    def wake(self, ticket: Ticket | None) -> None:
        """Let the task go on that holds `ticket`, which has a slot; None is nobody."""
        if ticket is not None:
            self._waiters[ticket].set()
