"""Calls of graph steps that need the whole answer: one call, its body collected up to a limit."""

import msgspec
import trio

from vsr.deadline import Deadline
from vsr.errors import DeadlineExceeded, UpstreamAnswerTooLarge
from vsr.routing.plan import Call
from vsr.routing.ports import CallAnswer, Journal, Upstream, UpstreamResponse


class UpstreamCaller(msgspec.Struct, frozen=True):
    """Implements `routing.ports.Caller` over the clusters of one configuration.

    Whatever ends a call (its answer, a failure, a limit, a cancellation), nothing of it is left:
    the connection is given back after a whole answer and dropped at once after anything else.
    """

    upstream: Upstream
    listener_s: float | None = None
    """Default of a call's total and idle timeouts, as the listener has it; None means no limit."""

    async def call(
        self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
    ) -> CallAnswer:
        """Send `call` as its cluster's policy allows; see `routing.ports.Caller`."""
        now = trio.current_time()
        cluster = self.upstream.cluster_for(call.route_key)
        total_s, idle_s = cluster.timeouts(call, self.listener_s)
        until = Deadline.after(now, total_s).narrowed(deadline)
        if until.has_passed(now):
            raise DeadlineExceeded
        begun = len(journal.attempts)
        with trio.CancelScope(deadline=until.at):
            response = await cluster.send(
                call, now=now, deadline=until, idle_s=idle_s, journal=journal
            )
            try:
                body, first_byte_at = await collect(response, limit_bytes)
            except UpstreamAnswerTooLarge as error:
                # To the cluster that is an answer nobody reads on, no fault of the endpoint.
                response.close()
                response.attempt.error = error.code
                raise
            finally:
                response.close()
            return CallAnswer(
                response.status,
                response.headers,
                body,
                tuple(journal.attempts[begun:]),
                first_byte_at,
            )
        raise DeadlineExceeded().after(len(journal.attempts) - begun)


async def collect(response: UpstreamResponse, limit_bytes: int) -> tuple[bytes, float | None]:
    """Return the whole body, and when its first byte was there; None if it is empty.

    Raises:
        UpstreamAnswerTooLarge: the body is longer than the limit, or says that it will be.
        UpstreamProtocolError, DeadlineExceeded: it broke off.
    """
    if response.length is not None and response.length > limit_bytes:
        raise UpstreamAnswerTooLarge(limit_bytes)
    pieces: list[bytes] = []
    size_bytes, first_byte_at = 0, None
    while piece := await response.receive():
        if first_byte_at is None:
            first_byte_at = trio.current_time()
        size_bytes += len(piece)
        if size_bytes > limit_bytes:
            raise UpstreamAnswerTooLarge(limit_bytes)
        pieces.append(piece)
    return b"".join(pieces), first_byte_at
