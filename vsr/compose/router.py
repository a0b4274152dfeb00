"""A standalone Router: listeners, gateway, and the generation that serves."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import trio

from vsr.compose.generation import Parts, build_generation
from vsr.compose.loop import health_of
from vsr.errors import ConfigRejected, Problem
from vsr.gateway.certificates import load_certificates
from vsr.gateway.gateway import Gateway
from vsr.gateway.serve import BindFailed, Server
from vsr.gateway.tracing import TracedGateway
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import Tracing
from vsr.routing.generation import Active, ActiveGeneration, Generation
from vsr.telemetry.access_log import AccessLog

_FLUSH_S = 2.0


@attrs.define(eq=False)
class Router:
    """A standalone Router: its gateway, its listeners, its active generation."""

    parts: Parts
    gateway: Gateway
    server: Server
    active: Active
    tracing: Tracing | None
    """How requests are traced; None: they are not."""
    _first: Generation | None
    """Until it serves."""
    _traced: TracedGateway | None = None
    """Before the gateway, where tracing is on."""
    _upkeep: trio.Nursery | None = attrs.field(default=None, init=False)
    """Of what runs beside the requests."""

    @classmethod
    async def bind(
        cls,
        parts: Parts,
        snapshot: Snapshot,
        access_log: AccessLog,
        *,
        folder: Path | None = None,
        version: int = 1,
    ) -> "Router":
        """Build the first generation and bind its listeners; `run` serves it.

        Args:
            parts: what to build from.
            snapshot: what to serve.
            access_log: gets a line per request.
            folder: where relative paths in the document start; None is the working directory.
            version: of the configuration.

        Raises:
            ConfigRejected: there is no listener, or one cannot be bound or encrypted.
        """
        if not snapshot.listeners:
            raise ConfigRejected(
                [
                    Problem(
                        "listeners",
                        "standalone mode needs at least one listener in the configuration",
                    )
                ]
            )
        generation = build_generation(parts, snapshot, version)
        active = ActiveGeneration() if parts.active is None else parts.active
        gateway = Gateway(active, access_log)
        certificates = load_certificates(snapshot.listeners, folder or Path())
        tracing, traced = snapshot.tracing, None
        if tracing is not None:
            sink = parts.open_spans(tracing)
            traced = TracedGateway(gateway, tracing, sink, parts.rng)
            parts.components.watch("span exporter", lambda: health_of(sink.losses))
        server = Server(parts.network, traced or gateway, certificates)
        try:
            await server.bind(snapshot.listeners)
        except BindFailed as error:
            raise bind_refused(error) from None
        return cls(parts, gateway, server, active, tracing, generation, traced)

    async def run(
        self,
        may_accept: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until drained; started once the first generation is active.

        Args:
            may_accept: awaited before clients are taken, where others serve them meanwhile.
            task_status: for the nursery.
        """
        try:
            async with trio.open_nursery() as upkeep:
                self._upkeep = upkeep
                await upkeep.start(self.parts.background.run)
                async with trio.open_nursery() as serving:
                    if self.parts.active is None:
                        await serving.start(self.server.run)
                        await self.activate(self._take_first())
                    else:
                        # Other workers serve the clients that come before it is warm.
                        await self.activate(self._take_first())
                        await may_accept()
                        await serving.start(self.server.run)
                    task_status.started()
                upkeep.cancel_scope.cancel(reason="drained")
        finally:
            if self._traced is not None:
                with trio.CancelScope(shield=True, relative_deadline=_FLUSH_S):
                    await self._traced.close()

    def _take_first(self) -> Generation:
        """Return the first generation, and keep it no longer: others take its place."""
        first, self._first = self._first, None
        assert first is not None  # noqa: S101  # it runs once
        return first

    async def activate(self, generation: Generation) -> None:
        """Warm `generation` and serve it in place of the one before; `run` is running."""
        try:
            await self.warm(generation)
        except BaseException:
            generation.retire()
            raise
        self.active.activate(generation)

    async def warm(self, generation: Generation) -> None:
        """Warm `generation`, which keeps itself up until it is retired; `run` is running."""
        assert self._upkeep is not None  # noqa: S101  # see above
        scope = trio.CancelScope()
        generation.on_retired = scope.cancel
        self._upkeep.start_soon(_run_in, scope, generation.upstream.run)
        await generation.upstream.warm()


def bind_refused(error: BindFailed) -> ConfigRejected:
    """Return what to tell of a listener whose address cannot be bound."""
    path = f"listeners[{error.listener.name}]"
    mend = "free the address, or choose another address or port"
    return ConfigRejected([Problem(path, str(error), mend=mend)])


async def _run_in(scope: trio.CancelScope, run: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await run()
