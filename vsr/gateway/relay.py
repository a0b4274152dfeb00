"""A backend's answer on its way to the client: whole, as it comes, or through the session."""

from collections.abc import Callable, Coroutine

from vsr.errors import RoutingFailed, UpstreamProtocolError
from vsr.gateway.exchange import Exchange
from vsr.routing.engine import Engine
from vsr.routing.plan import Answer, Plan
from vsr.routing.ports import UpstreamResponse
from vsr.routing.session import BodyStream

COLLECT_BYTES = 262_144
"""Responses of a declared length up to this are sent whole, so that a backend that breaks off can
still be answered for; longer ones and those of no declared length pass through as they come."""
REPLACED_BYTES = 64 * 1024 * 1024
"""Of an answer that has to be had whole because its protocol is another one."""
FAILURE_BYTES = 1024 * 1024
"""Of a backend's error, to find its message in; the rest is not read."""
_FIRST_ERROR = 400


def is_short(response: UpstreamResponse) -> bool:
    """Return whether an answer is short enough to be had whole first."""
    if response.is_complete:
        return True
    return response.length is not None and response.length <= COLLECT_BYTES


def pass_whole(
    exchange: Exchange, response: UpstreamResponse, watch: Callable[[bytes], None] | None
) -> Coroutine[None, None, None]:
    """Pass on a short answer in one piece, after `watch` has seen it; to be awaited at once."""
    body = response.take()
    if not response.is_complete:
        return _pass_collected(exchange, response, watch, body)
    if watch is not None:
        watch(body)
    response.close()  # the backend is done; a slow client must not hold its connection
    return exchange.respond(response.status, response.headers.lines, body)


async def _pass_collected(
    exchange: Exchange,
    response: UpstreamResponse,
    watch: Callable[[bytes], None] | None,
    begun: bytes,
) -> None:
    body = await _collect(response, begun, COLLECT_BYTES)
    if watch is not None:
        watch(body)
    response.close()  # as above
    await exchange.respond(response.status, response.headers.lines, body)


async def replaced(engine: Engine, plan: Plan, response: UpstreamResponse) -> Answer:
    """Return what the session makes of the whole answer.

    Raises:
        RoutingFailed: its effect could not be applied.
        UpstreamFailure: the body broke off, or is too large to be held.
    """
    is_failure = response.status >= _FIRST_ERROR
    limit = FAILURE_BYTES if is_failure else REPLACED_BYTES
    body = await _collect(response, response.take(), limit, cuts=is_failure)
    response.close()
    try:
        return await engine.respond_whole(plan, Answer(response.status, response.headers, body))
    except RoutingFailed:
        raise RoutingFailed(phase="response") from None


async def pass_as_it_comes(
    exchange: Exchange,
    response: UpstreamResponse,
    note_first_byte: Callable[[], None],
    watch: Callable[[bytes], None] | None,
) -> None:
    """Pass an answer on unchanged, piece by piece; `watch` sees it whole if it turns out short."""
    piece = response.take() or await response.receive()
    if not piece:
        await exchange.respond(response.status, response.headers.lines, b"")
        return
    note_first_byte()
    await exchange.start(response.status, response.headers.lines, response.length, piece)
    copy = _Copy(exchange.try_write, [piece])
    while not response.is_complete:
        await response.relay(exchange.try_write if watch is None else copy)
        await exchange.flush()
    if watch is not None and copy.size_bytes <= COLLECT_BYTES:
        watch(b"".join(copy.parts))
    await exchange.end()


class _Copy:
    """Writes pieces and keeps a copy of the first ones."""

    def __init__(self, write: Callable[[bytes], bool], parts: list[bytes]) -> None:
        self.parts = parts
        self.size_bytes = sum(map(len, parts))
        self._write = write

    def __call__(self, data: bytes) -> bool:
        """Write a piece; keep it unless there is too much."""
        self.size_bytes += len(data)
        if self.size_bytes <= COLLECT_BYTES:
            self.parts.append(data)
        return self._write(data)


async def pass_stream(
    exchange: Exchange,
    response: UpstreamResponse,
    stream: BodyStream,
    note_first_byte: Callable[[], None],
) -> None:
    """Pass an event stream on through `stream`, piece by piece."""
    piece = b""
    if is_short(response):
        piece = stream.feed(await _collect(response, response.take(), COLLECT_BYTES))
    while not piece and not response.is_complete:
        piece = stream.feed(response.take() or await response.receive())
    if response.is_complete:
        piece += stream.close()
    lines = response.headers.lines
    if not piece:
        await exchange.respond(response.status, lines, b"")
        return
    note_first_byte()
    await exchange.start(response.status, lines, None, piece)
    if not response.is_complete:
        await _relay_stream(exchange, response, stream)
    if not stream.is_whole:
        raise UpstreamProtocolError("the stream ended before its answer did")
    await exchange.end()


async def _relay_stream(exchange: Exchange, response: UpstreamResponse, stream: BodyStream) -> None:
    feed, write = stream.feed, exchange.try_write

    def sink(data: bytes) -> bool:
        out = feed(data)
        return not out or write(out)

    while not response.is_complete:
        await response.relay(sink)
        await exchange.flush()
    if (rest := stream.close()) and not exchange.try_write(rest):
        await exchange.flush()


async def _collect(
    response: UpstreamResponse, begun: bytes, limit_bytes: int, *, cuts: bool = False
) -> bytes:
    """Return the body that starts with `begun`.

    Args:
        response: its rest is read.
        begun: what has been taken of it.
        limit_bytes: more is not held.
        cuts: return what there is at the limit; the response is not complete then.

    Raises:
        UpstreamFailure: the body broke off, or exceeds the limit.
    """
    parts = [begun]
    size = len(begun)
    while not response.is_complete:
        if size > limit_bytes:
            if cuts:
                break
            raise UpstreamProtocolError("the response body is too large")
        piece = await response.receive()
        parts.append(piece)
        size += len(piece)
    return b"".join(parts)
