"""One listener: accepts connections, serves each on a task of its own, lets them end."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from vsr.gateway.connection import H1Connection
from vsr.gateway.exchange import Handler
from vsr.gateway.opening import Opening
from vsr.http.plain_head import PlainHeads
from vsr.network.port import Connection, ConnectionBroken
from vsr.network.port import Listener as BoundListener
from vsr.network.timers import LazyTimers
from vsr.network.tls_server import ServerCertificate
from vsr.resources.listener import Listener

if TYPE_CHECKING:
    from vsr.gateway.h2_connection import H2Connection

_QUEUED_S = 1.0
"""What a client that waited to be accepted in a drain gets to begin its request."""
LAST_REQUEST_S = 5.0
"""What a client gets to begin one more request where its listener is no longer what it was.

Source: a choice. One that is on its way is never cut off; an answer then says that it is the last.
"""
HANDSHAKES_S = 1.0
"""What clients that have begun to connect to such a listener get; a lost segment is sent again
after as long. Source: RFC 6298 section 2."""
_Served: TypeAlias = "Opening | H1Connection | H2Connection"
"""A connection in any of its states."""


@attrs.define(eq=False)
class ListenerServer:
    """One listener with its open connections."""

    resource: Listener
    bound: BoundListener
    handler: Handler
    timers: LazyTimers
    on_empty: Callable[[], None]
    certificate: ServerCertificate | None = None
    """None serves clear text."""
    heads: PlainHeads = attrs.field(factory=PlainHeads)
    connections: set[_Served] = attrs.field(factory=set)
    is_draining: bool = False
    is_accepting: bool = False
    """Until the last client that waited to be accepted is."""
    _slot_freed: trio.Event = attrs.field(factory=trio.Event)
    _accepting: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    _awaiting: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Of the next connection alone."""

    idle_s: float = attrs.field(init=False)
    """How long a connection may be silent between requests."""

    scheme: bytes = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.idle_s = self.resource.connection_idle_s
        self.scheme = b"http" if self.certificate is None else b"https"

    def may_become(self, resource: Listener, certificate: ServerCertificate | None) -> bool:
        """Return whether open connections may go on as those of a listener on the same socket.

        Not where they were made to one of another name, whose rules are others, nor where TLS
        comes or goes.
        """
        return resource.name == self.resource.name and self.speaks_like(certificate)

    def speaks_like(self, certificate: ServerCertificate | None) -> bool:
        """Return whether both are encrypted, or both are not."""
        return (certificate is None) is (self.certificate is None)

    def become(self, resource: Listener, certificate: ServerCertificate | None) -> None:
        """Go on as another configuration says; see `may_become`."""
        before, self.resource, self.certificate = self.resource, resource, certificate
        if before.connection_idle_s != resource.connection_idle_s:
            self.idle_s = resource.connection_idle_s
            for connection in list(self.connections):
                connection.wait_anew()
        self._slot_freed.set()
        self._awaiting.cancel(reason="the limit may be another one")

    async def accept_forever(self, tasks: trio.Nursery) -> None:
        """Accept until closed; beyond the connection limit clients wait in the accept queue."""
        self.is_accepting = True
        try:
            with self._accepting:
                await self._accept(tasks)
        finally:
            self.is_accepting = False
            if not self.connections:
                self.on_empty()

    async def _accept(self, tasks: trio.Nursery) -> None:
        while True:
            while len(self.connections) >= self.resource.max_connections:
                self._slot_freed = trio.Event()
                await self._slot_freed.wait()
            connection: Connection | None = None
            with trio.CancelScope() as self._awaiting:
                try:
                    connection = await self.bound.accept()
                except ConnectionBroken:
                    return
            if connection is not None:
                self._open(connection, tasks)

    def _open(self, connection: Connection, tasks: trio.Nursery) -> None:
        opening = Opening(connection, self, self.handler, self.certificate)
        self.connections.add(opening)
        tasks.start_soon(self._serve, opening)

    def drain(self) -> None:
        """Serve who waits to be accepted, and let every connection end with its request."""
        self.bound.finish()
        self.idle_s = min(self.idle_s, _QUEUED_S)
        self.is_draining = True
        for connection in list(self.connections):
            connection.drain()

    def hand_over(self, certificate: ServerCertificate | None, tasks: trio.Nursery) -> None:
        """Leave new connections to whoever has the socket next; open ones end, see `leave`.

        Args:
            certificate: of the next one. Who has come to one that speaks otherwise is served here.
            tasks: for who waits to be accepted.
        """
        self._accepting.cancel(reason="handed over")
        if not self.speaks_like(certificate):
            for connection in self.bound.take_waiting():
                self._open(connection, tasks)
        self._let_end()

    def leave(self) -> None:
        """Take no new connections; serve who has begun to connect, and let open ones end."""
        self.bound.finish(HANDSHAKES_S)
        self._let_end()

    def _let_end(self) -> None:
        """Let each connection end with its request, or with one that begins soon.

        One that is closed while a request is on its way fails that: HTTP/1.1 has no word for a
        close between requests. So silent ones are told with their next answer, if there is one
        within `LAST_REQUEST_S`. Source: RFC 9112 sections 9.5 and 9.6.
        """
        self.is_draining = True
        self.idle_s = min(self.idle_s, LAST_REQUEST_S)
        for connection in list(self.connections):
            connection.leave()

    def force_end(self) -> None:
        """End every open connection."""
        for connection in list(self.connections):
            connection.force_end()

    async def _serve(self, opening: Opening) -> None:
        current: _Served = opening
        try:
            served = await opening.negotiate()
            if served is not None:
                self.connections.discard(opening)
                self.connections.add(served)
                current = served
                await served.serve()
        finally:
            self.connections.discard(current)
            self._slot_freed.set()
            if not self.connections:
                self.on_empty()
