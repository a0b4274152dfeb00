"""One try of a call at one endpoint: the request out, the response head in."""

from collections.abc import Callable
from contextlib import suppress
from math import inf

import attrs
import msgspec
import trio

from vsr.errors import DeadlineExceeded, UpstreamFailure, UpstreamProtocolError, UpstreamReset
from vsr.headers import HeaderLine, Headers
from vsr.http.framing import FramingError
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.network.port import ConnectionBroken, NetworkError, ReceiveTimedOut
from vsr.resources.cluster import Cluster, Endpoint
from vsr.routing.outcome import Attempt, TransportFact
from vsr.routing.ports import Journal
from vsr.upstream.pool import Pool, PooledConnection

_ONE_WRITE_BYTES = 65_536
"""Up to this size head and body leave in one write; beyond it joining costs more than a call."""


class WireRequest(msgspec.Struct):
    """A call as it leaves for any endpoint of its cluster."""

    method: bytes
    target: bytes
    lines: list[HeaderLine]
    body: bytes


class Response:
    """A backend's response whose head has arrived; see `routing.ports.UpstreamResponse`."""

    __slots__ = ("_idle_s", "_is_closed", "_pool", "_pooled", "fact", "headers", "length", "status")

    def __init__(self, pool: Pool, pooled: PooledConnection, idle_s: float | None) -> None:
        head = pooled.http.head
        assert head is not None  # noqa: S101  # the caller waited for it
        self._pool = pool
        self._pooled = pooled
        self._idle_s = idle_s
        self._is_closed = False
        self.status = head.status
        self.headers = Headers(head.lines)
        self.length = head.length
        self.fact = TransportFact.HEAD_RECEIVED

    @property
    def is_complete(self) -> bool:
        """Return whether the whole body has been taken."""
        http = self._pooled.http
        return http.is_complete and not http.has_body_waiting

    def take(self) -> bytes:
        """Return the body bytes that have arrived already, maybe none, without waiting."""
        return self._pooled.http.take()

    async def receive(self) -> bytes:
        """Return the next body bytes, empty at the end."""
        pooled = self._pooled
        http = pooled.http
        while not http.has_body_waiting and not http.is_complete:
            until = inf if self._idle_s is None else trio.current_time() + self._idle_s
            try:
                data = await pooled.connection.receive(until=until)
                if data:
                    http.feed(data)
                else:
                    http.feed_end()
            except (NetworkError, FramingError) as error:
                raise _broken_body(error) from None
        if http.is_complete:
            self.fact = TransportFact.BODY_RECEIVED
        return http.take()

    async def relay(self, sink: Callable[[bytes], bool]) -> None:
        """Hand body bytes to `sink` as they arrive, until it returns False or the body ends."""
        http = self._pooled.http
        if (http.has_body_waiting and not sink(http.take())) or http.is_complete:
            return
        feed = _Feed(http, sink)
        try:
            has_ended = await self._pooled.connection.pump(feed, self._idle_s)
            if feed.fault is not None:
                raise feed.fault
            if has_ended:
                http.feed_end()
        except (NetworkError, FramingError) as error:
            raise _broken_body(error) from None
        if http.is_complete:
            self.fact = TransportFact.BODY_RECEIVED

    def close(self) -> None:
        """Give the connection back if the response is complete, else drop it at once."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._pooled.is_reusable:
            self._pool.release(self._pooled)
        else:
            self._pool.drop(self._pooled)


@attrs.define
class _Feed:
    """Takes bytes of a body from the network and hands on what they hold.

    It runs in the task that serves every socket, so whatever goes wrong is kept for the request's.
    """

    http: ClientConnection
    sink: Callable[[bytes], bool]
    fault: Exception | None = None

    def __call__(self, data: bytes) -> bool:
        """Return whether more is wanted."""
        http = self.http
        try:
            http.feed(data)
            if http.has_body_waiting and not self.sink(http.take()):
                return False
        except Exception as fault:  # noqa: BLE001  # raised again by `Response.relay`
            self.fault = fault
            return False
        return not http.is_complete


def _broken_body(error: NetworkError | FramingError) -> UpstreamFailure:
    if isinstance(error, ReceiveTimedOut):
        return DeadlineExceeded()
    if isinstance(error, FramingError):
        return UpstreamProtocolError(str(error))
    return UpstreamProtocolError("connection reset inside the response body")


async def try_endpoint(
    request: WireRequest,
    cluster: Cluster,
    endpoint: Endpoint,
    pool: Pool,
    *,
    idle_s: float | None,
    journal: Journal,
) -> Response:
    """Send `request` to `endpoint` and wait for the response head.

    Whatever happens, the attempt is in the journal with its last transport fact.

    Raises:
        UpstreamFailure: no response head came.
    """
    pooled: PooledConnection | None = None

    def give_up(code: str) -> None:
        fact = TransportFact.NOT_CONNECTED
        if pooled is not None:
            fact = pooled.fact
            pool.drop(pooled)
        journal.attempts.append(Attempt(cluster.name, endpoint.name, fact, None, code))

    try:
        pooled = pool.take_idle(endpoint) or await pool.dial(endpoint)
        pooled.fact = TransportFact.CONNECTED
        await _write(pooled, request, endpoint)
        while pooled.http.head is None:
            _read(pooled, await pooled.connection.receive())
    except ConnectionBroken:
        give_up(UpstreamReset.code)
        raise UpstreamReset from None
    except BaseException as error:
        give_up(error.code if isinstance(error, UpstreamFailure) else "cancelled")
        raise
    response = Response(pool, pooled, idle_s)
    journal.upstream_host = endpoint.address
    journal.attempts.append(
        Attempt(cluster.name, endpoint.name, TransportFact.HEAD_RECEIVED, response.status)
    )
    return response


async def _write(pooled: PooledConnection, request: WireRequest, endpoint: Endpoint) -> None:
    """Send the request, or as much of it as the backend wants before it answers."""
    pooled.http.begin(is_head_request=request.method == b"HEAD")
    head, body = encode_request(
        request.method, request.target, endpoint.authority_bytes, request.lines, request.body
    )
    pooled.fact = TransportFact.REQUEST_PARTLY_WRITTEN
    try:
        if len(body) <= _ONE_WRITE_BYTES:
            await pooled.connection.send(head + body)
        else:
            await pooled.connection.send(head)
            if not await _write_unless_answered(pooled, body):
                return
    except ConnectionBroken:
        return  # what it may have answered before is still to be read
    pooled.fact = TransportFact.REQUEST_WRITTEN


async def _write_unless_answered(pooled: PooledConnection, body: bytes) -> bool:
    """Send a large body; stop when an answer arrives, and return whether all of it was sent.

    Source: RFC 9112 section 9.5: a client that sees an early error should stop sending.
    """
    connection = pooled.connection
    answer: list[bytes] = []
    is_sent = False
    async with trio.open_nursery() as tasks:

        async def listen() -> None:
            with suppress(ConnectionBroken):
                answer.append(await connection.receive())
            tasks.cancel_scope.cancel(reason="the backend has answered")

        tasks.start_soon(listen)
        with suppress(ConnectionBroken):
            await connection.send(body)
            is_sent = True
        tasks.cancel_scope.cancel(reason="the body is sent")
    if answer:
        _read(pooled, answer[0])
    return is_sent


def _read(pooled: PooledConnection, data: bytes) -> None:
    if not data:
        raise UpstreamReset
    try:
        pooled.http.feed(data)
    except FramingError as fault:
        raise UpstreamProtocolError(str(fault)) from None
