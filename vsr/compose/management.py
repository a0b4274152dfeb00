"""The management API of one process: where it is bound, and what it is asked about."""

import logging
import os
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import msgspec
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
from vsr.config.attempt import Code, Reason, Stage
from vsr.gateway.answering import Answerer, AnsweringFront
from vsr.gateway.serve import BindFailed, Server
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.resources.management import Management, is_loopback
from vsr.resources.snapshot import Snapshot
from vsr.routing.generation import alive

if TYPE_CHECKING:
    from vsr.routing.request_views import RequestDetail, RequestList, Watched
    from vsr.upstream.view import RuntimeView

_log = logging.getLogger("vsr")
_IDLE_S = 60.0
"""Source: the reference's listener."""
_PATH = "global.services.management_api"


class Binding(msgspec.Struct, frozen=True):
    """Where the management API listens."""

    address: str
    port: int
    is_flag: bool
    """Whether the command line says so; then the document does not."""

    @classmethod
    def of(cls, management: Management, flag: tuple[str, int] | None) -> "Binding | None":
        """Return where it listens; None: nowhere.

        Args:
            management: what the document says.
            flag: what the command line says; None: nothing, port 0: nowhere.
        """
        if flag is None:
            return cls(management.address, management.port, is_flag=False)
        address, port = flag
        return cls(address, port, is_flag=True) if port else None

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return why the API cannot go on as it is bound under another configuration."""
        management = snapshot.management
        reasons = []
        moved = (management.address, management.port) != (self.address, self.port)
        if moved and not self.is_flag:
            what = "the management API is bound when the Router starts, so restart it to apply this"
            reasons.append(Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, what, _PATH))
        is_guarded = management.is_remote and management.asks_token
        if not is_loopback(self.address) and not is_guarded:
            what = (
                "the management API is bound to an address that others reach, which needs "
                "remote_exposure: true and auth with mode: bearer"
            )
            reasons.append(Reason(Stage.VALIDATE, Code.INVALID_RESOURCE, what, _PATH))
        return tuple(reasons)


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

    async def requests(self, limit: int) -> "RequestList":
        """Return its requests."""
        await trio.lowlevel.checkpoint()
        return self._watch().list(limit)

    async def request(self, request_id: str, start_time: str) -> "RequestDetail | None":
        """Return one of its requests."""
        await trio.lowlevel.checkpoint()
        return self._watch().find(request_id, start_time)

    async def metrics(self) -> bytes:
        """Return all metrics."""
        if not self._renderer:
            self._renderer.append(await trio.to_thread.run_sync(load_metrics, self.router))
        return self._renderer[0]()

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


@attrs.frozen
class ManagementApi:
    """The API, as it runs beside what it is about."""

    network: Network
    binding: Binding
    configuration: Configuration
    serving: Serving
    audit: Audit

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve it until cancelled; without a free address the Router serves all the same."""
        listener = Listener("management", self.binding.address, self.binding.port, _IDLE_S)
        server = Server(self.network, AnsweringFront(self._load))
        try:
            await server.bind([listener])
        except BindFailed as error:
            _log.error("the management API cannot be reached: %s", error)  # no traceback helps
            task_status.started()
            return
        async with trio.open_nursery() as tasks:
            await tasks.start(server.run)
            _log.info("the management API answers on port %d", server.ports[listener.name])
            task_status.started()

    def _load(self) -> Answerer:
        # For the first request, in a thread: a Router that nobody manages need not load it.
        from importlib.metadata import version  # noqa: PLC0415

        from vsr.admin.app import App, Surroundings  # noqa: PLC0415

        around = Surroundings(os.environ, time.time, _new_id, version("vllm-sr"))
        return App(self.configuration, self.serving, self.audit, around).answer


def _new_id() -> str:
    return secrets.token_hex(16)
