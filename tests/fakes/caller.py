"""A caller of backends that answers as a test says."""

import attrs
import trio

from vsr.deadline import Deadline
from vsr.errors import DeadlineExceeded
from vsr.headers import Headers
from vsr.routing.plan import Call


@attrs.define
class FakeCaller:
    """Implements `routing.ports.Caller`: waits, then answers or fails."""

    answer: tuple[int, Headers, bytes] | Exception = attrs.field(
        factory=lambda: (200, Headers(), b"{}")
    )
    delay_s: float = 0.0
    calls: list[Call] = attrs.field(factory=list)
    """The calls it was asked for, in order."""

    async def call(self, call: Call, deadline: Deadline) -> tuple[int, Headers, bytes]:
        """Answer `call` after the delay, unless the deadline comes first."""
        self.calls.append(call)
        with trio.move_on_at(deadline.at):
            await trio.sleep(self.delay_s)
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer
        raise DeadlineExceeded
