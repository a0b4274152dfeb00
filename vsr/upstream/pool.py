"""Idle backend connections of one security domain, newest first."""

from collections import deque
from collections.abc import Collection
from typing import Protocol

import attrs

from vsr.http.framing import ResponseHead
from vsr.http.h1_client import ClientConnection
from vsr.http.plain_head import PlainHeads
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint
from vsr.routing.outcome import TransportFact
from vsr.routing.ports import Dialer
from vsr.upstream.h2_stream import H2Stream

MAX_IDLE_PER_HOST = 1024
"""Idle connections kept per host and port. Source: the reference's upstream layer."""


class Siblings(list["PooledConnection"]):
    """The idle connections to one host and port, those used last at the end."""

    is_wanted = True
    """Whether anything of the configuration that is served goes there."""


class ClientHttp(Protocol):
    """The HTTP state of a call, be it of a connection or of a stream; see `h1_client`."""

    head: ResponseHead | None
    is_complete: bool
    is_reusable: bool
    body: deque[bytes]

    def begin(self, *, is_head_request: bool) -> None:
        """Expect the response to a new request."""
        ...

    def feed(self, data: bytes) -> None:
        """Take in what was read."""
        ...

    def feed_end(self) -> None:
        """Take in the end."""
        ...

    def take(self) -> bytes:
        """Return the body bytes that have arrived, maybe none."""
        ...


@attrs.define(eq=False)
class PooledConnection:
    """A backend connection and the HTTP state on it; a stream of a shared one is both."""

    connection: Connection
    http: ClientHttp
    siblings: Siblings
    """It is among them while it waits."""
    is_waiting: bool = False
    fact: TransportFact = TransportFact.CONNECTED
    """Of the attempt that uses the connection."""
    stream: H2Stream | None = None
    """The two of them, where they are one."""

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
    _idle: dict[tuple[str, int], Siblings] = attrs.field(factory=dict, init=False)
    _wanted: dict[object, Collection[tuple[str, int]]] = attrs.field(factory=dict, init=False)
    """Hosts and ports to whom connections are kept, by who wants them; all if nobody joined."""
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
        return self.adopt(await self.dialer.dial(endpoint), endpoint)

    def adopt(self, connection: Connection, endpoint: Endpoint) -> PooledConnection:
        """Return a connection to `endpoint` that somebody else has dialled, as `dial` does."""
        self.in_use += 1
        siblings = self._idle.get(endpoint.host_port)
        if siblings is None:
            siblings = self._idle[endpoint.host_port] = Siblings()
            siblings.is_wanted = self.is_wanted(endpoint.host_port)
        pooled = PooledConnection(connection, ClientConnection(self._heads), siblings)
        connection.on_gone = pooled.backend_left
        return pooled

    def release(self, pooled: PooledConnection) -> None:
        """Take back a connection whose response is complete."""
        self.in_use -= 1
        siblings = pooled.siblings
        is_wanted = siblings.is_wanted and not self._is_closed
        if not is_wanted or pooled.connection.is_gone or len(siblings) >= MAX_IDLE_PER_HOST:
            pooled.connection.close()
            return
        pooled.is_waiting = True
        siblings.append(pooled)

    def drop(self, pooled: PooledConnection) -> None:
        """Close a connection that is in use."""
        self.in_use -= 1
        pooled.close()

    def join(self, user: object, wanted: Collection[tuple[str, int]]) -> None:
        """Keep connections to these hosts and ports until `user` leaves."""
        self._wanted[user] = wanted
        for host_port, siblings in self._idle.items():
            siblings.is_wanted = self.is_wanted(host_port)

    def leave(self, user: object) -> None:
        """Close connections that nobody wants any more: idle ones now, those in use afterwards.

        Those that calls under way open later are not kept either. The last one to leave closes
        the pool; leaving twice does nothing.
        """
        self._wanted.pop(user, None)
        if not self._wanted:
            self.close()
            return
        for host_port, siblings in list(self._idle.items()):
            siblings.is_wanted = self.is_wanted(host_port)
            if not siblings.is_wanted:
                del self._idle[host_port]
                _close_all(siblings)

    def close(self) -> None:
        """Close the idle connections; those in use close when they come back."""
        self._is_closed = True
        for siblings in self._idle.values():
            _close_all(siblings)

    def is_wanted(self, host_port: tuple[str, int]) -> bool:
        """Return whether connections to there are kept; once the pool is closed none is."""
        if not self._wanted:
            return not self._is_closed
        return any(host_port in wanted for wanted in self._wanted.values())


def _close_all(idle: Siblings) -> None:
    while idle:
        pooled = idle.pop()
        pooled.is_waiting = False
        pooled.close()
