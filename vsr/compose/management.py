"""The management API of one process: what it is asked about, and what loads it."""

import os
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import trio

from vsr.admin.audit import Audit
from vsr.admin.ports import (
    BreakerView,
    ClusterView,
    Configuration,
    EndpointView,
    GenerationView,
    Serving,
    ServingView,
)
from vsr.compose.metrics import load_metrics
from vsr.compose.router import Router
from vsr.gateway.answering import Answerer
from vsr.resources.snapshot import Snapshot
from vsr.routing.generation import alive

if TYPE_CHECKING:
    from vsr.upstream.view import RuntimeView


@attrs.frozen
class LocalServing:
    """Implements `admin.ports.Serving` for a Router in this process."""

    router: Router
    drain_wanted: trio.Event
    started_at: float = attrs.field(factory=time.monotonic)
    monotonic: Callable[[], float] = time.monotonic
    _renderer: list[Callable[[], bytes]] = attrs.field(factory=list, init=False)

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
        )

    async def backends(self) -> tuple[ClusterView, ...]:
        """Return the clusters of what serves."""
        # Loaded for who asks.
        from vsr.upstream.view import clusters_of, view_of  # noqa: PLC0415

        await trio.lowlevel.checkpoint()
        views = view_of(clusters_of(self.router.active), trio.current_time())
        return tuple(_cluster_view(each) for each in views)

    async def metrics(self) -> bytes:
        """Return all metrics."""
        if not self._renderer:
            self._renderer.append(await trio.to_thread.run_sync(load_metrics, self.router))
        return self._renderer[0]()

    def drain(self) -> None:
        """Begin to drain."""
        self.drain_wanted.set()

    def served(self) -> Snapshot | None:
        """Return the configuration that it serves."""
        generation = self.router.active.current
        return None if generation is None else generation.snapshot


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


def app_loader(
    configuration: Configuration, serving: Serving, audit: Audit
) -> Callable[[], Answerer]:
    """Return what loads the API: for its first request, since nobody may ever ask."""

    def load() -> Answerer:
        from importlib.metadata import version  # noqa: PLC0415

        from vsr.admin.app import App, Surroundings  # noqa: PLC0415

        around = Surroundings(os.environ, time.time, _new_id, version("vllm-sr"))
        return App(configuration, serving, audit, around).answer

    return load


def _new_id() -> str:
    return secrets.token_hex(16)
