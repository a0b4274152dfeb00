"""An exchange whose client is told by comments of its stream that a graph is at work for it."""

from collections.abc import Callable
from math import inf

import trio

from vsr.codec.sse import encode_comment
from vsr.errors import GraphFailed, UpstreamProtocolError, VsrError
from vsr.gateway.exchange import Exchange
from vsr.gateway.writer import error_event, event_of_failure, render_error
from vsr.headers import HeaderLine
from vsr.network.port import NetworkError
from vsr.resources.stream_comments import StreamComments

MAX_HELD_BYTES = 16_384
"""Of comments for a client that does not read; those that come beyond it are dropped."""
ERROR_WRITE_S = 10.0
"""A client that does not even read an error is cut off: no deadline covers that write."""
_KEEP_ALIVE = encode_comment("vsr keep-alive")
_BEHIND_S = 1e-6
"""What ends at the very time at which a comment is due goes before it, always."""
_OK = 200
_FIRST_ERROR = 400
_IDENTITY = (b"", b"identity")


class CommentedExchange:
    """Implements `vsr.gateway.exchange.Exchange` over one whose response may have begun.

    With the first comment the head goes out, and with it status 200. What is answered then goes
    behind the comments: a stream without its own head, a failure as the protocol's error event.
    Where no comment was due, all is as without this. One task writes comments; it has stopped
    before anything else is written.
    """

    def __init__(
        self,
        exchange: Exchange,
        comments: StreamComments,
        lines: list[HeaderLine],
        on_gone: Callable[[], None],
    ) -> None:
        """Take an exchange whose response has not begun.

        Args:
            exchange: to write to.
            comments: which ones.
            lines: of the head, if it goes out with a comment.
            on_gone: ends the request: its client has left.
        """
        self.head, self.scheme, self.peer = exchange.head, exchange.scheme, exchange.peer
        self.protocol, self.now = exchange.protocol, exchange.now
        self.end_at, self.abort = exchange.end_at, exchange.abort
        self.read_body, self.read_piece = exchange.read_body, exchange.read_piece
        self.flush, self.try_write = exchange.flush, exchange.try_write
        self.end = exchange.end
        self._exchange = exchange
        self._silence_s = (comments.keep_alive_s or inf) + _BEHIND_S
        self._lines = lines
        self._on_gone = on_gone
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_begun = False
        """Whether the status is settled: a comment was due."""
        self._has_content = False
        self._status = 0
        """Of the answer, where it is another one than was sent."""
        self._is_over = False
        self._is_given_up = False
        """Whether the client took too long to read an error."""
        self._wake = trio.Event()
        self._stopped = trio.Event()

    @property
    def is_committed(self) -> bool:
        """Return whether anything of an answer was sent; comments are nothing of it."""
        return self._has_content or (not self._is_begun and self._exchange.is_committed)

    @property
    def has_ended(self) -> bool:
        """Return whether the response was sent to its end."""
        return self._exchange.has_ended

    @property
    def status(self) -> int:
        """Return the status of the answer; a failure's own, though 200 was sent before it."""
        return self._status or self._exchange.status

    @property
    def bytes_sent(self) -> int:
        """Return the body bytes sent, comments included."""
        return self._exchange.bytes_sent

    @property
    def is_behind(self) -> bool:
        """Return whether something is sent in part."""
        return self._exchange.is_behind

    def tell(self, text: str) -> None:
        """Let the client have a comment, unless it is told of something else or does not read."""
        comment = encode_comment(f"vsr {text}")
        if self._is_over or self._held_bytes + len(comment) > MAX_HELD_BYTES:
            return
        self._is_begun = True
        self._held.append(comment)
        self._held_bytes += len(comment)
        self._wake.set()

    async def run(self) -> None:
        """Write comments until there is something else to write."""
        try:
            await self._comment()
        except NetworkError:
            self._on_gone()
        finally:
            self._stopped.set()

    async def respond(self, status: int, lines: list[HeaderLine], body: bytes) -> None:
        """Send a whole answer: an event stream, or an error.

        Raises:
            UpstreamProtocolError: it can't go on the stream that has begun.
            GraphFailed: it is an error, and the client does not read on.
        """
        if self._is_begun and status >= _FIRST_ERROR:
            await self._respond_late(status, body)
            return
        await self._stop()
        if not self._is_begun:
            await self._exchange.respond(status, lines, body)
        else:
            _require_stream(status, lines)
            await self._send_content(body)
            await self.end()

    async def start(
        self, status: int, lines: list[HeaderLine], length: int | None, first: bytes
    ) -> None:
        """Send the beginning of an answer; its head is dropped where one was sent.

        Raises:
            UpstreamProtocolError: it can't go on the stream that has begun.
        """
        await self._stop()
        if not self._is_begun:
            await self._exchange.start(status, lines, length, first)
            return
        _require_stream(status, lines)
        await self._send_content(first)

    async def fail(self, error: VsrError) -> None:
        """Answer with an error; nothing of another answer was sent, and `run` has ended."""
        if not self._is_begun:
            await self._exchange.respond(*render_error(error, self.head.target))
            return
        self._status = error.status
        if self.is_behind or self._is_given_up:
            self.abort()  # a comment went out in part, and nobody knows how much of it
        else:
            await self._end_with(error_event(error, self.head.target))

    async def _respond_late(self, status: int, body: bytes) -> None:
        """Send an error that comes behind comments.

        Raises:
            GraphFailed: the client does not read on.
        """
        self._status = status
        with trio.move_on_after(ERROR_WRITE_S):
            await self._stop()
            await self._end_with(event_of_failure(status, body, self.head.target))
            return
        self._is_given_up = True
        raise GraphFailed("the client does not read its stream", status=status)

    async def _comment(self) -> None:
        while not self._is_over:
            with trio.move_on_after(self._silence_s):
                await self._wake.wait()
            if not self._is_over:
                self._is_begun = True
                await self._write(self._take() or _KEEP_ALIVE)

    async def _stop(self) -> None:
        """Let no comment begin any more, and wait for one that is under way."""
        self._is_over = True
        self._wake.set()
        await self._stopped.wait()

    async def _send_content(self, data: bytes) -> None:
        self._has_content = True
        await self._write(self._take() + data)

    async def _end_with(self, event: bytes) -> None:
        """End the stream by an error event, which no client takes for an answer."""
        await self.flush()
        await self._write(self._take() + event)
        await self.end()

    def _take(self) -> bytes:
        """Return the comments that wait, and hold none."""
        held = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        if not self._is_over:
            self._wake = trio.Event()
        return held

    async def _write(self, data: bytes) -> None:
        if not data:
            return
        if not self._exchange.is_committed:
            await self._exchange.start(_OK, self._lines, None, data)
        elif not self.try_write(data):
            await self.flush()


def _require_stream(status: int, lines: list[HeaderLine]) -> None:
    """Refuse an answer that cannot go on a stream that has begun.

    Raises:
        UpstreamProtocolError: it is none of events, or they are encoded.
    """
    fields = dict(lines)
    is_stream = b"text/event-stream" in fields.get(b"content-type", b"").lower()
    is_plain = fields.get(b"content-encoding", b"").strip().lower() in _IDENTITY
    if not (is_stream and is_plain and status == _OK):
        raise UpstreamProtocolError("the answer is no event stream")
