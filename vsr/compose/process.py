"""The process: its loop, its signals, its logs, and the Router in it."""

import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from vsr.compose.binding import Binding
from vsr.compose.generation import Parts
from vsr.compose.installation import LocalInstallation
from vsr.compose.live import LiveConfiguration, open_document
from vsr.compose.local_serving import LocalServing
from vsr.compose.loop import (
    Beside,
    Loop,
    Signals,
    outlive_hangups,
    preload,
    run_until_signal,
    wait_beside,
)
from vsr.compose.management_listener import check_at_start
from vsr.compose.metrics import load_metrics, serve_metrics
from vsr.compose.router import Router
from vsr.config.history import DEFAULT_LIMIT
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.serve import Server
from vsr.resources.listener import Listener
from vsr.workers.components import OnFailure

_log = logging.getLogger("vsr")


def run_router(
    config_path: Path,
    metrics: Listener | None = None,
    *,
    admin: tuple[str, int] | None = None,
    history_limit: int = DEFAULT_LIMIT,
) -> None:
    """Serve `config_path` in standalone mode, and what it changes to, until SIGTERM or SIGINT.

    Args:
        config_path: the document.
        metrics: where they can be read; None: nowhere.
        admin: address and port of the management API; None: what the document says, port 0: none.
        history_limit: configurations that are kept.

    Raises:
        ConfigRejected: the document is refused, or its listeners cannot be bound.
    """
    outlive_hangups()
    opened = open_document(config_path, history_limit=history_limit)
    binding = Binding.of(opened.snapshot.management, admin)
    check_at_start(binding, opened.snapshot, config_path.parent)

    async def serve(loop: Loop, signals: Signals) -> None:
        components = loop.components
        router = await Router.bind(
            Parts.default(loop.network, components),
            opened.snapshot,
            loop.access_log,
            folder=config_path.parent,
            version=opened.version,
        )
        beside = Beside()
        live = LiveConfiguration.of(
            opened,
            LocalInstallation(router, config_path.parent),
            history_limit=history_limit,
            components=components,
            renew=router.server.renew_certificates,
        )
        beside.changes = live.run
        if binding is not None:
            serving = LocalServing(router, beside.drain_wanted)
            api = live.management(loop.network, binding, serving, serving.served)
            beside.management = api.begin
        async with trio.open_nursery() as tasks:
            on_ready = partial(tasks.start_soon, preload, components)
            await serve_router(router, signals, on_ready, metrics=metrics, beside=beside)

    run_until_signal(serve)


def run_demo(host: str, port: int) -> None:
    """Serve the demo document with two embedded demo models until SIGTERM or SIGINT.

    Raises:
        ConfigRejected: the listener cannot be bound.
    """
    from vsr.demo.document import demo_banner, serve_demo_models  # noqa: PLC0415  # the demo alone

    async def serve(loop: Loop, signals: Signals) -> None:
        async with trio.open_nursery() as tasks:
            text = await tasks.start(serve_demo_models, loop.network, host, port)
            snapshot = check_bytes(text.encode(), {}, Report("demo document")).snapshot
            banner = demo_banner(host, port)
            parts = Parts.default(loop.network, loop.components)
            router = await Router.bind(parts, snapshot, loop.access_log)
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
) -> None:
    """Serve until a signal asks to drain; a second one ends what is under way.

    Args:
        router: its network is running.
        signals: of the process.
        on_ready: runs once it serves.
        metrics: where they can be read; None: nowhere.
        beside: what runs beside it.
    """
    beside = beside or Beside()
    components = router.parts.components
    async with trio.open_nursery() as tasks:
        await tasks.start(components.run, "listeners", OnFailure.FATAL, router.run)
        for name, bound in router.server.ports.items():
            _log.info("listener %s serves on port %d", name, bound)
        if metrics is not None:
            front = MetricsFront(partial(load_metrics, router))
            await serve_metrics(router.parts.network, front, metrics, tasks, components)
        on_ready()
        if beside.management is not None:
            await beside.management(tasks, components)
        await wait_beside(beside, signals)
        _log.info("draining")
        tasks.start_soon(_end_on_signal, router.server, signals)
        await router.server.drain()
        tasks.cancel_scope.cancel(reason="drained")


async def _end_on_signal(server: Server, signals: Signals) -> None:
    async for _ in signals:
        _log.info("ending requests under way")
        server.force_end()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
