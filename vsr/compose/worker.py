"""A worker: one of several processes that serve, all of them on the same sockets."""

import fcntl
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import msgspec
import trio

from vsr.compose import topics
from vsr.compose.generation import Parts
from vsr.compose.installation import LocalInstallation, PreparedRouter
from vsr.compose.local_serving import LocalServing
from vsr.compose.loop import Loop, preload, run_for_another, write_all
from vsr.compose.router import Router
from vsr.network.inherited import InheritedNetwork
from vsr.resources.snapshot import Snapshot
from vsr.workers.active import SharedActive
from vsr.workers.components import OnFailure
from vsr.workers.messages import METRICS, Family
from vsr.workers.process import worker_channel
from vsr.workers.worker import MayAccept, Worker


def run_worker(number: int, descriptor: int) -> None:
    """Serve as worker `number` of the supervisor at the other end of `descriptor`."""
    in_turn = WriteInTurn()

    async def serve(loop: Loop) -> None:
        inherited = InheritedNetwork(loop.network)
        opening = OpenRouter(inherited, loop, in_turn)
        await Worker(worker_channel(descriptor), opening, inherited).run()

    run_for_another(serve, in_turn, f"worker {number}")


@attrs.define(eq=False)
class WriteInTurn:
    """Writes whole batches of lines: a pipe would take turns in the middle of them.

    A worker that dies lets go of the lock.
    """

    lock: int | None = None
    """A descriptor that all workers have of one file."""

    async def __call__(self, data: bytes) -> None:
        """Write to standard output, which all workers share."""
        await trio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)

    def _write(self, data: bytes) -> None:
        if self.lock is None:
            write_all(data)
            return
        fcntl.lockf(self.lock, fcntl.LOCK_EX)
        try:
            write_all(data)
        finally:
            fcntl.lockf(self.lock, fcntl.LOCK_UN)


@attrs.frozen
class OpenRouter:
    """Implements `workers.worker.Opening`."""

    network: InheritedNetwork
    loop: Loop
    in_turn: WriteInTurn

    async def __call__(
        self, snapshot: Snapshot, version: int, folder: Path, active: SharedActive
    ) -> "ServingRouter":
        """Build a Router."""
        self.in_turn.lock = active.word.descriptor
        parts = Parts.default(self.network, self.loop.components)
        parts = msgspec.structs.replace(parts, active=active)
        log = self.loop.access_log
        router = await Router.bind(parts, snapshot, log, folder=folder, version=version)
        told = LocalServing(router, trio.Event())
        return ServingRouter(router, LocalInstallation(router, folder), told)


@attrs.frozen
class ServingRouter:
    """Implements `workers.worker.Serving`."""

    router: Router
    installation: LocalInstallation
    told: LocalServing

    async def run(
        self,
        may_accept: MayAccept,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve."""
        serve = partial(self.router.run, may_accept)
        components = self.router.parts.components
        async with trio.open_nursery() as tasks:
            await tasks.start(components.run, "listeners", OnFailure.FATAL, serve)
            tasks.start_soon(preload, components)
            task_status.started()

    async def prepare(self, snapshot: Snapshot, version: int) -> PreparedRouter:
        """Build and warm what serves `snapshot`."""
        return await self.installation.prepare(snapshot, version)

    async def drain(self) -> None:
        """Drain."""
        await self.router.server.drain()

    def force_end(self) -> None:
        """End every request under way."""
        self.router.server.force_end()

    def renew_certificates(self) -> None:
        """Load them anew."""
        self.router.server.renew_certificates()

    async def answer(self, topic: str, question: bytes) -> bytes:
        """Answer the supervisor.

        Raises:
            ValueError: it asks for something that is not known here.
        """
        match topic:
            case topics.VIEW:
                return topics.encode(await self.told.view())
            case topics.BACKENDS:
                return topics.encode(await self.told.backends())
            case topics.QUARANTINE:
                self.told.heed(topics.decode_quarantined(question))
                return b""
            case _ if topic == METRICS:
                # The library is loaded for the first reader, in a thread.
                told = (await trio.to_thread.run_sync(_load_metrics))(self.router)
                return topics.encode(told)
        # Loaded for who asks: not many workers are.
        from vsr.compose.requests import answer  # noqa: PLC0415

        return answer(self.router.gateway.requests, topic, question)


def _load_metrics() -> Callable[[Router], tuple[Family, ...]]:
    from vsr.engine.execution_metrics import execution_metrics  # noqa: PLC0415
    from vsr.upstream.metrics import cluster_metrics  # noqa: PLC0415
    from vsr.upstream.view import clusters_of  # noqa: PLC0415
    from vsr.workers.families import families_of  # noqa: PLC0415

    def told(router: Router) -> tuple[Family, ...]:
        clusters = cluster_metrics(clusters_of(router.active))
        return families_of((*clusters, *execution_metrics(router.parts.executions)))

    return told
