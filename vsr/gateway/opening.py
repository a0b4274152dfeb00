"""From an accepted connection to the HTTP version that its client speaks."""

import logging
from typing import TYPE_CHECKING

import trio

from vsr.gateway.connection import HEAD_TIMEOUT_S, H1Connection
from vsr.gateway.exchange import Handler, ListenerState
from vsr.http.h2_frames import speaks_http2
from vsr.network.port import Connection, NetworkError, ReceiveTimedOut, TlsFailed
from vsr.network.tls import start_server_tls
from vsr.network.tls_server import HANDSHAKE_TIMEOUT_S, ServerCertificate

if TYPE_CHECKING:
    from vsr.gateway.h2_connection import H2Connection

_HTTP2 = "h2"
_log = logging.getLogger("vsr.gateway")


def load_http2() -> "type[H2Connection]":
    """Import what serves HTTP/2: a twentieth of the start, and not every Router needs it."""
    from vsr.gateway.h2_connection import H2Connection  # noqa: PLC0415

    return H2Connection


class Opening:
    """A connection whose client has not told yet what it speaks."""

    def __init__(
        self,
        connection: Connection,
        state: ListenerState,
        handler: Handler,
        certificate: ServerCertificate | None = None,
    ) -> None:
        """Take an accepted connection; with a `certificate` it is to be encrypted."""
        self.connection = connection
        self._state = state
        self._handler = handler
        self._certificate = certificate
        self._scope = trio.CancelScope()
        self._is_silent = False
        """Whether the client's first byte is waited for."""

    async def negotiate(self) -> "H1Connection | H2Connection | None":
        """Return what serves the connection; None, and all is closed, if nobody will ask.

        Source: RFC 9113 section 3: ALPN where there is TLS, elsewhere the client's first bytes.
        """
        served: H1Connection | H2Connection | None = None
        try:
            with self._scope:
                if self._certificate is None:
                    served = await self._read_first_bytes()
                else:
                    served = await self._shake_hands(self._certificate)
        except NetworkError:
            pass  # the client is gone
        finally:
            if served is None:
                self.connection.close()
        return served

    def drain(self) -> None:
        """Close: nothing has been asked for."""
        self._scope.cancel(reason="drain")

    def leave(self) -> None:
        """Let the client have its request, which is the last, if it begins it soon."""
        self.wait_anew()

    def wait_anew(self) -> None:
        """Let a client that is silent have from now on what its listener allows."""
        if self._is_silent:
            self.connection.wait_until(trio.current_time() + self._state.idle_s)

    def force_end(self) -> None:
        """Close."""
        self._scope.cancel(reason="drain")

    async def _shake_hands(
        self, certificate: ServerCertificate
    ) -> "H1Connection | H2Connection | None":
        with trio.move_on_after(HANDSHAKE_TIMEOUT_S):
            context = certificate.context(trio.current_time())
            try:
                tls = await start_server_tls(self.connection, context)
            except TlsFailed as error:
                _log.debug("TLS handshake failed: %s", error.reason)
                return None
            if tls.application_protocol == _HTTP2:
                return load_http2()(tls, self._state, self._handler)
            return H1Connection(tls, self._state, self._handler)
        return None

    async def _read_first_bytes(self) -> "H1Connection | H2Connection | None":
        """Read until the client's preface is told from a request, which one byte mostly does."""
        start = b""
        is_http2: bool | None = None
        until = trio.current_time() + self._state.idle_s
        while is_http2 is None:
            self._is_silent = not start
            try:
                data = await self.connection.receive(until=until)
            except ReceiveTimedOut:
                data = b""
            finally:
                self._is_silent = False
            if not start:
                until = trio.current_time() + HEAD_TIMEOUT_S
            start += data
            is_http2 = speaks_http2(start) if data else False
        if is_http2:
            return load_http2()(self.connection, self._state, self._handler, start)
        if not start:
            return None
        served = H1Connection(self.connection, self._state, self._handler)
        served.http.feed(start)
        return served
