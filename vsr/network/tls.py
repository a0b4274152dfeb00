"""TLS over any connection of the port, by OpenSSL working on bytes in memory."""

import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from math import inf

import trio

from vsr.network.port import READ_SIZE_BYTES, Connection, ConnectionBroken, TlsFailed

# "[SSL] tlsv1 alert no application protocol (_ssl.c:992)". What else a text may hold, such as names
# of a certificate, is left out.
_OPENSSL_TEXT = re.compile(r"\[[A-Z0-9_ ]+\] ([a-z0-9 ]+) \(_ssl\.c:[0-9]+\)")


async def start_client_tls(
    connection: Connection, context: ssl.SSLContext, server_name: str
) -> "TlsConnection":
    """Shake hands as a client and return the encrypted connection.

    The caller limits the time and closes `connection` when this raises.

    Raises:
        TlsFailed: the handshake failed.
    """
    tls = TlsConnection(connection, context, server_name)
    await tls.shake_hands()
    return tls


async def start_server_tls(connection: Connection, context: ssl.SSLContext) -> "TlsConnection":
    """Shake hands as a server and return the encrypted connection.

    The caller limits the time and closes `connection` when this raises.

    Raises:
        TlsFailed: the handshake failed; the client has been told why.
    """
    tls = TlsConnection(connection, context, None)
    await tls.shake_hands()
    return tls


class TlsConnection:
    """One encrypted connection; see `vsr.network.port.Connection`.

    One task may send while another receives: only `send` waits for the network to take records.
    What receiving has to answer goes out at once, or with the next `send`.
    """

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, server_name: str | None
    ) -> None:
        """Wrap `connection`, as the server if there is no `server_name` to ask for."""
        # Some builds of Python take a stream that was cut for one that was closed; we must not.
        context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
        self._inner = connection
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_name is None,
            server_hostname=server_name,
        )
        self._unsent = b""
        """Records that the network did not take at once."""
        self._is_sending = False
        """Whether `send` has begun and not returned: then what is out may end amid a record."""
        self._may_say_goodbye = False

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

    @property
    def application_protocol(self) -> str | None:
        """Return what both sides agreed to speak (ALPN), if they did."""
        return self._tls.selected_alpn_protocol()

    def is_idle(self) -> bool:
        """Return whether the connection is open and silent."""
        return self._inner.is_idle() and not (self._incoming.pending or self._tls.pending())

    async def shake_hands(self) -> None:
        """Do the handshake.

        Raises:
            TlsFailed: it failed.
        """
        try:
            while not self._try_handshake():
                await self._flush()
                await self._fill()
            await self._flush()
        except ssl.SSLError as error:
            self._flush_now()  # the alert that tells the peer
            raise TlsFailed(error.reason or _reason_in(error)) from None
        except ConnectionBroken:
            raise TlsFailed("connection closed during handshake") from None
        self._may_say_goodbye = True

    async def receive(self, *, until: float = inf) -> bytes:
        """Return the next decrypted bytes, empty after the peer's closing alert.

        Raises:
            ConnectionBroken: also when the stream ends without that alert, since it may be cut.
        """
        while True:
            try:
                return self._tls.read(READ_SIZE_BYTES)
            except ssl.SSLWantReadError:
                self._flush_now()
                data = await self._inner.receive(until=until)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError:
                raise ConnectionBroken from None

    def wait_until(self, until: float) -> None:
        """Let the `receive` that is under way give up at another time."""
        self._inner.wait_until(until)

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
        """Send the closing alert and half-close the connection below."""
        self._say_goodbye()
        self._inner.shutdown_send()

    def close(self) -> None:
        """Close with the closing alert, but without waiting for the peer's."""
        self._say_goodbye()
        self._inner.close()

    def abort(self) -> None:
        """Close with a reset."""
        self._may_say_goodbye = False
        self._inner.abort()

    async def _fill(self) -> None:
        data = await self._inner.receive()
        if not data:
            raise ConnectionBroken
        self._incoming.write(data)

    def _try_handshake(self) -> bool:
        """Return whether it is done; if not, more bytes are needed."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _say_goodbye(self) -> None:
        """Send the closing alert, so that the peer knows that it has everything.

        Source: RFC 8446 section 6.1. Left out when a send was cut off: it would claim too much.
        """
        if not self._may_say_goodbye or self._is_sending:
            return
        self._may_say_goodbye = False
        with suppress(ssl.SSLError):  # it asks for the peer's alert, which we don't wait for
            self._tls.unwrap()
        self._flush_now()

    def _flush_now(self) -> None:
        """Send what there is of records, as far as the network takes it at once."""
        if self._is_sending:
            return  # whoever sends takes it along
        data = self._unsent + self._outgoing.read()
        if data:
            with suppress(ConnectionBroken):  # reading meets the same and can say so
                self._unsent = data[self._inner.try_send(data) :]

    async def _flush(self) -> None:
        """Send all records; only one task may do so at a time."""
        self._is_sending = True
        while data := self._unsent + self._outgoing.read():
            self._unsent = b""
            await self._inner.send(data)
        self._is_sending = False


def _reason_in(error: ssl.SSLError) -> str:
    """Return OpenSSL's word for a failure that Python has no name for: it knows few alerts."""
    found = _OPENSSL_TEXT.fullmatch(str(error.args[-1]) if error.args else "")
    return "handshake failed" if found is None else found[1].upper().replace(" ", "_")
