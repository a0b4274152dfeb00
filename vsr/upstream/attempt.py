"""One try of a call at one endpoint: the request out, the response head in."""

from contextlib import suppress
from math import inf

import msgspec
import trio

from vsr.errors import DeadlineExceeded, UpstreamFailure, UpstreamReset
from vsr.headers import HeaderLine, Headers
from vsr.http.framing import FramingError
from vsr.http.h1_client import encode_open_request, encode_request
from vsr.http.h2_head import encode_h2_request
from vsr.network.port import ConnectionBroken, ReceiveTimedOut
from vsr.resources.cluster import Endpoint
from vsr.routing.body import BodySource
from vsr.routing.outcome import CANCELLED, Attempt, TransportFact
from vsr.routing.trace import Trace
from vsr.upstream.h2_stream import H2Stream
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outcome import TimeoutStage
from vsr.upstream.pool import PooledConnection
from vsr.upstream.response import AttemptOwner, Response
from vsr.upstream.upload import read, send_source, send_source_on, send_unless_answered

_ONE_WRITE_BYTES = 65_536
"""Up to this size head and body leave in one write; beyond it joining costs more than a call."""


class WireRequest(msgspec.Struct, gc=False):
    """A call as it leaves for any endpoint of its cluster."""

    method: bytes
    target: bytes
    lines: list[HeaderLine]
    body: bytes
    source: BodySource | None = None
    """Of the body, where it is not whole."""


def traced(request: WireRequest, trace: Trace, attempt: Attempt) -> WireRequest:
    """Return `request` as it leaves for `attempt`: with the context of the attempt's span."""
    lines = trace.attempt_lines(attempt, request.lines)
    return WireRequest(request.method, request.target, lines, request.body, request.source)


class Limits(msgspec.Struct, gc=False):
    """What one attempt must be done by; points in time are monotonic seconds.

    `total_at` and `per_try_at` are here only to tell what cut an attempt off: whoever sets them
    cuts it off.
    """

    total_at: float = inf
    """End of the whole call."""
    per_try_at: float = inf
    """End of this attempt up to its response head."""
    first_byte_s: float | None = None
    """From the written request to the first byte of the body, which is then waited for."""

    def passed(self, now: float) -> str:
        """Return which limit an attempt that was cut off at `now` ran into; empty if none."""
        if now >= self.total_at:
            return TimeoutStage.TOTAL
        return TimeoutStage.PER_TRY if now >= self.per_try_at else ""


async def try_host(
    request: WireRequest,
    cluster: AttemptOwner,
    host: Host,
    attempt: Attempt,
    limits: Limits,
    *,
    idle_s: float | None,
) -> Response:
    """Send `request` to `host` and wait for the response head.

    Whatever happens, `attempt` says so, and `cluster` is told of its end once: here if it failed,
    else when the response is closed.

    Raises:
        UpstreamFailure: no response head came.
    """
    pool, endpoint, pooled = host.pool, host.endpoint, None
    try:
        pooled = pool.take_idle(endpoint) or await pool.dial(endpoint)
        if request.source is not None:
            await _upload(pooled, request, endpoint, attempt, limits, idle_s)
        elif pooled.stream is not None:
            await _write_stream(pooled, pooled.stream, request, endpoint)
        elif rest := _write(pooled, request, endpoint):
            await _write_rest(pooled, *rest)
        http = pooled.http
        if limits.first_byte_s is not None:
            await _read_first_byte(pooled, trio.current_time() + limits.first_byte_s)
        while http.head is None:
            read(pooled, await pooled.connection.receive())
        answer = http.head
    except ConnectionBroken:
        failure = UpstreamReset()
        _note_failure(attempt, pooled, failure, limits)
        cluster.attempt_failed(host, attempt, pooled)
        raise failure from None
    except BaseException as error:
        _note_failure(attempt, pooled, error, limits)
        cluster.attempt_failed(host, attempt, pooled)
        raise
    status, total_at = answer.status, limits.total_at
    cluster.head_arrived(host, attempt, status)
    headers = Headers(answer.lines, answer.fields, answer.size_bytes)
    return Response(
        cluster, host, attempt, pooled, idle_s, total_at, status, headers, answer.length
    )


async def _upload(
    pooled: PooledConnection,
    request: WireRequest,
    endpoint: Endpoint,
    attempt: Attempt,
    limits: Limits,
    idle_s: float | None,
) -> None:
    """Send a request with a source; say since when the backend has had all, and time until when."""
    source = request.source
    assert source is not None  # noqa: S101  # the caller has seen it
    try:
        await _write_source(pooled, request, source, endpoint, idle_s)
    finally:
        limits.total_at = source.total_at
    if pooled.fact is TransportFact.REQUEST_WRITTEN:
        attempt.asked_at = trio.current_time()


def _note_failure(
    attempt: Attempt, pooled: PooledConnection | None, failure: BaseException, limits: Limits
) -> None:
    """Say in `attempt` how it ended; a cancellation that a limit explains is a timeout."""
    now = attempt.ended_at = trio.current_time()
    if pooled is not None:
        has_head = pooled.http.head is not None
        attempt.fact = TransportFact.HEAD_RECEIVED if has_head else pooled.fact
    if isinstance(failure, DeadlineExceeded):
        attempt.error, attempt.stage = failure.code, failure.stage
    elif isinstance(failure, UpstreamFailure):
        attempt.error = failure.code
    else:
        attempt.stage = limits.passed(now)
        attempt.error = DeadlineExceeded.code if attempt.stage else CANCELLED


async def _read_first_byte(pooled: PooledConnection, until: float) -> None:
    """Wait for the response head and the first byte of the body; the end of the body counts.

    Raises:
        DeadlineExceeded: neither came until then.
    """
    http = pooled.http
    while http.head is None or not (http.body or http.is_complete):
        try:
            data = await pooled.connection.receive(until=until)
        except ReceiveTimedOut:
            raise DeadlineExceeded(TimeoutStage.FIRST_BYTE) from None
        if not data and http.head is not None:
            _end_body(pooled)
            return
        read(pooled, data)


def _end_body(pooled: PooledConnection) -> None:
    """Take the end of a body that its connection ends; one that is cut off shows when read."""
    with suppress(FramingError):
        pooled.http.feed_end()


async def _write_stream(
    pooled: PooledConnection, stream: H2Stream, request: WireRequest, endpoint: Endpoint
) -> None:
    """Send a request on a stream of its own, or as much of it as is wanted before the answer."""
    stream.begin(is_head_request=request.method == b"HEAD")
    scheme = b"https" if endpoint.tls else b"http"
    url = scheme, endpoint.authority_bytes, request.target
    body = request.body
    fields = encode_h2_request(request.method, url, request.lines, len(body))
    pooled.fact = TransportFact.REQUEST_PARTLY_WRITTEN
    if stream.ask(fields, body) or await stream.wait_written():
        pooled.fact = TransportFact.REQUEST_WRITTEN


def _write(
    pooled: PooledConnection, request: WireRequest, endpoint: Endpoint
) -> tuple[bytes, bytes] | None:
    """Send a whole request as far as it goes without waiting; return what is left, if anything.

    What is left is the rest of head and body in one piece and nothing, or of a large request,
    which is not begun here, its head and its body.
    """
    body = request.body
    pooled.http.begin(is_head_request=request.method == b"HEAD")
    data = encode_request(
        request.method, request.target, endpoint.authority_bytes, request.lines, len(body)
    )
    pooled.fact = TransportFact.REQUEST_PARTLY_WRITTEN
    if len(body) > _ONE_WRITE_BYTES:
        return data, body
    data += body
    try:
        sent = pooled.connection.try_send(data)
    except ConnectionBroken:
        return None  # what it may have answered before is still to be read
    if sent != len(data):
        return data[sent:], b""
    pooled.fact = TransportFact.REQUEST_WRITTEN
    return None


async def _write_rest(pooled: PooledConnection, data: bytes, body: bytes) -> None:
    connection = pooled.connection
    if body:

        async def send() -> None:
            await connection.send(data)
            await connection.send(body)

        await send_unless_answered(pooled, send)
        return
    with suppress(ConnectionBroken):
        await connection.send(data)
        pooled.fact = TransportFact.REQUEST_WRITTEN


async def _write_source(
    pooled: PooledConnection,
    request: WireRequest,
    source: BodySource,
    endpoint: Endpoint,
    idle_s: float | None,
) -> None:
    """Send a request whose body comes from its client, or as much of it as is wanted."""
    is_head_request = request.method == b"HEAD"
    pooled.fact = TransportFact.REQUEST_PARTLY_WRITTEN
    if pooled.stream is not None:
        pooled.stream.begin(is_head_request=is_head_request)
        scheme = b"https" if endpoint.tls else b"http"
        url = scheme, endpoint.authority_bytes, request.target
        pooled.stream.start(encode_h2_request(request.method, url, request.lines, source.length))
        await send_source_on(pooled, pooled.stream, source, idle_s)
        return
    pooled.http.begin(is_head_request=is_head_request)
    head = encode_open_request(
        request.method, request.target, endpoint.authority_bytes, request.lines, source.length
    )
    await send_source(pooled, head, source, idle_s)
