"""The process of a supervisor: configuration, metrics and management; its workers serve."""

import logging
from pathlib import Path

import trio

from vsr.compose.binding import Binding
from vsr.compose.live import LiveConfiguration, Opened, open_document
from vsr.compose.loop import Beside, Loop, Signals, outlive_hangups, run_until_signal, wait_beside
from vsr.compose.management_listener import check_at_start
from vsr.compose.metrics import serve_metrics
from vsr.compose.supervised import GatheredMetrics, SupervisedServing
from vsr.config.history import DEFAULT_LIMIT
from vsr.gateway.metrics_listener import MetricsFront
from vsr.resources.listener import Listener
from vsr.workers.components import OnFailure
from vsr.workers.process import SpawnWorker
from vsr.workers.sockets import ListeningSockets
from vsr.workers.supervisor import Supervisor

_WORKER = "vsr.commands.worker_process"
_log = logging.getLogger("vsr")


def run_workers(
    config_path: Path,
    workers: int,
    metrics: Listener | None = None,
    *,
    admin: tuple[str, int] | None = None,
    history_limit: int = DEFAULT_LIMIT,
) -> None:
    """Serve `config_path`, and what it changes to, in several processes until SIGTERM or SIGINT.

    Args:
        config_path: the document.
        workers: how many processes serve; more than one.
        metrics: where those of all can be read; None: nowhere.
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
        supervisor = _open(opened, workers)
        beside = Beside()
        live = LiveConfiguration.of(
            opened,
            supervisor,
            history_limit=history_limit,
            components=loop.components,
            renew=supervisor.renew_certificates,
        )
        beside.changes = live.run
        if binding is not None:
            serving = SupervisedServing(supervisor, loop.components, beside.drain_wanted)
            api = live.management(loop.network, binding, serving, lambda: supervisor.snapshot)
            beside.management = api.begin
        await _serve(supervisor, loop, signals, metrics, beside)

    run_until_signal(serve)


def _open(opened: Opened, workers: int) -> Supervisor:
    return Supervisor.open(
        workers,
        opened.snapshot,
        opened.version,
        opened.path.parent,
        SpawnWorker(_WORKER),
        ListeningSockets(),
    )


async def _serve(
    supervisor: Supervisor,
    loop: Loop,
    signals: Signals,
    metrics: Listener | None,
    beside: Beside,
) -> None:
    """Let workers serve until a signal asks to drain; a second one ends what is under way."""
    components = loop.components
    async with trio.open_nursery() as tasks:
        await tasks.start(components.run, "workers", OnFailure.FATAL, supervisor.run)
        for listener in supervisor.snapshot.listeners:
            _log.info("listener %s serves on port %d", listener.name, listener.port)
        if metrics is not None:
            gathered = GatheredMetrics(supervisor)
            front = MetricsFront(gathered.load, gathered.gather)
            await serve_metrics(loop.network, front, metrics, tasks, components)
        if beside.management is not None:
            await beside.management(tasks, components)
        await wait_beside(beside, signals)
        _log.info("draining")
        tasks.start_soon(_end_on_signal, supervisor, signals)
        await supervisor.drain()
        tasks.cancel_scope.cancel(reason="drained")


async def _end_on_signal(supervisor: Supervisor, signals: Signals) -> None:
    async for _ in signals:
        _log.info("ending requests under way")
        supervisor.force_end()
