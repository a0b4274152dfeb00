"""Where the management API listens: bound, moved and given another certificate while it serves."""

import logging
from pathlib import Path

import attrs
import msgspec
import trio

from vsr.compose.binding import PLACE, Binding
from vsr.config.attempt import Reason
from vsr.config.lifecycle import Installation, Prepared
from vsr.errors import ConfigRejected, Problem
from vsr.gateway.answering import AnsweringFront
from vsr.gateway.serve import NO_CERTIFICATES, BindFailed, ListenerChange, Server
from vsr.network.port import Network
from vsr.network.tls_server import CertificateRejected, ServerCertificate
from vsr.resources.listener import Listener
from vsr.resources.snapshot import Snapshot
from vsr.workers.components import Components, OnFailure

_NAME = "management"
COMPONENT = "management API"
_IDLE_S = 60.0
"""Source: the reference's listener."""
_MAX_CONNECTIONS = 1_000
"""Enough for operators; further ones wait, and take no memory from requests of clients."""
_log = logging.getLogger("vsr")


def check_at_start(binding: Binding | None, snapshot: Snapshot, folder: Path) -> None:
    """Look at where the API is to listen before anything is served; blocks on the disk.

    Raises:
        ConfigRejected: others would reach it without tokens, or its certificate cannot be served.
    """
    if binding is None:
        return
    if reasons := binding.check(snapshot):
        raise ConfigRejected([Problem(each.path, each.message) for each in reasons])
    load_certificate(binding, folder)


def load_certificate(binding: Binding, folder: Path) -> dict[str, ServerCertificate]:
    """Return the certificate of a binding, by its listener; none for clear text.

    Blocks on the disk.

    Args:
        binding: of the API.
        folder: where relative paths start.

    Raises:
        ConfigRejected: it cannot be served.
    """
    tls = binding.tls
    if tls is None:
        return {}
    try:
        certificate = ServerCertificate(_NAME, folder / tls.cert_file, folder / tls.key_file)
    except CertificateRejected as error:
        mend = "give it a certificate chain and the key that belongs to it, both as PEM"
        what = "its certificate cannot be served"
        raise ConfigRejected([Problem(f"{PLACE}.tls", what, str(error), mend)]) from None
    return {_NAME: certificate}


@attrs.define(eq=False)
class ManagementListener:
    """The listener of the API: one, or none where its address was taken."""

    network: Network
    front: AnsweringFront
    binding: Binding
    """As it is served, or was to be."""
    folder: Path
    """Where relative paths in the document start."""
    _server: Server | None = attrs.field(default=None, init=False)
    _tasks: trio.Nursery | None = attrs.field(default=None, init=False)
    """While it runs."""
    _components: Components = attrs.field(factory=Components, init=False)

    @property
    def port(self) -> int | None:
        """Return the bound port; None: nothing is bound."""
        return None if self._server is None else self._server.ports.get(_NAME)

    async def begin(self, tasks: trio.Nursery, components: Components) -> None:
        """Serve it in `tasks`, and begin again should it fail."""
        self._components = components
        await tasks.start(components.run, COMPONENT, OnFailure.RESTART, self.run)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; without a free address the Router serves all the same."""
        try:
            async with trio.open_nursery() as tasks:
                self._tasks = tasks
                try:
                    move = await self._bound(self.binding)
                    move.open()
                except ConfigRejected as error:
                    _log.error("the management API cannot be reached: %s", error)  # as above
                    self._components.degrade(COMPONENT, BindFailed.__name__)
                else:
                    move.commit_now()
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._server = self._tasks = None

    async def prepare(self, snapshot: Snapshot) -> "Move | None":
        """Bind and encrypt what another configuration wants; None: there is nothing to be changed.

        Raises:
            ConfigRejected: its address cannot be bound, or its certificate not be served.
        """
        wanted = self.binding.after(snapshot.management)
        if self._tasks is None:
            return None
        try:
            return await self._bound(wanted)
        except ConfigRejected as error:
            if wanted != self.binding or self.port is not None:
                raise
            # It was not reached before, and no other change waits for its address to be free.
            _log.error("the management API cannot be reached: %s", error)  # the reason says it all
            return None

    async def _bound(self, wanted: Binding) -> "Move":
        load = trio.to_thread.run_sync
        certificates = NO_CERTIFICATES
        if wanted.tls is not None:
            certificates = await load(load_certificate, wanted, self.folder, abandon_on_cancel=True)
        server = self._server or Server(self.network, self.front)
        listener = Listener(
            _NAME,
            wanted.address,
            wanted.port,
            _IDLE_S,
            max_connections=_MAX_CONNECTIONS,
            tls=wanted.tls,
        )
        try:
            change = await server.prepare([listener], certificates)
        except BindFailed as error:
            raise _taken(error) from None
        return Move(self, wanted, server, change)

    def serve(self, move: "Move") -> None:
        """Serve what was bound, in one step; what was served before ends with its requests."""
        if self._tasks is None:
            move.discard()
            return
        self.binding = move.binding
        self._components.recovered(COMPONENT)
        if self._server is None:
            self._server = move.server
            move.server.begin_with(move.change)
            self._tasks.start_soon(move.server.run)
        else:
            move.server.commit(move.change)
        if move.change.new:
            how = "" if move.binding.tls is None else " by TLS"
            _log.info("the management API answers on port %d%s", self.port, how)


def _taken(error: BindFailed) -> ConfigRejected:
    mend = "free the address, or choose another one"
    return ConfigRejected([Problem(PLACE, str(error), mend=mend)])


class Move(msgspec.Struct, frozen=True, eq=False):
    """A listener that is bound and not served yet."""

    listener: ManagementListener
    binding: Binding
    server: Server
    change: ListenerChange

    def open(self) -> None:
        """Let clients come to it; they are served once it is committed.

        Raises:
            ConfigRejected: another process has come to listen there.
        """
        try:
            self.change.open()
        except BindFailed as error:
            raise _taken(error) from None

    def commit_now(self) -> None:
        """Serve it; it is open."""
        self.listener.serve(self)

    def discard(self) -> None:
        """Give it up."""
        self.change.close()


@attrs.frozen
class WithManagement:
    """Implements `config.lifecycle.Installation`: what serves, and the API that moves with it."""

    installation: Installation
    listener: ManagementListener

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return why the process that runs cannot take `snapshot`."""
        own = self.listener.binding.check(snapshot)
        return (*self.installation.check(snapshot), *own)

    async def prepare(self, snapshot: Snapshot, version: int) -> Prepared:
        """Build, bind and warm everything that `snapshot` says.

        Raises:
            ConfigRejected: it cannot be built, bound or encrypted.
            VsrError: it cannot be warmed.
        """
        move = await self.listener.prepare(snapshot)
        try:
            prepared = await self.installation.prepare(snapshot, version)
        except BaseException:
            if move is not None:
                move.discard()
            raise
        return prepared if move is None else _PreparedBoth(prepared, move)


@attrs.frozen
class _PreparedBoth:
    """Implements `config.lifecycle.Prepared`."""

    prepared: Prepared
    move: Move

    @property
    def reused(self) -> tuple[str, ...]:
        return self.prepared.reused

    async def commit(self) -> None:
        self.move.open()
        await self.prepared.commit()
        self.move.commit_now()

    async def discard(self) -> None:
        self.move.discard()
        await self.prepared.discard()
