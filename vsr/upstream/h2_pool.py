"""Shared HTTP/2 connections of one security domain, and who waits for one."""

from collections.abc import Collection, Iterator
from functools import partial
from math import ceil

import attrs
import trio

from vsr.errors import UpstreamConnectFailure, UpstreamFailure
from vsr.http.h2_client import STREAMS_AT_MOST
from vsr.network.port import Connection
from vsr.network.tls import TlsConnection
from vsr.resources.cluster import Endpoint, HttpVersion
from vsr.routing.ports import Dialer
from vsr.upstream.background import Background
from vsr.upstream.h2_connection import H2Connection
from vsr.upstream.pool import Pool, PooledConnection, Siblings

MAX_CONNECTIONS_PER_HOST = 64
"""HTTP/2 connections per host and port, those being dialled included; further calls wait."""
_H2 = "h2"


@attrs.define(eq=False)
class _Waiter:
    """A call that waits for a connection; it gets one of the three."""

    has_got: trio.Event = attrs.field(factory=trio.Event, init=False)
    stream_of: H2Connection | None = attrs.field(default=None, init=False)
    """A place on it is taken already."""
    plain: Connection | None = attrs.field(default=None, init=False)
    """One that speaks HTTP/1.1."""
    failure: Exception | None = attrs.field(default=None, init=False)


@attrs.define(eq=False)
class _Host:
    """What there is for one host and port."""

    connections: list[H2Connection] = attrs.field(factory=list, init=False)
    """The first that has room takes a call, so that the last ones run empty."""
    waiters: dict[_Waiter, None] = attrs.field(factory=dict, init=False)
    """Those that came first are served first, and so is each whenever there is room."""
    dials: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    streams_each: int = attrs.field(default=STREAMS_AT_MOST, init=False)
    """What a new connection is expected to have room for, from what the last one had."""
    speaks_http_1: bool = attrs.field(default=False, init=False)
    """Whether that was agreed upon last."""
    siblings: Siblings = attrs.field(factory=Siblings, init=False)


@attrs.define(eq=False)
class H2Pool:
    """Hands out streams and takes them back, as `pool.Pool` does with connections.

    A dial is nobody's own: those who wait share it, and it ends when the last of them leaves.
    """

    dialer: Dialer
    version: HttpVersion
    connect_timeout_s: float
    """TCP, TLS and the first settings together."""
    background: Background
    _plain: Pool = attrs.field(init=False)
    """Of backends that chose HTTP/1.1."""
    _hosts: dict[tuple[str, int], _Host] = attrs.field(factory=dict, init=False)

    @_plain.default
    def _no_connections(self) -> Pool:
        return Pool(self.dialer)

    @property
    def in_use(self) -> int:
        """Return how many streams, or connections of one, carry a request."""
        return self._plain.in_use + sum(each.lent for each in self._connections())

    @property
    def idle(self) -> int:
        """Return how many connections wait for use."""
        return self._plain.idle + sum(not each.lent for each in self._connections())

    def take_idle(self, endpoint: Endpoint) -> PooledConnection | None:
        """Return a stream to `endpoint`, or an idle connection, if there is one."""
        host = self._hosts.get(endpoint.host_port)
        if host is not None and (found := _first_with_room(host)) is not None:
            return _lend(host, found)
        return self._plain.take_idle(endpoint)

    async def dial(self, endpoint: Endpoint) -> PooledConnection:
        """Return a stream, or connection, to `endpoint` as soon as there is one.

        Raises:
            UpstreamConnectFailure, NoHealthyEndpoint: see `Dialer.dial`.
        """
        host = self._hosts.setdefault(endpoint.host_port, _Host())
        while True:
            if host.speaks_http_1:
                connection = await self.dialer.dial(endpoint)
                if not _speaks_h2(connection):
                    return self._plain.adopt(connection, endpoint)
                connection.close()
                host.speaks_http_1 = False
            waiter = await self._wait(host, endpoint)
            if waiter.plain is not None:
                return self._plain.adopt(waiter.plain, endpoint)
            found = waiter.stream_of
            if found is None:
                continue  # it can't be shared, as it turned out
            found.lent -= 1
            if found.has_room:  # it may have gone since
                return _lend(host, found)
            found.close_if_unused()

    def release(self, pooled: PooledConnection) -> None:
        """Take back what a whole response was had from."""
        if pooled.stream is None:
            self._plain.release(pooled)
        else:
            pooled.close()

    def drop(self, pooled: PooledConnection) -> None:
        """Close what is in use: of a shared connection that stream alone."""
        if pooled.stream is None:
            self._plain.drop(pooled)
        else:
            pooled.close()

    def join(self, user: object, wanted: Collection[tuple[str, int]]) -> None:
        """Keep connections to these hosts and ports until `user` leaves."""
        self._plain.join(user, wanted)
        self._want()

    def leave(self, user: object) -> None:
        """Close connections that nobody wants any more, each with its last stream."""
        self._plain.leave(user)
        self._want()

    def _want(self) -> None:
        for host_port, host in list(self._hosts.items()):
            is_wanted = self._plain.is_wanted(host_port)
            for each in list(host.connections):
                each.is_wanted = is_wanted
                each.close_if_unused()
            if not is_wanted and not (host.connections or host.waiters or host.dials):
                del self._hosts[host_port]

    def _connections(self) -> Iterator[H2Connection]:
        return (each for host in self._hosts.values() for each in host.connections)

    # Waiting.

    async def _wait(self, host: _Host, endpoint: Endpoint) -> _Waiter:
        """Wait in turn for a connection; whoever gives up leaves nothing behind."""
        for each in list(host.connections):
            each.close_if_unused()  # one that got stuck tells nobody
        waiter = _Waiter()
        host.waiters[waiter] = None
        self._dial_as_needed(host, endpoint)
        try:
            await waiter.has_got.wait()
            # What comes in the instant in which the call ends is passed on.
            await trio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            self._give_up(host, waiter, endpoint)
            raise
        if waiter.failure is not None:
            raise waiter.failure
        return waiter

    def _give_up(self, host: _Host, waiter: _Waiter, endpoint: Endpoint) -> None:
        if waiter in host.waiters:
            del host.waiters[waiter]
            if not host.waiters:
                for dial in host.dials:
                    dial.cancel(reason="nobody waits for it")
                host.dials.clear()
        if waiter.plain is not None:
            waiter.plain.close()
        if waiter.stream_of is not None:
            waiter.stream_of.lent -= 1
            waiter.stream_of.close_if_unused()
            self._serve(host, endpoint)

    def _changed(self, host: _Host, endpoint: Endpoint, connection: H2Connection) -> None:
        if connection.is_over and connection in host.connections:
            host.connections.remove(connection)
        if host.waiters:
            self._serve(host, endpoint)

    def _serve(self, host: _Host, endpoint: Endpoint) -> None:
        """Let those who wait have what room there is, and dial for the others."""
        while host.waiters and (found := _first_with_room(host)) is not None:
            waiter = _next(host)
            waiter.stream_of = found
            found.lent += 1
            waiter.has_got.set()
        if host.waiters:
            self._dial_as_needed(host, endpoint)

    # Dialling.

    def _dial_as_needed(self, host: _Host, endpoint: Endpoint) -> None:
        if any(not (each.lent or each.is_leaving or each.is_stuck) for each in host.connections):
            return  # the backend wants no calls at present, and would not on another one
        count = ceil(len(host.waiters) / host.streams_each)
        count = min(count, MAX_CONNECTIONS_PER_HOST - len(host.connections))
        while len(host.dials) < count:
            scope = trio.CancelScope()
            host.dials.add(scope)
            self.background.start(partial(self._dial, host, endpoint, scope))

    async def _dial(self, host: _Host, endpoint: Endpoint, scope: trio.CancelScope) -> None:
        """Dial for those who wait, and serve the connection until it is over."""
        dialled: H2Connection | Connection | None = None
        failure: Exception = UpstreamConnectFailure(timed_out=True)
        with scope, trio.move_on_after(self.connect_timeout_s):
            try:
                dialled = await self._connect(host, endpoint)
            except UpstreamFailure as error:
                failure = error
            except Exception as bug:  # noqa: BLE001  # the calls' tasks tell of it
                failure = bug
        host.dials.discard(scope)
        if isinstance(dialled, H2Connection):
            host.speaks_http_1 = False
            host.streams_each = dialled.capacity or 1
            host.connections.append(dialled)
            dialled.is_wanted = self._plain.is_wanted(endpoint.host_port)
            self._serve(host, endpoint)
            dialled.close_if_unused()
            await dialled.run()
        elif dialled is not None:
            self._found_http_1(host, dialled)
        elif not scope.cancel_called:
            self._failed(host, failure)
            self._serve(host, endpoint)

    async def _connect(self, host: _Host, endpoint: Endpoint) -> H2Connection | Connection:
        connection = await self.dialer.dial(endpoint)
        if self.version is HttpVersion.AUTO and not _speaks_h2(connection):
            return connection
        on_change = partial(self._changed, host, endpoint)
        shared = H2Connection(connection, self.background.timers, on_change)
        try:
            await shared.shake_hands()
        except BaseException:
            shared.close()
            raise
        return shared

    def _found_http_1(self, host: _Host, connection: Connection) -> None:
        """Give the first the connection; the others dial one each."""
        host.speaks_http_1 = True
        if host.waiters:
            waiter = _next(host)
            waiter.plain = connection
            waiter.has_got.set()
        else:
            connection.close()
        while host.waiters:
            _next(host).has_got.set()

    def _failed(self, host: _Host, failure: Exception) -> None:
        """Fail the share of those who wait that the dial was for."""
        for _ in range(ceil(len(host.waiters) / (len(host.dials) + 1))):
            waiter = _next(host)
            waiter.failure = failure
            if isinstance(failure, UpstreamFailure):
                waiter.failure = failure.again()  # each is told of as its own
            waiter.has_got.set()


AnyPool = Pool | H2Pool


def _next(host: _Host) -> _Waiter:
    waiter = next(iter(host.waiters))
    del host.waiters[waiter]
    return waiter


def _first_with_room(host: _Host) -> H2Connection | None:
    return next((each for each in host.connections if each.has_room), None)


def _lend(host: _Host, connection: H2Connection) -> PooledConnection:
    stream = connection.lend()
    return PooledConnection(stream, stream, host.siblings, stream=stream)


def _speaks_h2(connection: Connection) -> bool:
    return isinstance(connection, TlsConnection) and connection.application_protocol == _H2
