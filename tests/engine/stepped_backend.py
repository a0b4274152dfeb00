"""A backend that sends its answer step by step, and sees when it is left."""

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum, auto

import attrs
import trio

from vsr.http.framing import RequestHead
from vsr.http.h1_server import End, ServerConnection
from vsr.network.memory import MemoryConnection, MemoryListener, MemoryNetwork
from vsr.network.port import ConnectionBroken


class Act(Enum):
    """What a backend does besides sending and waiting."""

    CLOSE = auto()
    RESET = auto()
    HANG = auto()
    """Says nothing more and keeps the connection."""


Steps = Sequence[bytes | float | Act]
"""Bytes to send, seconds to wait, acts."""

EVENT_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@attrs.define(eq=False)
class SteppedBackend:
    """Listens on a network in memory; `start` it in a nursery."""

    network: MemoryNetwork
    steps: Steps
    """Of every answer; may be replaced at any time."""
    seen: list[tuple[RequestHead, bytes]] = attrs.field(factory=list, init=False)
    """Requests with their bodies, in the order in which they were complete."""
    gone_at: list[float] = attrs.field(factory=list, init=False)
    """When the other side left, for each connection that it did leave."""
    sent_bytes: int = attrs.field(default=0, init=False)
    port: int = attrs.field(default=0, init=False)

    async def start(self, nursery: trio.Nursery) -> "SteppedBackend":
        """Listen, and serve until `nursery` is cancelled."""
        listener = await self.network.listen("127.0.0.1", 0)
        self.port = listener.port
        nursery.start_soon(self._accept, nursery, listener)
        return self

    async def _accept(self, nursery: trio.Nursery, listener: MemoryListener) -> None:
        while True:
            connection = await listener.accept()
            connection.on_gone = self._note_gone
            nursery.start_soon(self._serve, connection)

    def _note_gone(self) -> None:
        self.gone_at.append(trio.current_time())

    async def _serve(self, connection: MemoryConnection) -> None:
        http = ServerConnection()
        with suppress(ConnectionBroken):
            while await self._read_request(connection, http):
                if not await self._answer(connection):
                    return
        connection.close()

    async def _read_request(self, connection: MemoryConnection, http: ServerConnection) -> bool:
        head: RequestHead | None = None
        parts: list[bytes] = []
        while (event := http.next_event()) is not End.REQUEST:
            if event is None:
                data = await connection.receive()
                if not data:
                    return False
                http.feed(data)
            elif isinstance(event, RequestHead):
                head = event
            else:
                assert isinstance(event, bytes), event
                parts.append(event)
        assert head is not None
        self.seen.append((head, b"".join(parts)))
        return True

    async def _answer(self, connection: MemoryConnection) -> bool:
        """Return whether the connection goes on."""
        for step in self.steps:
            if isinstance(step, bytes):
                await connection.send(step)
                self.sent_bytes += len(step)
            elif isinstance(step, float):
                await trio.sleep(step)
            elif step is Act.HANG:
                await trio.sleep_forever()
            else:
                connection.abort() if step is Act.RESET else connection.close()
                return False
        return True
