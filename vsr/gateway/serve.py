"""Listeners that belong together: bound, served, changed as one, drained."""

import os
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import msgspec
import trio

from vsr.gateway.exchange import Handler
from vsr.gateway.listener_server import ListenerServer
from vsr.network.port import Listener as BoundListener
from vsr.network.port import Network, Place
from vsr.network.timers import LazyTimers
from vsr.network.tls_server import ServerCertificate
from vsr.resources.listener import Listener

DRAIN_GRACE_S = 25.0
"""What requests under way get to finish in a drain. Source: the reference's shutdown."""
_FORCED_END_S = 2.0
NO_CERTIFICATES: Mapping[str, ServerCertificate] = MappingProxyType({})


class BindFailed(Exception):
    """A listener's address cannot be bound."""

    def __init__(self, listener: Listener, errno: int) -> None:
        super().__init__(f"cannot listen on port {listener.port}: {os.strerror(errno)}")
        self.listener = listener


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
    is_open: bool = False

    def open(self) -> None:
        """Let clients come to what was bound; they are served once this is committed.

        Raises:
            BindFailed: another process has come to listen there; `close` is to follow.
        """
        if self.is_open:
            return
        for server in self.new:
            try:
                server.bound.open()
            except OSError as error:
                raise BindFailed(server.resource, error.errno or 0) from None
        self.is_open = True

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
        change = await self.prepare(listeners, self._certificates)
        try:
            self.begin_with(change)
        except BindFailed:
            change.close()
            raise

    def begin_with(self, change: "ListenerChange") -> None:
        """Serve what was prepared from the beginning; `run` follows.

        Raises:
            BindFailed: see `ListenerChange.open`.
        """
        change.open()
        self._listeners = change.new

    async def prepare(
        self, listeners: Sequence[Listener], certificates: Mapping[str, ServerCertificate]
    ) -> "ListenerChange":
        """Bind what other listeners need beside those that are served; no client comes there yet.

        A socket whose address and port stay is kept, whatever else of its listener changes.

        Args:
            listeners: all of the next configuration.
            certificates: of these, by name.

        Raises:
            BindFailed: an address cannot be bound; what was bound before is closed again.
        """
        change = ListenerChange(certificates)
        free = {_place(server): server for server in self._listeners if not server.is_draining}
        wanted: list[Listener] = []
        for resource in listeners:
            served = free.pop((resource.address, resource.port), None)
            if served is None:
                wanted.append(resource)
            else:
                change.kept.append((served, resource))
        change.gone.extend(free.values())
        try:
            for resource in wanted:
                bound = await self._bind(resource, free)
                change.new.append(self._new_server(resource, bound, certificates))
        except BaseException:
            change.close()
            raise
        return change

    async def _bind(self, resource: Listener, gone: Collection[Place]) -> BoundListener:
        beside = [place for place in gone if place[1] == resource.port]
        try:
            return await self._network.bind(resource.address, resource.port, beside)
        except OSError as error:
            raise BindFailed(resource, error.errno or 0) from None

    def commit(self, change: "ListenerChange") -> None:
        """Serve other listeners from now on; `run` is running.

        One that is gone takes no connections any more; see `ListenerServer.leave` for its open
        ones.

        Raises:
            BindFailed: see `ListenerChange.open`; where that was called before, nothing can fail.
        """
        assert self._tasks is not None  # noqa: S101  # see above
        change.open()
        for server, resource in change.kept:
            certificate = change.certificates.get(resource.name)
            if server.may_become(resource, certificate):
                server.become(resource, certificate)
                continue
            server.hand_over(certificate, self._tasks)
            change.new.append(self._new_server(resource, server.bound, change.certificates))
        for server in change.gone:
            server.leave()
        for server in change.new:
            self._listeners.append(server)
            self._tasks.start_soon(server.accept_forever, self._tasks)
        self._forget_ended()

    def renew_certificates(self) -> None:
        """Load every certificate anew for connections to come; blocks on the disk."""
        for server in self._listeners:
            if server.certificate is not None:
                server.certificate.renew()

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


def _place(server: ListenerServer) -> Place:
    return server.resource.address, server.resource.port
