"""A backend that speaks HTTP/1.1 and takes bodies as they come."""

from collections.abc import Sequence
from contextlib import suppress

import attrs
import trio

from tests.engine.stepped_backend import Act
from tests.upstream.raw_backend import reply
from vsr.http.framing import FramingError, RequestHead
from vsr.http.h1_server import End, ServerConnection
from vsr.network.port import Connection, ConnectionBroken, Network


@attrs.define
class Received:
    """One request as an HTTP/1.1 backend has it so far."""

    head: RequestHead
    at: float
    body: bytearray = attrs.field(factory=bytearray)
    pieces: int = 0
    """In which the body came."""
    is_whole: bool = False
    left_at: float | None = None


Steps = Sequence[bytes | float | Act]


@attrs.define(eq=False)
class UploadBackend:
    """Speaks HTTP/1.1 and takes bodies as they come.

    It plays `early` behind a head, then `late` behind the whole request.
    """

    network: Network
    early: Steps = ()
    late: Steps = (reply(200, b"{}"),)
    stops_at: int | None = None
    """Body bytes from which on it reads no more and plays `stopped`."""
    stopped: Steps = (Act.HANG,)
    seen: list[Received] = attrs.field(factory=list)
    accepted: int = 0
    port: int = 0

    async def start(self, nursery: trio.Nursery) -> "UploadBackend":
        """Listen, and serve until `nursery` is cancelled."""
        listener = await self.network.listen("127.0.0.1", 0)
        self.port = listener.port

        async def accept() -> None:
            try:
                while True:
                    connection = await listener.accept()
                    self.accepted += 1
                    nursery.start_soon(self._serve, connection)
            finally:
                listener.close()

        nursery.start_soon(accept)
        return self

    async def _serve(self, connection: Connection) -> None:
        try:
            with trio.CancelScope() as life, suppress(ConnectionBroken):
                connection.on_gone = life.cancel
                http = ServerConnection()
                while await self._take(connection, http):
                    pass
        finally:
            connection.close()
        if self.seen and self.seen[-1].left_at is None and not self.seen[-1].is_whole:
            self.seen[-1].left_at = trio.current_time()

    async def _take(self, connection: Connection, http: ServerConnection) -> bool:
        event = http.next_event()
        if event is None:
            data = await connection.receive()
            http.feed(data)
            return bool(data)
        if isinstance(event, RequestHead):
            self.seen.append(Received(event, trio.current_time()))
            return await self._play(connection, self.early)
        assert not isinstance(event, FramingError), event
        received = self.seen[-1]
        if event is End.REQUEST:
            received.is_whole = True
            return await self._play(connection, self.late)
        received.body += event
        received.pieces += 1
        if self.stops_at is not None and len(received.body) >= self.stops_at:
            return await self._play(connection, self.stopped)
        return True

    async def _play(self, connection: Connection, steps: Steps) -> bool:
        for step in steps:
            if isinstance(step, bytes):
                await connection.send(step)
            elif isinstance(step, float):
                await trio.sleep(step)
            elif step is Act.HANG:
                await trio.sleep_forever()
            else:
                connection.abort() if step is Act.RESET else connection.close()
                return False
        return True
