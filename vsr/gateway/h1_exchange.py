"""One request on an HTTP/1.1 connection and the response to it."""

from collections.abc import Callable
from operator import itemgetter

import msgspec

from vsr.errors import BodyTooLarge, InvalidRequest, RequestTimedOut
from vsr.gateway.exchange import ListenerState
from vsr.gateway.writer import BAD_REQUEST
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.http.h1_server import (
    CONTINUE,
    LAST_CHUNK,
    End,
    ServerConnection,
    encode_chunk,
    encode_head,
)
from vsr.network.port import Connection, ConnectionBroken, ReceiveTimedOut
from vsr.network.timers import Timer

_NO_CONTENT = 204
"""Has no length either. Source: RFC 9110 section 8.6."""
_WITHOUT_BODY = (_NO_CONTENT, 304)
_name_of = itemgetter(0)
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})


class H1Exchange(msgspec.Struct, eq=False, gc=False):
    """One request on an HTTP/1.1 connection; see `vsr.gateway.exchange.Exchange`."""

    _connection: Connection
    _http: ServerConnection
    _state: ListenerState
    _deadline: Timer
    now: Callable[[], float]
    """Return monotonic seconds."""
    head: RequestHead
    is_body_read: bool
    is_committed: bool = False
    has_ended: bool = False
    status: int = 0
    bytes_sent: int = 0
    keeps_alive: bool = False
    """Whether the connection is kept once the response has been sent."""
    _is_chunked: bool = False
    _left: int | None = None
    """Bytes of a declared length that are still to be sent."""
    _unsent: bytes = b""
    is_behind: bool = False
    """Whether something is sent in part; a cancelled wait leaves it so for good."""

    @property
    def scheme(self) -> bytes:
        """Return `http` or `https`."""
        return self._state.scheme

    @property
    def peer(self) -> str:
        """Return the client's IP address, empty when unknown."""
        return self._connection.peer

    @property
    def protocol(self) -> str:
        """Return the protocol as access logs name it."""
        return "HTTP/1.0" if self.head.is_http_1_0 else "HTTP/1.1"

    @property
    def may_continue(self) -> bool:
        """Return whether the connection can carry another request."""
        return self.has_ended and self.keeps_alive

    def end_at(self, at: float) -> None:
        """Let the connection end the request when `at` passes."""
        self._state.timers.set(self._deadline, at)

    async def read_body(self, limit_bytes: int) -> bytes:
        """Return the whole request body."""
        head = self.head
        if head.length is not None and head.length > limit_bytes:
            raise BodyTooLarge(limit_bytes)
        whole = head.body
        if whole is None:
            whole = self._http.take_whole_body()
        if whole is not None and len(whole) <= limit_bytes:
            self.is_body_read = True
            head.body = None  # a waiting connection holds no body of its last request
            return whole
        return await self._collect_body(limit_bytes, [] if whole is None else [whole])

    async def _collect_body(self, limit_bytes: int, parts: list[bytes]) -> bytes:
        size = sum(map(len, parts))
        if size > limit_bytes:
            raise BodyTooLarge(limit_bytes)
        while piece := await self.read_piece():
            parts.append(piece)
            size += len(piece)
            if size > limit_bytes:
                raise BodyTooLarge(limit_bytes)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read_piece(self) -> bytes:
        """Return the next bytes of the request body, empty at its end."""
        while not self.is_body_read:
            event = self._http.next_event()
            if event is None:
                await self._fill_body()
            elif isinstance(event, bytes):
                return self._http.take_more(event)  # small chunks must not cost a write each
            elif event is End.REQUEST:
                self.is_body_read = True
            else:
                raise InvalidRequest(str(event), code=BAD_REQUEST)
        return b""

    async def respond(self, status: int, lines: list[HeaderLine], body: bytes) -> None:
        """Send a whole response in one write."""
        data = encode_head(status, self._framed(status, lines, len(body)))
        if body and self.head.method != b"HEAD" and status not in _WITHOUT_BODY:
            self.bytes_sent += len(body)
            data += body
        connection = self._connection
        sent = connection.try_send(data)
        self.is_committed = True
        self.status = status
        if sent != len(data):
            await self._send_rest(data[sent:])
        self.has_ended = True

    async def start(
        self, status: int, lines: list[HeaderLine], length: int | None, first: bytes
    ) -> None:
        """Send a response head and the first piece of its body in one write."""
        lines = self._framed(status, lines, length)
        self._left = length
        await self._commit(status, encode_head(status, lines) + self._framed_piece(first))

    def try_write(self, data: bytes) -> bool:
        """Send more of the body without waiting; return whether all of it went out."""
        self.bytes_sent += len(data)
        if self._left is not None:
            self._left -= len(data)
        piece = b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data
        try:
            sent = self._connection.try_send(piece)
        except ConnectionBroken:
            sent = 0  # `flush` meets the same and can say so
        if sent == len(piece):
            return True
        self._unsent = piece[sent:]
        self.is_behind = True
        return False

    async def flush(self) -> None:
        """Send what `try_write` could not."""
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            await self._send_rest(unsent)

    async def end(self) -> None:
        """End the body; one shorter than declared breaks off instead."""
        if self._left:
            self.abort()
            return
        if self._is_chunked:
            await self._send_rest(LAST_CHUNK)
        self.has_ended = True

    def abort(self) -> None:
        """Break the response off.

        Without chunks or a length only a reset tells the client that something is missing.
        """
        connection = self._connection
        if self._is_chunked or self._left:
            connection.close()
        else:
            connection.abort()

    async def _commit(self, status: int, data: bytes) -> None:
        """Send the beginning of the response, or all of it.

        Tried without waiting first: as long as nothing is out, another answer can still be given,
        and after a cancelled wait nobody could say whether something is.
        """
        connection = self._connection
        sent = connection.try_send(data)
        self.is_committed = True
        self.status = status
        if sent != len(data):
            await self._send_rest(data[sent:])

    async def _send_rest(self, data: bytes) -> None:
        self.is_behind = True
        await self._connection.send(data)
        self.is_behind = False

    def _framed_piece(self, data: bytes) -> bytes:
        self.bytes_sent += len(data)
        if self._left is not None:
            self._left -= len(data)
        return encode_chunk(data) if self._is_chunked else data

    def _framed(self, status: int, lines: list[HeaderLine], length: int | None) -> list[HeaderLine]:
        """Return `lines` with our own framing and connection fields."""
        head = self.head
        described = None
        if not _FRAMING.isdisjoint(map(_name_of, lines)):
            # Fields of a body that is not sent are the backend's to say; others are ours.
            described = next((line for line in lines if line[0] == b"content-length"), None)
            framed = [line for line in lines if line[0] not in _FRAMING]
        else:
            framed = lines.copy()
        if head.method == b"HEAD" or status in _WITHOUT_BODY:
            if described is not None and status != _NO_CONTENT:
                framed.append(described)
        elif length is not None:
            framed.append((b"content-length", b"%d" % length))
        elif not head.is_http_1_0:
            self._is_chunked = True
            framed.append((b"transfer-encoding", b"chunked"))
        if (
            head.keep_alive
            and self.is_body_read
            and not head.is_http_1_0
            and not self._state.is_draining
        ):
            self.keeps_alive = True
        else:
            framed.append((b"connection", b"close"))
        return framed

    async def _fill_body(self) -> None:
        if self.head.expects_continue:
            self.head.expects_continue = False
            await self._connection.send(CONTINUE)
        until = self.now() + self._state.idle_s
        try:
            data = await self._connection.receive(until=until)
        except ReceiveTimedOut:
            raise RequestTimedOut from None
        if not data:
            raise ConnectionBroken
        self._http.feed(data)
