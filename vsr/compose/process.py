"""The process: its loop, its signals, its logs, and the Router in it."""

import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import attrs
import trio

from vsr.compose.generation import Parts
from vsr.compose.live import LiveConfiguration, open_document
from vsr.compose.management import Binding
from vsr.compose.metrics import load_metrics
from vsr.compose.router import Router
from vsr.config.history import DEFAULT_LIMIT
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected, Problem
from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.opening import load_http2
from vsr.gateway.serve import BindFailed, Server
from vsr.network.epoll import EpollNetwork
from vsr.resources.listener import Listener
from vsr.telemetry.access_log import AccessLog

_log = logging.getLogger("vsr")
_FLUSH_S = 2.0
_COLLECT_EVERY = 20_000
"""Allocations between collections of the youngest generation; requests leave no cycles behind."""


Signals = AsyncIterator[int]


class Runs(Protocol):
    """Something that runs until cancelled."""

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run."""


@attrs.define(eq=False)
class Beside:
    """What runs beside a Router that serves."""

    changes: Runs | None = None
    """Is started once it serves, and ends when it drains."""
    management: Runs | None = None
    """Is there to the end."""
    drain_wanted: trio.Event = attrs.field(factory=trio.Event)
    """Drains as a signal does."""


Serve = Callable[[EpollNetwork, AccessLog, Signals], Awaitable[None]]


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
    # It reads the document anew once that is served; before and behind that it ends nothing.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    opened = open_document(config_path, history_limit=history_limit)
    binding = Binding.of(opened.snapshot.management, admin)
    if binding is not None and (reasons := binding.check(opened.snapshot)):
        raise ConfigRejected([Problem(each.path, each.message) for each in reasons])

    async def serve(network: EpollNetwork, access_log: AccessLog, signals: Signals) -> None:
        parts = Parts.default(network)
        router = await Router.bind(
            parts,
            opened.snapshot,
            access_log,
            folder=config_path.parent,
            version=opened.version,
        )
        live = LiveConfiguration.of(opened, router, history_limit=history_limit, binding=binding)
        beside = Beside(live.run)
        if binding is not None:
            beside.management = live.management(router, binding, beside.drain_wanted).run
        async with trio.open_nursery() as tasks:
            on_ready = partial(tasks.start_soon, trio.to_thread.run_sync, load_http2)
            await serve_router(router, signals, on_ready, metrics=metrics, beside=beside)

    _run(serve)


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

    _run(serve)


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
    async with trio.open_nursery() as tasks:
        await tasks.start(router.run)
        for name, bound in router.server.ports.items():
            _log.info("listener %s serves on port %d", name, bound)
        if metrics is not None:
            await _serve_metrics(router, metrics, tasks)
        on_ready()
        if beside.management is not None:
            await tasks.start(beside.management)
        await _wait_beside(beside, signals)
        _log.info("draining")
        tasks.start_soon(_end_on_signal, router.server, signals)
        await router.server.drain()
        tasks.cancel_scope.cancel(reason="drained")


async def _wait_beside(beside: Beside, signals: Signals) -> None:
    """Wait until somebody wants to drain, while changes of the configuration are taken."""

    async def wait_for_signal() -> None:
        await anext(signals)
        beside.drain_wanted.set()

    async with trio.open_nursery() as tasks:
        if beside.changes is not None:
            await tasks.start(beside.changes)
        tasks.start_soon(wait_for_signal)
        await beside.drain_wanted.wait()
        tasks.cancel_scope.cancel(reason="draining")


async def _serve_metrics(router: Router, listener: Listener, tasks: trio.Nursery) -> None:
    """Let operators read the metrics; without a free address the Router serves all the same."""
    server = Server(router.parts.network, MetricsFront(partial(load_metrics, router)))
    try:
        await server.bind([listener])
    except BindFailed as error:
        _log.error("metrics cannot be read: %s", error)  # no traceback helps
        return
    await tasks.start(server.run)
    _log.info("metrics can be read on port %d", server.ports[listener.name])


async def _end_on_signal(server: Server, signals: Signals) -> None:
    async for _ in signals:
        _log.info("ending requests under way")
        server.force_end()


def _run(serve: Serve) -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    # It writes every header line that it compresses, keys included, whoever lowers that level.
    logging.getLogger("hpack").setLevel(logging.INFO)

    async def main() -> None:
        # What has been built by now stays: the collector need not look at it again, nor so often.
        # What little garbage loading left stays with it: finding that takes a tenth of a second.
        gc.freeze()
        gc.set_threshold(_COLLECT_EVERY)
        gc.enable()
        network = EpollNetwork()
        access_log = AccessLog(_write_stdout)
        # Open until the last line is written: an unread signal would end the process before.
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as tasks:
                await tasks.start(network.run)
                tasks.start_soon(access_log.run)
                try:
                    await serve(network, access_log, signals)
                finally:
                    with trio.CancelScope(shield=True, relative_deadline=_FLUSH_S):
                        await access_log.flush()
                tasks.cancel_scope.cancel(reason="stopped")

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        raise _first_rejection(group) or group from None


def _first_rejection(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return the rejection that a nursery wrapped, if it is what ended the process."""
    found: BaseException | None = group.subgroup(ConfigRejected)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


async def _write_stdout(data: bytes) -> None:
    """Write past Python's own buffer: a reader that is stuck must not hold up the exit."""

    def write() -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]

    await trio.to_thread.run_sync(write, abandon_on_cancel=True)
