"""What the management API is told of a Router in this process."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import trio

from vsr.admin.ports import GenerationView, ServingView
from vsr.admin.quarantine import Quarantine, Quarantined
from vsr.admin.views import (
    BackendsView,
    BreakerView,
    ClusterView,
    ComponentView,
    EndpointView,
    WorkerView,
)
from vsr.compose.metrics import load_metrics
from vsr.compose.router import Router
from vsr.resources.snapshot import Snapshot
from vsr.routing.generation import alive
from vsr.workers.components import Components

if TYPE_CHECKING:
    from vsr.routing.request_views import RequestDetail, RequestList, Watched
    from vsr.upstream.view import RuntimeView


@attrs.frozen
class LocalServing:
    """Implements `admin.ports.Serving` for a Router in this process."""

    router: Router
    drain_wanted: trio.Event
    started_at: float = attrs.field(factory=time.monotonic)
    monotonic: Callable[[], float] = time.monotonic
    quarantine: Quarantine = attrs.field(init=False)
    _renderer: list[Callable[[], bytes]] = attrs.field(factory=list, init=False)

    @quarantine.default
    def _own_quarantine(self) -> Quarantine:
        return Quarantine(self.served, self._spread, time.time)

    async def view(self) -> ServingView:
        """Return what serves."""
        router = self.router
        is_draining = router.gateway.is_draining or self.drain_wanted.is_set()
        await trio.lowlevel.checkpoint()
        return ServingView(
            ready=router.active.current is not None and not is_draining,
            draining=is_draining,
            workers=1,
            uptime_s=round(self.monotonic() - self.started_at, 3),
            open_connections=router.server.open_connections,
            listeners=router.server.ports,
            generations=tuple(
                GenerationView(each.version, each is router.active.current, each.leases)
                for each in alive(router.active)
            ),
            processes=(self._process(),),
            components=component_views(router.parts.components),
        )

    async def backends(self) -> BackendsView:
        """Return the clusters of what serves."""
        # Loaded for who asks.
        from vsr.upstream.view import clusters_of, view_of  # noqa: PLC0415

        await trio.lowlevel.checkpoint()
        current = self.router.active.current
        views = view_of(clusters_of(self.router.active), trio.current_time())
        return BackendsView(
            0 if current is None else current.version, tuple(_cluster_view(each) for each in views)
        )

    async def metrics(self) -> bytes:
        """Return all metrics."""
        if not self._renderer:
            self._renderer.append(await trio.to_thread.run_sync(load_metrics, self.router))
        return self._renderer[0]()

    async def requests(self, limit: int) -> "RequestList":
        """Return its requests."""
        await trio.lowlevel.checkpoint()
        return self._watch().list(limit)

    async def request(self, request_id: str, start_time: str) -> "RequestDetail | None":
        """Return one of its requests."""
        await trio.lowlevel.checkpoint()
        return self._watch().find(request_id, start_time)

    def _watch(self) -> "Watched":
        # Loaded for who asks.
        from vsr.compose.requests import watch_of  # noqa: PLC0415

        return watch_of(self.router.gateway.requests)

    def drain(self) -> None:
        """Begin to drain."""
        self.drain_wanted.set()

    def served(self) -> Snapshot | None:
        """Return the configuration that it serves."""
        generation = self.router.active.current
        return None if generation is None else generation.snapshot

    def heed(self, quarantined: Quarantined) -> None:
        """Keep calls from these endpoints, and from no others."""
        self.router.parts.quarantine.replace(quarantined.names, quarantined.change)

    async def _spread(self, quarantined: Quarantined) -> tuple[int, ...]:
        self.heed(quarantined)
        await trio.lowlevel.checkpoint()
        return ()

    def _process(self) -> WorkerView:
        current = self.router.active.current
        return WorkerView(
            worker=1,
            pid=os.getpid(),
            phase="starting" if current is None else "serving",
            version=0 if current is None else current.version,
            restarts=0,
            uptime_s=round(self.monotonic() - self.started_at, 3),
        )


def component_views(components: Components) -> tuple[ComponentView, ...]:
    """Return the components of this process."""
    return tuple(
        ComponentView(each.name, 0, each.on_failure, each.state, each.failures, each.last_failure)
        for each in components.statuses
    )


def _cluster_view(view: "RuntimeView") -> ClusterView:
    connections, pending, requests = view.limits
    return ClusterView(
        view.name,
        view.lb_policy,
        view.is_panicking,
        BreakerView(view.would_refuse, view.active, view.waiting, connections, pending, requests),
        tuple(
            EndpointView(
                each.name,
                each.is_available,
                each.is_healthy,
                each.is_ejected,
                each.is_quarantined,
                each.ejection_reason,
                each.ejected_for_s,
                each.in_flight,
                each.weight,
                None if each.latency_s is None else round(each.latency_s * 1000, 3),
                each.attempts,
            )
            for each in view.hosts
        ),
    )
