"""The process of a supervisor: it owns configuration and metrics, its workers serve."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
import trio

from vsr.compose.live import LiveConfiguration, Opened, open_document
from vsr.compose.loop import Signals, outlive_hangups, run_until_signal
from vsr.compose.metrics import serve_metrics
from vsr.config.history import DEFAULT_LIMIT
from vsr.gateway.metrics_listener import MetricsFront
from vsr.network.epoll import EpollNetwork
from vsr.resources.listener import Listener
from vsr.telemetry.access_log import AccessLog
from vsr.workers.components import Components, OnFailure
from vsr.workers.messages import Family
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
        history_limit: configurations that are kept.

    Raises:
        ConfigRejected: the document is refused, or its listeners cannot be bound.
    """
    del admin
    outlive_hangups()
    opened = open_document(config_path, history_limit=history_limit)

    async def serve(network: EpollNetwork, access_log: AccessLog, signals: Signals) -> None:
        del access_log  # workers write it
        supervisor = _open(opened, workers)
        components = Components()
        live = LiveConfiguration.of(
            opened,
            supervisor,
            history_limit=history_limit,
            components=components,
            renew=supervisor.renew_certificates,
        )
        async with trio.open_nursery() as tasks:
            await tasks.start(components.run, "workers", OnFailure.FATAL, supervisor.run)
            for listener in opened.snapshot.listeners:
                _log.info("listener %s serves on port %d", listener.name, listener.port)
            if metrics is not None:
                await serve_metrics(network, _front(supervisor), metrics, tasks, components)
            await _follow_until_signal(live, signals)
            _log.info("draining")
            tasks.start_soon(_end_on_signal, supervisor, signals)
            await supervisor.drain()
            tasks.cancel_scope.cancel(reason="drained")

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


async def _follow_until_signal(live: LiveConfiguration, signals: Signals) -> None:
    async with trio.open_nursery() as beside:
        await beside.start(live.run)
        await anext(signals)
        beside.cancel_scope.cancel(reason="draining")


async def _end_on_signal(supervisor: Supervisor, signals: Signals) -> None:
    async for _ in signals:
        _log.info("ending requests under way")
        supervisor.force_end()


@attrs.define(eq=False)
class _Gathered:
    """The metrics of all workers when they were asked for last."""

    supervisor: Supervisor
    families: tuple[Family, ...] = ()

    async def gather(self) -> None:
        self.families = await self.supervisor.metrics()

    def load(self) -> Callable[[], bytes]:
        # See `MetricsFront`.
        from vsr.workers.families import make_renderer  # noqa: PLC0415

        return make_renderer(self._told)

    def _told(self) -> Iterable[Family]:
        return self.families


def _front(supervisor: Supervisor) -> MetricsFront:
    gathered = _Gathered(supervisor)
    return MetricsFront(gathered.load, gathered.gather)
