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


class WireRequest(msgspec.Struct, gc=False):
    """A call as it leaves for any endpoint of its cluster."""

    method: bytes
    target: bytes
    lines: list[HeaderLine]
    body: bytes


class Response(msgspec.Struct, eq=False):
    """A backend's response whose head has arrived; see `routing.ports.UpstreamResponse`."""

    _pool: Pool
    _pooled: PooledConnection
    _idle_s: float | None
    status: int
    headers: Headers
    length: int | None
    fact: TransportFact = TransportFact.HEAD_RECEIVED
    _is_closed: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether the whole body has been taken."""
        http = self._pooled.http
        return http.is_complete and not http.body

    def take(self) -> bytes:
        """Return the body bytes that have arrived already, maybe none, without waiting."""
        return self._pooled.http.take()

    async def receive(self) -> bytes:
        """Return the next body bytes, empty at the end."""
        pooled = self._pooled
        http = pooled.http
        while not http.body and not http.is_complete:
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
        if (http.body and not sink(http.take())) or http.is_complete:
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
            body = http.body
            if body and not self.sink(body.popleft() if len(body) == 1 else http.take()):
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
    try:
        pooled = pool.take_idle(endpoint) or await pool.dial(endpoint)
        pooled.fact = TransportFact.CONNECTED
        http = pooled.http
        http.begin(is_head_request=request.method == b"HEAD")
        body = request.body
        head = encode_request(
            request.method, request.target, endpoint.authority_bytes, request.lines, len(body)
        )
        pooled.fact = TransportFact.REQUEST_PARTLY_WRITTEN
        if len(body) > _ONE_WRITE_BYTES:
            await _write_apart(pooled, head, body)
        elif rest := _write_at_once(pooled, head + body):
            await _write_rest(pooled, rest)
        while http.head is None:
            _read(pooled, await pooled.connection.receive())
        answer = http.head
    except ConnectionBroken:
        journal.attempts.append(_failed(cluster, endpoint, pool, pooled, UpstreamReset.code))
        raise UpstreamReset from None
    except BaseException as error:
        code = error.code if isinstance(error, UpstreamFailure) else "cancelled"
        journal.attempts.append(_failed(cluster, endpoint, pool, pooled, code))
        raise
    journal.upstream_host = endpoint.address
    journal.attempts.append(
        Attempt(cluster.name, endpoint.name, TransportFact.HEAD_RECEIVED, answer.status)
    )
    headers = Headers(answer.lines, answer.fields)
    headers.most_bytes = answer.size_bytes
    return Response(pool, pooled, idle_s, answer.status, headers, answer.length)


def _failed(
    cluster: Cluster, endpoint: Endpoint, pool: Pool, pooled: PooledConnection | None, code: str
) -> Attempt:
    """Drop the connection, if there is one, and return what the journal says of the attempt."""
    fact = TransportFact.NOT_CONNECTED
    if pooled is not None:
        fact = pooled.fact
        pool.drop(pooled)
    return Attempt(cluster.name, endpoint.name, fact, None, code)


def _write_at_once(pooled: PooledConnection, data: bytes) -> bytes:
    """Send a whole request as far as it goes without waiting; return the rest."""
    try:
        sent = pooled.connection.try_send(data)
    except ConnectionBroken:
        return b""  # what it may have answered before is still to be read
    if sent != len(data):
        return data[sent:]
    pooled.fact = TransportFact.REQUEST_WRITTEN
    return b""


async def _write_rest(pooled: PooledConnection, rest: bytes) -> None:
    with suppress(ConnectionBroken):
        await pooled.connection.send(rest)
        pooled.fact = TransportFact.REQUEST_WRITTEN


async def _write_apart(pooled: PooledConnection, head: bytes, body: bytes) -> None:
    """Send a large request, or as much of it as the backend wants before it answers."""
    with suppress(ConnectionBroken):
        await pooled.connection.send(head)
        if await _write_unless_answered(pooled, body):
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
