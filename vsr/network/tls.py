"""TLS over any connection of the port, by OpenSSL working on bytes in memory."""

import ssl
from collections.abc import Callable
from math import inf

import trio

from vsr.network.port import READ_SIZE_BYTES, Connection, ConnectionBroken, TlsFailed


async def start_client_tls(
    connection: Connection, context: ssl.SSLContext, server_name: str
) -> "TlsConnection":
    """Shake hands as a client and return the encrypted connection.

    The caller limits the time and closes `connection` when this raises.

    Raises:
        TlsFailed: the handshake failed.
    """
    # Some builds of Python take a stream that was cut for one that was closed; we must not.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    tls = TlsConnection(connection, context, server_name)
    try:
        await tls.shake_hands()
    except ssl.SSLError as error:
        raise TlsFailed(error.reason or "handshake failed") from None
    except ConnectionBroken:
        raise TlsFailed("connection closed during handshake") from None
    return tls


class TlsConnection:
    """One encrypted connection; see `vsr.network.port.Connection`."""

    def __init__(self, connection: Connection, context: ssl.SSLContext, server_name: str) -> None:
        self._inner = connection
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=False, server_hostname=server_name
        )

    @property
    def on_gone(self) -> Callable[[], None] | None:
        """Return the hang-up callback."""
        return self._inner.on_gone

    @on_gone.setter
    def on_gone(self, callback: Callable[[], None] | None) -> None:
        self._inner.on_gone = callback

    @property
    def peer(self) -> str:
        """Return the peer's IP address."""
        return self._inner.peer

    @property
    def is_gone(self) -> bool:
        """Return whether the peer has closed or reset."""
        return self._inner.is_gone

    def is_idle(self) -> bool:
        """Return whether the connection is open and silent."""
        return self._inner.is_idle() and not (self._incoming.pending or self._tls.pending())

    async def shake_hands(self) -> None:
        """Do the handshake.

        Raises:
            ssl.SSLError: it failed.
            ConnectionBroken: the peer closed in the middle of it.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._inner.receive()
                if not data:
                    raise ConnectionBroken from None
                self._incoming.write(data)
            else:
                await self._flush()
                return

    async def receive(self, *, until: float = inf) -> bytes:
        """Return the next decrypted bytes, empty after the peer's closing alert.

        Raises:
            ConnectionBroken: also when the stream ends without that alert, since it may be cut.
        """
        while True:
            try:
                return self._tls.read(READ_SIZE_BYTES)
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._inner.receive(until=until)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError:
                raise ConnectionBroken from None

    async def pump(self, sink: Callable[[bytes], bool], idle_s: float | None) -> bool:
        """Hand what arrives to `sink`, in the caller's task: decrypting may have to answer."""
        while True:
            until = inf if idle_s is None else trio.current_time() + idle_s
            data = await self.receive(until=until)
            if not data:
                return True
            if not sink(data):
                return False

    def try_send(self, data: bytes) -> int:
        """Send nothing: what is encrypted once has to go out whole, so `send` does it."""
        del data
        return 0

    async def send(self, data: bytes | memoryview) -> None:
        """Encrypt and send all of `data`."""
        if len(data):
            try:
                self._tls.write(data)
            except ssl.SSLError:
                raise ConnectionBroken from None
        await self._flush()

    def shutdown_send(self) -> None:
        """Half-close the connection below."""
        self._inner.shutdown_send()

    def close(self) -> None:
        """Close without waiting for the peer's closing alert."""
        self._inner.close()

    def abort(self) -> None:
        """Close with a reset."""
        self._inner.abort()

    async def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            await self._inner.send(data)
