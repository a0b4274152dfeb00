"""A client's body on its way to a backend, in pieces, under the listener's limit."""

from collections.abc import Callable
from math import inf

import msgspec
import trio

from vsr.errors import BodyTooLarge
from vsr.gateway.exchange import Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.network.port import READ_SIZE_BYTES, NetworkError
from vsr.routing.body import BodySource
from vsr.routing.outcome import Cause


class ClientBody(msgspec.Struct, eq=False):
    """Implements `routing.body.BodySource` for one request."""

    _exchange: Exchange
    _scope: RequestScope
    _limit_bytes: int
    length: int | None
    is_begun: bool = False
    has_ended: bool = False
    total_at: float = inf
    _held: bytearray = msgspec.field(default_factory=bytearray)
    """What has been read but not handed out."""
    size_bytes: int = 0
    """Of all that has been read."""
    _tell: list[Callable[[float], None]] = []

    async def gather(self, most_bytes: int) -> bytes | None:
        """Return the whole body if it has no more bytes than that; None leaves it to be read."""
        if self.length is not None and self.length > most_bytes:
            return None
        while self.size_bytes <= most_bytes:
            piece = await self._next()
            if not piece:
                return bytes(self._held)
            self._held += piece
        return None

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end; see `BodySource.read`."""
        self.is_begun = True
        if self._held:
            piece = bytes(self._held[:READ_SIZE_BYTES])
            del self._held[:READ_SIZE_BYTES]
            return piece
        piece = await self._next()
        if not piece:
            self.has_ended = True
            tell, self._tell = self._tell, []
            for each in tell:
                each(self._exchange.now())
        return piece

    def on_end(self, tell: Callable[[float], None]) -> None:
        """Have `tell` called when all has been read; see `BodySource.on_end`."""
        self._tell.append(tell)

    async def _next(self) -> bytes:
        try:
            piece = await self._exchange.read_piece()
        except NetworkError:
            # Not the backend's connection, which the same error would tell of: the request ends.
            self._scope.end(Cause.CLIENT_GONE)
            await trio.sleep_forever()
        self.size_bytes += len(piece)
        if self.size_bytes > self._limit_bytes:
            raise BodyTooLarge(self._limit_bytes)
        return piece


def start_total(source: BodySource, exchange: Exchange, total_s: float, now: float) -> None:
    """Let a call's time begin, since all of its body is there."""
    source.total_at = now + total_s
    exchange.end_at(source.total_at)
