"""Idle backend connections of one security domain, newest first."""

import attrs

from vsr.http.h1_client import ClientConnection
from vsr.http.plain_head import PlainHeads
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint
from vsr.routing.outcome import TransportFact
from vsr.routing.ports import Dialer

MAX_IDLE_PER_HOST = 1024
"""Idle connections kept per host and port. Source: the reference's upstream layer."""


@attrs.define(eq=False)
class PooledConnection:
    """A backend connection and the HTTP state on it."""

    connection: Connection
    http: ClientConnection
    siblings: "list[PooledConnection]"
    """The idle connections to the same host and port; it is among them while it waits."""
    is_waiting: bool = False
    fact: TransportFact = TransportFact.CONNECTED
    """Of the attempt that uses the connection."""

    def backend_left(self) -> None:
        """Close an idle connection when its backend does; one in use notices by itself."""
        if self.is_waiting:
            self.siblings.remove(self)
            self.connection.close()

    @property
    def is_reusable(self) -> bool:
        """Return whether a whole request was answered by a whole response that keeps it open."""
        http = self.http
        return (
            self.fact >= TransportFact.REQUEST_WRITTEN
            and http.is_complete
            and http.is_reusable
            and not http.body
        )

    def close(self) -> None:
        """Drop the connection at once."""
        self.connection.close()


@attrs.define(eq=False)
class Pool:
    """Hands out connections and takes them back; every change is one synchronous step."""

    dialer: Dialer
    in_use: int = attrs.field(default=0, init=False)
    _heads: PlainHeads = attrs.field(factory=PlainHeads, init=False)
    _idle: dict[tuple[str, int], list[PooledConnection]] = attrs.field(factory=dict, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    @property
    def idle(self) -> int:
        """Return how many connections wait for use."""
        return sum(len(connections) for connections in self._idle.values())

    def take_idle(self, endpoint: Endpoint) -> PooledConnection | None:
        """Return the connection to `endpoint` used last, if one is open and silent."""
        waiting = self._idle.get(endpoint.host_port)
        while waiting:
            pooled = waiting.pop()
            pooled.is_waiting = False
            if pooled.connection.is_idle():
                self.in_use += 1
                return pooled
            pooled.close()
        return None

    async def dial(self, endpoint: Endpoint) -> PooledConnection:
        """Return a new connection to `endpoint`; `release` or `drop` it.

        Raises:
            UpstreamConnectFailure, NoHealthyEndpoint: see `Dialer.dial`.
        """
        connection = await self.dialer.dial(endpoint)
        self.in_use += 1
        siblings = self._idle.setdefault(endpoint.host_port, [])
        pooled = PooledConnection(connection, ClientConnection(self._heads), siblings)
        connection.on_gone = pooled.backend_left
        return pooled

    def release(self, pooled: PooledConnection) -> None:
        """Take back a connection whose response is complete."""
        self.in_use -= 1
        siblings = pooled.siblings
        if self._is_closed or pooled.connection.is_gone or len(siblings) >= MAX_IDLE_PER_HOST:
            pooled.connection.close()
            return
        pooled.is_waiting = True
        siblings.append(pooled)

    def drop(self, pooled: PooledConnection) -> None:
        """Close a connection that is in use."""
        self.in_use -= 1
        pooled.close()

    def close(self) -> None:
        """Close the idle connections; those in use close when they come back."""
        self._is_closed = True
        for waiting in self._idle.values():
            while waiting:
                pooled = waiting.pop()
                pooled.is_waiting = False
                pooled.close()
