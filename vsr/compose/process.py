"""The process: its loop, its signals, its logs, and the Router in it."""

import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import trio

from vsr.compose.generation import Parts
from vsr.compose.installation import LocalInstallation
from vsr.compose.live import LiveConfiguration, open_document
from vsr.compose.loop import Signals, run_until_signal
from vsr.compose.metrics import serve_metrics
from vsr.compose.router import Router
from vsr.config.history import DEFAULT_LIMIT
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.opening import load_http2
from vsr.gateway.serve import Server
from vsr.network.epoll import EpollNetwork
from vsr.resources.listener import Listener
from vsr.telemetry.access_log import AccessLog
from vsr.workers.components import Components, OnFailure

_log = logging.getLogger("vsr")


class Beside(Protocol):
    """What runs beside a Router that serves."""

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until cancelled."""


def run_router(
    config_path: Path, metrics: Listener | None = None, *, history_limit: int = DEFAULT_LIMIT
) -> None:
    """Serve `config_path` in standalone mode, and what it changes to, until SIGTERM or SIGINT.

    Args:
        config_path: the document.
        metrics: where they can be read; None: nowhere.
        history_limit: configurations that are kept.

    Raises:
        ConfigRejected: the document is refused, or its listeners cannot be bound.
    """
    opened = open_document(config_path, history_limit=history_limit)

    async def serve(network: EpollNetwork, access_log: AccessLog, signals: Signals) -> None:
        parts, components = Parts.default(network), Components()
        router = await Router.bind(
            parts,
            opened.snapshot,
            access_log,
            folder=config_path.parent,
            version=opened.version,
        )
        live = LiveConfiguration.of(
            opened,
            LocalInstallation(router, config_path.parent),
            history_limit=history_limit,
            components=components,
        )
        async with trio.open_nursery() as tasks:
            on_ready = partial(tasks.start_soon, trio.to_thread.run_sync, load_http2)
            await serve_router(
                router,
                signals,
                on_ready,
                metrics=metrics,
                beside=live.run,
                components=components,
            )

    run_until_signal(serve)


def run_demo(host: str, port: int) -> None:
    """Serve the demo document with two embedded demo models until SIGTERM or SIGINT.

    Raises:
        ConfigRejected: the listener cannot be bound.
    """
    from vsr.demo.document import demo_banner, serve_demo_models  # noqa: PLC0415  # the demo alone

    async def serve(network: EpollNetwork, access_log: AccessLog, signals: Signals) -> None:
        async with trio.open_nursery() as tasks:
            text = await tasks.start(serve_demo_models, network, host, port)
            snapshot = check_bytes(text.encode(), {}, Report("demo document")).snapshot
            banner = demo_banner(host, port)
            router = await Router.bind(Parts.default(network), snapshot, access_log)
            await serve_router(router, signals, lambda: _say(banner))
            tasks.cancel_scope.cancel(reason="demo ends")

    run_until_signal(serve)


async def serve_router(
    router: Router,
    signals: Signals,
    on_ready: Callable[[], None] = lambda: None,
    *,
    metrics: Listener | None = None,
    beside: Beside | None = None,
    components: Components | None = None,
) -> None:
    """Serve until a signal asks to drain; a second one ends what is under way.

    Args:
        router: its network is running.
        signals: of the process.
        on_ready: runs once it serves.
        metrics: where they can be read; None: nowhere.
        beside: is started once it serves, and ends when it drains.
        components: keeps those of the process going.
    """
    components = components or Components()
    async with trio.open_nursery() as tasks:
        await tasks.start(components.run, "listeners", OnFailure.FATAL, router.run)
        for name, bound in router.server.ports.items():
            _log.info("listener %s serves on port %d", name, bound)
        if metrics is not None:
            front = MetricsFront(partial(_load_metrics, router))
            await serve_metrics(router.parts.network, front, metrics, tasks, components)
        on_ready()
        await _wait_beside(beside, signals)
        _log.info("draining")
        tasks.start_soon(_end_on_signal, router.server, signals)
        await router.server.drain()
        tasks.cancel_scope.cancel(reason="drained")


async def _wait_beside(beside: Beside | None, signals: Signals) -> None:
    """Wait for a signal while `beside` runs."""
    async with trio.open_nursery() as tasks:
        if beside is not None:
            await tasks.start(beside)
        await anext(signals)
        tasks.cancel_scope.cancel(reason="draining")


def _load_metrics(router: Router) -> Callable[[], bytes]:
    """Return what renders the metrics of what serves at the time; its library is loaded here."""
    # See `MetricsFront`.
    from vsr.engine.execution_metrics import execution_metrics  # noqa: PLC0415
    from vsr.upstream.metrics import clusters_of, make_renderer  # noqa: PLC0415

    graphs = partial(execution_metrics, router.parts.executions)
    return make_renderer(partial(clusters_of, router.active), graphs)


async def _end_on_signal(server: Server, signals: Signals) -> None:
    async for _ in signals:
        _log.info("ending requests under way")
        server.force_end()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
