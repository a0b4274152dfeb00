"""Requests whose body does not leave in one write: it is sent while the answer may already come."""

from collections.abc import Awaitable, Callable
from math import inf

import trio

from vsr.errors import DeadlineExceeded, UpstreamProtocolError, UpstreamReset
from vsr.http.framing import FramingError
from vsr.http.h1_server import LAST_CHUNK, encode_chunk
from vsr.network.port import ConnectionBroken
from vsr.routing.body import BodySource
from vsr.routing.outcome import TransportFact
from vsr.upstream.h2_stream import H2Stream
from vsr.upstream.policy.outcome import TimeoutStage
from vsr.upstream.pool import PooledConnection


def read(pooled: PooledConnection, data: bytes) -> None:
    """Take bytes of a response in; empty ones are the end of the stream.

    Raises:
        UpstreamReset: it ended before the head was there.
        UpstreamProtocolError: the response breaks HTTP.
    """
    if not data:
        raise UpstreamReset
    try:
        pooled.http.feed(data)
    except FramingError as fault:
        raise UpstreamProtocolError(str(fault)) from None


async def send_unless_answered(
    pooled: PooledConnection, send: Callable[[], Awaitable[None]]
) -> None:
    """Run `send`, which sends a request, until that is done or the response head is there.

    If the head comes first, no more is sent, and the connection is not used again.
    Source: RFC 9112 section 9.5: a client that sees an early answer should stop sending.

    Raises:
        UpstreamFailure: no head can come any more, or the response breaks HTTP.
        VsrError: the source of the body is at fault, and there is no head yet.
    """
    faults: list[Exception] = []
    is_broken = False
    async with trio.open_nursery() as tasks:

        async def run() -> None:
            try:
                await send()
                pooled.fact = TransportFact.REQUEST_WRITTEN
            except ConnectionBroken:
                return  # what it may have answered before is still to be read
            except Exception as fault:  # noqa: BLE001  # raised again below, outside the nursery
                faults.append(fault)
            tasks.cancel_scope.cancel(reason="the request is sent")

        tasks.start_soon(run)
        try:
            while pooled.http.head is None:
                read(pooled, await pooled.connection.receive())
        except Exception as fault:  # noqa: BLE001  # as above
            faults.append(fault)
            is_broken = True
        tasks.cancel_scope.cancel(reason="the backend has answered")
    if faults and (is_broken or pooled.http.head is None):
        raise faults[0]


async def send_source(
    pooled: PooledConnection, head: bytes, source: BodySource, idle_s: float | None
) -> None:
    """Send a request whose body comes from `source`, on an HTTP/1.1 connection.

    Args:
        pooled: its HTTP state expects the response.
        head: of the request.
        source: of its body.
        idle_s: how long the backend may take to take a piece; None is no limit.

    Raises:
        UpstreamFailure, VsrError: see `send_unless_answered`.
    """
    connection, is_chunked = pooled.connection, source.length is None

    async def send() -> None:
        await _within(idle_s, connection.send, head)
        while piece := await source.read():
            await _within(idle_s, connection.send, encode_chunk(piece) if is_chunked else piece)
        if is_chunked:
            await _within(idle_s, connection.send, LAST_CHUNK)

    await send_unless_answered(pooled, send)


async def send_source_on(
    pooled: PooledConnection, stream: H2Stream, source: BodySource, idle_s: float | None
) -> None:
    """Do the same on an HTTP/2 stream, whose request has been begun."""

    async def send() -> None:
        while piece := await source.read():
            await _within(idle_s, stream.put, piece)
        await _within(idle_s, stream.put, b"")

    await send_unless_answered(pooled, send)


async def _within(
    idle_s: float | None, send: Callable[[bytes], Awaitable[None]], data: bytes
) -> None:
    """Send `data` within the time.

    Raises:
        DeadlineExceeded: the backend did not take it.
    """
    until = inf if idle_s is None else trio.current_time() + idle_s
    with trio.CancelScope(deadline=until):
        await send(data)
        return
    raise DeadlineExceeded(TimeoutStage.IDLE)
