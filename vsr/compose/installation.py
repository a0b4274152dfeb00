"""A Router that takes configurations while it serves: one process is the whole installation."""

from pathlib import Path

import attrs
import trio

from vsr.compose.generation import building
from vsr.compose.router import Router, bind_refused
from vsr.config.attempt import Reason
from vsr.config.restart import only_by_restart, reused
from vsr.config.slicing import in_slices
from vsr.gateway.certificates import load_certificates
from vsr.gateway.serve import BindFailed, ListenerChange
from vsr.network.tls_server import ServerCertificate
from vsr.resources.snapshot import Snapshot
from vsr.routing.generation import Generation


@attrs.frozen
class LocalInstallation:
    """Implements `config.lifecycle.Installation`."""

    router: Router
    folder: Path
    """Where relative paths in the document start."""

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return what only a restart would bring."""
        return only_by_restart(snapshot, self.router.tracing)

    async def prepare(self, snapshot: Snapshot, version: int) -> "PreparedRouter":
        """Build, bind and warm everything that serves `snapshot`.

        Raises:
            ConfigRejected: it cannot be built, or a listener cannot be bound or encrypted.
        """
        router = self.router
        previous = router.active.current
        certificates = await self._certificates(snapshot)
        generation = await in_slices(building(router.parts, snapshot, version, previous))
        change: ListenerChange | None = None
        try:
            try:
                change = await router.server.prepare(snapshot.listeners, certificates)
            except BindFailed as error:
                raise bind_refused(error) from None
            await router.warm(generation)
        except BaseException:
            if change is not None:
                change.close()
            generation.retire()
            raise
        return PreparedRouter(
            router,
            generation,
            change,
            reused(None if previous is None else previous.snapshot, snapshot),
        )

    async def _certificates(self, snapshot: Snapshot) -> dict[str, ServerCertificate]:
        if all(listener.tls is None for listener in snapshot.listeners):
            return {}
        return await trio.to_thread.run_sync(
            load_certificates, snapshot.listeners, self.folder, abandon_on_cancel=True
        )


@attrs.define(eq=False)
class PreparedRouter:
    """Implements `config.lifecycle.Prepared`."""

    router: Router
    generation: Generation
    change: ListenerChange
    reused: tuple[str, ...]

    def commit_now(self) -> None:
        """Serve it, in one step between two looks at the loop.

        Raises:
            ConfigRejected: another process has come to listen on an address; all is as it was.
        """
        try:
            self.change.open()
        except BindFailed as error:
            raise bind_refused(error) from None
        self.router.active.activate(self.generation)
        self.router.server.commit(self.change)

    async def commit(self) -> None:
        """Serve it; see `commit_now`."""
        self.commit_now()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def discard(self) -> None:
        """Give up what was built."""
        self.change.close()
        self.generation.retire()
        await trio.lowlevel.cancel_shielded_checkpoint()
