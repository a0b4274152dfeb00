"""What the management API is told of a Router whose requests several workers serve."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs
import trio

from vsr.admin.merged import merge_backends, merge_components, merge_generations
from vsr.admin.ports import ServingView
from vsr.admin.quarantine import Quarantine, Quarantined
from vsr.admin.views import BackendsView, WorkerView
from vsr.compose.local_serving import component_views
from vsr.compose.topics import (
    BACKENDS,
    QUARANTINE,
    VIEW,
    decode_backends,
    decode_view,
    encode,
)
from vsr.workers.components import Components
from vsr.workers.fleet import Phase, WorkerStatus
from vsr.workers.messages import Family
from vsr.workers.supervisor import Supervisor

if TYPE_CHECKING:
    from vsr.compose.requests import RequestsOfWorkers
    from vsr.routing.request_views import RequestDetail, RequestList


@attrs.define(eq=False)
class GatheredMetrics:
    """The metrics of all workers when they were asked for last."""

    supervisor: Supervisor
    families: tuple[Family, ...] = ()
    _renderer: list[Callable[[], bytes]] = attrs.field(factory=list, init=False)

    async def gather(self) -> None:
        """Ask for them."""
        self.families = await self.supervisor.metrics()

    def load(self) -> Callable[[], bytes]:
        """Return what renders them; its library is loaded here."""
        # See `gateway.metrics_listener.MetricsFront`.
        from vsr.workers.families import make_renderer  # noqa: PLC0415

        return make_renderer(self._told)

    async def rendered(self) -> bytes:
        """Return them as they are now."""
        if not self._renderer:
            self._renderer.append(await trio.to_thread.run_sync(self.load))
        await self.gather()
        return self._renderer[0]()

    def _told(self) -> Iterable[Family]:
        return self.families


@attrs.frozen
class SupervisedServing:
    """Implements `admin.ports.Serving` for the workers of a supervisor."""

    supervisor: Supervisor
    components: Components
    """Of the supervisor's own process."""
    drain_wanted: trio.Event
    started_at: float = attrs.field(factory=time.monotonic)
    monotonic: Callable[[], float] = time.monotonic
    quarantine: Quarantine = attrs.field(init=False)
    _gathered: GatheredMetrics = attrs.field(init=False)

    @quarantine.default
    def _own_quarantine(self) -> Quarantine:
        return Quarantine(lambda: self.supervisor.snapshot, self._spread, time.time)

    @_gathered.default
    def _own_metrics(self) -> GatheredMetrics:
        return GatheredMetrics(self.supervisor)

    async def view(self) -> ServingView:
        """Return what serves: sums, and each worker."""
        answers = await self.supervisor.asking.ask(VIEW)
        views = {worker: decode_view(answer) for worker, answer in answers.told.items()}
        told = views.values()
        is_draining = self.supervisor.fleet.is_ending or self.drain_wanted.is_set()
        statuses, now = self.supervisor.statuses, trio.current_time()
        return ServingView(
            ready=not is_draining and any(each.phase is Phase.SERVING for each in statuses),
            draining=is_draining,
            workers=len(statuses),
            uptime_s=round(self.monotonic() - self.started_at, 3),
            open_connections=sum(each.open_connections for each in told),
            listeners={each.name: each.port for each in self.supervisor.snapshot.listeners},
            generations=merge_generations(each.generations for each in told),
            processes=tuple(_worker_view(each, now) for each in statuses),
            components=merge_components(
                component_views(self.components),
                {worker: each.components for worker, each in views.items()},
            ),
            missing=answers.missing,
        )

    async def backends(self) -> BackendsView:
        """Return the clusters of what serves, as all workers see them."""
        answers = await self.supervisor.asking.ask(BACKENDS)
        told = {worker: decode_backends(answer) for worker, answer in answers.told.items()}
        return merge_backends(told, answers.missing)

    async def metrics(self) -> bytes:
        """Return all metrics of all workers."""
        return await self._gathered.rendered()

    async def requests(self, limit: int) -> "RequestList":
        """Return the requests of all workers as one list."""
        return await self._requests().requests(limit)

    async def request(self, request_id: str, start_time: str) -> "RequestDetail | None":
        """Return the newest that any worker has."""
        return await self._requests().request(request_id, start_time)

    def _requests(self) -> "RequestsOfWorkers":
        # Loaded for who asks.
        from vsr.compose.requests import RequestsOfWorkers  # noqa: PLC0415

        return RequestsOfWorkers(self.supervisor.asking.ask)

    def drain(self) -> None:
        """Begin to drain."""
        self.drain_wanted.set()

    async def _spread(self, quarantined: Quarantined) -> tuple[int, ...]:
        answers = await self.supervisor.asking.impart(QUARANTINE, encode(quarantined))
        # A slot without a process misses nothing: its next one hears of it before it serves.
        there = {each.worker for each in self.supervisor.statuses if each.phase is not Phase.ENDED}
        return tuple(worker for worker in answers.missing if worker in there)


def _worker_view(status: WorkerStatus, now: float) -> WorkerView:
    is_there = status.phase is not Phase.ENDED
    return WorkerView(
        status.worker,
        status.pid,
        status.phase,
        status.version,
        status.restarts,
        round(now - status.started_at, 3) if is_there else 0.0,
    )
