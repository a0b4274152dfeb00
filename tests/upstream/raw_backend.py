"""A backend that answers with the very bytes a test gives, and sees when it is left."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import attrs
import trio

from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.http.h1_server import End, ServerConnection
from vsr.network.memory import MemoryConnection, MemoryListener, MemoryNetwork
from vsr.network.port import ConnectionBroken

Answer = Callable[[RequestHead, bytes], bytes]


def reply(status: int, body: bytes = b"", *lines: HeaderLine) -> bytes:
    """Return a JSON response with a `content-length` and these further lines."""
    fields = [(b"content-type", b"application/json"), *lines]
    shown = b"".join(b"%b: %b\r\n" % line for line in fields)
    return b"HTTP/1.1 %d Whatever\r\n%bcontent-length: %d\r\n\r\n%b" % (
        status,
        shown,
        len(body),
        body,
    )


@attrs.define(eq=False)
class RawBackend:
    """Listens on a network in memory; `start` it in a nursery."""

    network: MemoryNetwork
    answer: Answer | bytes
    reads: bool = True
    """False never reads a byte."""
    closes: bool = False
    """Whether the connection ends with the first answer."""
    seen: list[tuple[RequestHead, bytes]] = attrs.field(factory=list)
    """Requests with their bodies, in the order in which they were complete."""
    accepted: list[MemoryConnection] = attrs.field(factory=list)
    gone_at: list[float] = attrs.field(factory=list)
    """When the other side left, for each connection that it did leave."""
    port: int = 0

    async def start(self, nursery: trio.Nursery) -> "RawBackend":
        """Listen, and serve until `nursery` is cancelled."""
        listener = await self.network.listen("127.0.0.1", 0)
        self.port = listener.port
        nursery.start_soon(self._accept, nursery, listener)
        return self

    @property
    def open_connections(self) -> int:
        """Return how many connections nobody has left."""
        return len(self.accepted) - len(self.gone_at)

    async def _accept(self, nursery: trio.Nursery, listener: MemoryListener) -> None:
        while True:
            connection = await listener.accept()
            self.accepted.append(connection)
            connection.on_gone = partial(self._note_gone, connection)
            nursery.start_soon(self._serve, connection)

    def _note_gone(self, connection: MemoryConnection) -> None:
        self.gone_at.append(trio.current_time())
        if not self.reads:
            connection.close()

    async def _serve(self, connection: MemoryConnection) -> None:
        with suppress(ConnectionBroken):
            if not self.reads:
                await trio.sleep_forever()
            http = ServerConnection()
            while await self._serve_request(connection, http):
                pass
        connection.close()

    async def _serve_request(self, connection: MemoryConnection, http: ServerConnection) -> bool:
        head: RequestHead | None = None
        parts: list[bytes] = []
        while True:
            event = http.next_event()
            if event is None:
                data = await connection.receive()
                if not data:
                    return False
                http.feed(data)
            elif isinstance(event, RequestHead):
                head = event
            elif isinstance(event, bytes):
                parts.append(event)
            elif event is End.REQUEST:
                break
            else:
                raise AssertionError(event)
        assert head is not None
        body = b"".join(parts)
        self.seen.append((head, body))
        answer = self.answer if isinstance(self.answer, bytes) else self.answer(head, body)
        await connection.send(answer)
        return not self.closes
