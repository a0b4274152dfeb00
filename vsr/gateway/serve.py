"""Listeners: accept connections, serve each on a task of its own, drain."""

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs
import msgspec
import trio

from vsr.gateway.connection import H1Connection
from vsr.gateway.exchange import Handler
from vsr.gateway.opening import Opening
from vsr.http.plain_head import PlainHeads
from vsr.network.port import ConnectionBroken, Network
from vsr.network.port import Listener as BoundListener
from vsr.network.timers import LazyTimers
from vsr.network.tls_server import ServerCertificate
from vsr.resources.listener import Listener

if TYPE_CHECKING:
    from vsr.gateway.h2_connection import H2Connection

DRAIN_GRACE_S = 25.0
"""What requests under way get to finish in a drain. Source: the reference's shutdown."""
_FORCED_END_S = 2.0
_QUEUED_S = 1.0
"""What a client that waited to be accepted in a drain gets to begin its request."""
NO_CERTIFICATES: Mapping[str, ServerCertificate] = MappingProxyType({})


class BindFailed(Exception):
    """A listener's address cannot be bound."""

    def __init__(self, listener: Listener, errno: int) -> None:
        super().__init__(f"cannot listen on port {listener.port}: {os.strerror(errno)}")
        self.listener = listener


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
        speaks_alike = (certificate is None) is (self.certificate is None)
        return resource.name == self.resource.name and speaks_alike

    def become(self, resource: Listener, certificate: ServerCertificate | None) -> None:
        """Go on as another configuration says; see `may_become`."""
        self.resource, self.certificate = resource, certificate
        self.__attrs_post_init__()
        self._slot_freed.set()  # the limit may be another one

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
            try:
                connection = await self.bound.accept()
            except ConnectionBroken:
                return
            opening = Opening(connection, self, self.handler, self.certificate)
            self.connections.add(opening)
            tasks.start_soon(self._serve, opening)

    def drain(self) -> None:
        """Serve who waits to be accepted, and let every connection end with its request."""
        self.bound.finish()
        self.idle_s = min(self.idle_s, _QUEUED_S)
        self._end_connections()

    def hand_over(self) -> None:
        """Leave new connections to whoever has the socket next; open ones end as in a drain."""
        self._accepting.cancel(reason="handed over")
        self._end_connections()

    def _end_connections(self) -> None:
        self.is_draining = True
        for connection in list(self.connections):
            connection.drain()

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


class Front(Protocol):
    """What answers the requests of a server's listeners."""

    is_draining: bool
    """Set by the server when it ends."""

    def handler_for(self, listener: Listener) -> Handler:
        """Return what handles the requests of a listener's connections."""


class ListenerChange(msgspec.Struct):
    """What the listeners of another configuration come to."""

    certificates: Mapping[str, ServerCertificate]
    """By listener."""
    kept: list[tuple[ListenerServer, Listener]] = []
    """Sockets that stay, and what they are next."""
    new: list[ListenerServer] = []
    gone: list[ListenerServer] = []

    def close(self) -> None:
        """Close what was bound for it, where it is never served."""
        for server in self.new:
            server.bound.close()


class Server:
    """Listeners that belong together: all those of standalone mode, or that of the metrics."""

    def __init__(
        self,
        network: Network,
        front: Front,
        certificates: Mapping[str, ServerCertificate] = NO_CERTIFICATES,
    ) -> None:
        """Take what is to be served.

        Args:
            network: where listeners are bound.
            front: answers the requests.
            certificates: by listener; one without its own speaks clear text.
        """
        self._network = network
        self._certificates = certificates
        self._front = front
        self._timers = LazyTimers()
        self._listeners: list[ListenerServer] = []
        self._emptied = trio.Event()
        self._tasks: trio.Nursery | None = None

    @property
    def ports(self) -> dict[str, int]:
        """Return the bound port of every listener by name."""
        return {
            server.resource.name: server.bound.port
            for server in self._listeners
            if not server.is_draining
        }

    @property
    def resources(self) -> list[Listener]:
        """Return what every listener is that takes connections."""
        return [server.resource for server in self._listeners if not server.is_draining]

    @property
    def open_connections(self) -> int:
        """Return how many client connections are open."""
        return sum(len(server.connections) for server in self._listeners)

    @property
    def is_empty(self) -> bool:
        """Return whether no client is connected, or waits to be accepted where nobody else is."""
        return not any(each.connections or each.is_accepting for each in self._listeners)

    async def bind(self, listeners: Sequence[Listener]) -> None:
        """Bind every listener.

        Raises:
            BindFailed: an address cannot be bound; what was bound before is closed again.
        """
        self.begin_with(await self.prepare(listeners, self._certificates))

    def begin_with(self, change: "ListenerChange") -> None:
        """Serve what was prepared from the beginning; `run` follows."""
        self._listeners = change.new

    async def prepare(
        self, listeners: Sequence[Listener], certificates: Mapping[str, ServerCertificate]
    ) -> "ListenerChange":
        """Bind what other listeners need beside those that are served.

        A socket whose address and port stay is kept, whatever else of its listener changes.

        Args:
            listeners: all of the next configuration.
            certificates: of these, by name.

        Raises:
            BindFailed: an address cannot be bound; what was bound before is closed again.
        """
        change = ListenerChange(certificates)
        free = {_place(server): server for server in self._listeners if not server.is_draining}
        try:
            for resource in listeners:
                served = free.pop((resource.address, resource.port), None)
                if served is not None:
                    change.kept.append((served, resource))
                    continue
                try:
                    bound = await self._network.listen(resource.address, resource.port)
                except OSError as error:
                    raise BindFailed(resource, error.errno or 0) from None
                change.new.append(self._new_server(resource, bound, certificates))
        except BaseException:
            change.close()
            raise
        change.gone.extend(free.values())
        return change

    def commit(self, change: "ListenerChange") -> None:
        """Serve other listeners from now on; `run` is running.

        One that is gone takes no connections any more, and its open ones end with the request that
        is under way.
        """
        assert self._tasks is not None  # noqa: S101  # see above
        for server, resource in change.kept:
            certificate = change.certificates.get(resource.name)
            if server.may_become(resource, certificate):
                server.become(resource, certificate)
                continue
            server.hand_over()
            change.new.append(self._new_server(resource, server.bound, change.certificates))
        for server in change.gone:
            server.drain()
        for server in change.new:
            self._listeners.append(server)
            self._tasks.start_soon(server.accept_forever, self._tasks)
        self._forget_ended()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until drained: returns once listeners and connections are closed."""
        async with trio.open_nursery() as timing:
            timing.start_soon(self._timers.run)
            async with trio.open_nursery() as tasks:
                self._tasks = tasks
                for server in self._listeners:
                    tasks.start_soon(server.accept_forever, tasks)
                task_status.started()
            timing.cancel_scope.cancel(reason="no connections left")

    async def drain(self, grace_s: float = DRAIN_GRACE_S) -> None:
        """Stop accepting, let requests finish for `grace_s`, then end them.

        Bounded: a client that never reads is cut off with the rest.
        """
        self._front.is_draining = True
        for server in self._listeners:
            server.drain()
        with trio.move_on_after(grace_s):
            await self._wait_until_empty()
            return
        self.force_end()
        with trio.move_on_after(_FORCED_END_S):
            await self._wait_until_empty()

    def force_end(self) -> None:
        """End every request under way."""
        for server in self._listeners:
            server.force_end()

    def close(self) -> None:
        """Take no connections any more; `run` has ended, however."""
        for server in self._listeners:
            server.bound.close()

    def _new_server(
        self,
        resource: Listener,
        bound: BoundListener,
        certificates: Mapping[str, ServerCertificate],
    ) -> ListenerServer:
        handler = self._front.handler_for(resource)
        certificate = certificates.get(resource.name)
        return ListenerServer(resource, bound, handler, self._timers, self._tell_empty, certificate)

    async def _wait_until_empty(self) -> None:
        while not self.is_empty:
            self._emptied = trio.Event()
            await self._emptied.wait()

    def _tell_empty(self) -> None:
        self._emptied.set()
        self._forget_ended()

    def _forget_ended(self) -> None:
        """Forget listeners that are gone, once their last connection is."""
        if not self._front.is_draining:
            for server in list(self._listeners):
                if server.is_draining and not (server.connections or server.is_accepting):
                    self._listeners.remove(server)


def _place(server: ListenerServer) -> tuple[str, int]:
    return server.resource.address, server.resource.port
