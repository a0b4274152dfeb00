"""A Router that takes configurations while it serves: one process is the whole installation."""

from pathlib import Path

import attrs
import trio

from vsr.compose.generation import building
from vsr.compose.router import Router, bind_refused
from vsr.config.attempt import Reason
from vsr.config.restart import only_by_restart
from vsr.config.slicing import in_slices
from vsr.gateway.certificates import load_certificates
from vsr.gateway.serve import BindFailed, ListenerChange
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
        certificates = await trio.to_thread.run_sync(
            load_certificates, snapshot.listeners, self.folder
        )
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
        return PreparedRouter(router, generation, change, _reused(previous, snapshot))


@attrs.define(eq=False)
class PreparedRouter:
    """Implements `config.lifecycle.Prepared`."""

    router: Router
    generation: Generation
    change: ListenerChange
    reused: tuple[str, ...]

    def commit_now(self) -> None:
        """Serve it, in one step between two looks at the loop."""
        self.router.active.activate(self.generation)
        self.router.server.commit(self.change)

    async def commit(self) -> None:
        """Serve it."""
        self.commit_now()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def discard(self) -> None:
        """Give up what was built."""
        self.change.close()
        self.generation.retire()
        await trio.lowlevel.cancel_shielded_checkpoint()


def _reused(previous: Generation | None, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the components that need nothing of what has changed. Source: standalone-mode 5.2."""
    if previous is None:
        return ()
    before = previous.snapshot
    signals = before.settings == snapshot.settings and before.programs == snapshot.programs
    upstream = before.clusters == snapshot.clusters and before.listeners == snapshot.listeners
    return (*(("signals",) if signals else ()), *(("upstream",) if upstream else ()))
