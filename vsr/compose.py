"""The wiring: registries, generations, the process nursery. The only module that knows all."""

import gc
import logging
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import msgspec
import trio

from vsr.config.report import Report
from vsr.config.source import check_bytes, load_snapshot
from vsr.engine.execution_stats import ExecutionStats
from vsr.engine.extensions import Extensions, StateKeeper, Surroundings
from vsr.engine.pipeline import compile_engine
from vsr.engine.shipped import BUILTIN
from vsr.engine.stores import Stores, open_configured, open_memory
from vsr.errors import ConfigRejected, Problem
from vsr.gateway.certificates import load_certificates
from vsr.gateway.gateway import Gateway
from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.opening import load_http2
from vsr.gateway.serve import BindFailed, Server
from vsr.gateway.tracing import TracedGateway
from vsr.network.epoll import EpollNetwork
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import Tracing
from vsr.routing.generation import ActiveGeneration, Generation
from vsr.routing.ports import GraphPorts, NoRuntime, Runtime
from vsr.telemetry.access_log import AccessLog
from vsr.telemetry.spans import SpanSink, open_sink
from vsr.upstream.background import Background
from vsr.upstream.clusters import Clusters
from vsr.upstream.clusters import Surroundings as UpstreamSurroundings
from vsr.upstream.tls_contexts import backend_context

if TYPE_CHECKING:
    from vsr.graph.run import GraphRun
    from vsr.graph.suspend.tool_ids import DrawBytes

_log = logging.getLogger("vsr")
_FLUSH_S = 2.0
_COLLECT_EVERY = 20_000
"""Allocations between collections of the youngest generation; requests leave no cycles behind."""


class Parts(msgspec.Struct, frozen=True):
    """What every generation of one process is built from."""

    network: Network
    extensions: Extensions
    rng: random.Random
    runtime: Runtime = msgspec.field(default_factory=NoRuntime)
    open_spans: Callable[[Tracing], SpanSink] = open_sink
    """Called where tracing is on."""
    background: Background = msgspec.field(default_factory=Background)
    monotonic: Callable[[], float] = time.perf_counter
    """See `engine.extensions.Surroundings`, as for what follows."""
    unix: Callable[[], float] = time.time
    on_run: "Callable[[GraphRun], None] | None" = None
    draw: "DrawBytes" = secrets.token_bytes
    """Bytes that nobody can guess, for ids that a client gets."""
    stores: Stores = msgspec.field(default_factory=partial(Stores, open_memory))
    """Of runs that wait for their clients' tools."""
    executions: ExecutionStats = msgspec.field(default_factory=ExecutionStats)
    """Of graphs."""

    @classmethod
    def default(cls, network: Network) -> "Parts":
        """Return the parts that ship with the Router."""
        return cls(
            network=network,
            extensions=BUILTIN,
            rng=random.Random(),  # noqa: S311  # spreads load, hides nothing
            stores=Stores(partial(open_configured, os.environ, secrets.token_bytes)),
        )


def build_generation(
    parts: Parts, snapshot: Snapshot, version: int, previous: Generation | None = None
) -> Generation:
    """Build everything that serves `snapshot`.

    Args:
        parts: what to build from.
        snapshot: what to serve.
        version: of the configuration.
        previous: what serves now, to be retired by this one; unchanged clusters go on as they are.

    Raises:
        ConfigRejected: a decision or graph asks for something that does not exist, or TLS settings
            of a backend cannot be used.
    """
    engine = compile_engine(
        snapshot,
        version,
        extensions=parts.extensions,
        surroundings=Surroundings(
            parts.monotonic,
            parts.unix,
            parts.runtime,
            parts.on_run,
            _keeper(parts, snapshot) if snapshot.has_graphs else None,
            parts.executions.add,
        ),
    )
    # Behind everything that may be refused: it takes over what the one before has.
    earlier = None if previous is None else previous.upstream
    clusters = Clusters(
        snapshot,
        UpstreamSurroundings(parts.network, parts.rng, backend_context, parts.background),
        earlier if isinstance(earlier, Clusters) else None,
    )
    if not snapshot.has_graphs:
        return Generation(version, snapshot, engine, clusters, on_unused=clusters.close)
    # Loaded where they are needed, as all that only graphs need.
    from vsr.upstream.caller import UpstreamCaller  # noqa: PLC0415
    from vsr.upstream.fetch import HttpFetch  # noqa: PLC0415

    fetch = HttpFetch(parts.network, backend_context, snapshot.settings.egress)
    engine.ports = GraphPorts(UpstreamCaller(clusters), fetch)

    def close() -> None:
        clusters.close()
        fetch.close()

    return Generation(version, snapshot, engine, clusters, on_unused=close)


def _keeper(parts: Parts, snapshot: Snapshot) -> StateKeeper:
    return StateKeeper(parts.stores.store(snapshot.settings.looper.state), parts.draw)


@attrs.define(eq=False)
class Router:
    """A standalone Router: its gateway, its listeners, its active generation."""

    parts: Parts
    gateway: Gateway
    server: Server
    active: ActiveGeneration
    _first: Generation
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
    ) -> "Router":
        """Build the first generation and bind its listeners; `run` serves it.

        Args:
            parts: what to build from.
            snapshot: what to serve.
            access_log: gets a line per request.
            folder: where relative paths in the document start; None is the working directory.

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
        generation = build_generation(parts, snapshot, 1)
        active = ActiveGeneration()
        gateway = Gateway(active, access_log)
        certificates = load_certificates(snapshot.listeners, folder or Path())
        tracing, traced = snapshot.tracing, None
        if tracing is not None:
            traced = TracedGateway(gateway, tracing, parts.open_spans(tracing), parts.rng)
        server = Server(parts.network, traced or gateway, certificates)
        try:
            await server.bind(snapshot.listeners)
        except BindFailed as error:
            path = f"listeners[{error.listener.name}]"
            mend = "free the address, or choose another address or port"
            raise ConfigRejected([Problem(path, str(error), mend=mend)]) from None
        return cls(parts, gateway, server, active, generation, traced)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until drained; started once the first generation is active."""
        try:
            async with trio.open_nursery() as upkeep:
                self._upkeep = upkeep
                await upkeep.start(self.parts.background.run)
                async with trio.open_nursery() as serving:
                    await serving.start(self.server.run)
                    await self.activate(self._first)
                    task_status.started()
                upkeep.cancel_scope.cancel(reason="drained")
        finally:
            if self._traced is not None:
                with trio.CancelScope(shield=True, relative_deadline=_FLUSH_S):
                    await self._traced.close()

    async def activate(self, generation: Generation) -> None:
        """Warm `generation` and serve it in place of the one before; `run` is running."""
        assert self._upkeep is not None  # noqa: S101  # see above
        scope = trio.CancelScope()
        generation.on_retired = scope.cancel
        self._upkeep.start_soon(_run_in, scope, generation.upstream.run)
        try:
            await generation.upstream.warm()
        except BaseException:
            generation.retire()
            raise
        self.active.activate(generation)


async def _run_in(scope: trio.CancelScope, run: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await run()


Signals = AsyncIterator[int]
Serve = Callable[[EpollNetwork, AccessLog, Signals], Awaitable[None]]


def run_router(config_path: Path, metrics: Listener | None = None) -> None:
    """Serve `config_path` in standalone mode until SIGTERM or SIGINT.

    Args:
        config_path: the document.
        metrics: where they can be read; None: nowhere.

    Raises:
        ConfigRejected: the document is refused, or its listeners cannot be bound.
    """
    snapshot = load_snapshot(config_path, os.environ)

    async def serve(network: EpollNetwork, access_log: AccessLog, signals: Signals) -> None:
        folder = config_path.parent
        router = await Router.bind(Parts.default(network), snapshot, access_log, folder=folder)
        async with trio.open_nursery() as tasks:
            on_ready = partial(tasks.start_soon, trio.to_thread.run_sync, load_http2)
            await serve_router(router, signals, on_ready, metrics=metrics)

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
) -> None:
    """Serve until a signal asks to drain; a second one ends what is under way.

    Args:
        router: its network is running.
        signals: of the process.
        on_ready: runs once it serves.
        metrics: where they can be read; None: nowhere.
    """
    async with trio.open_nursery() as tasks:
        await tasks.start(router.run)
        for name, bound in router.server.ports.items():
            _log.info("listener %s serves on port %d", name, bound)
        if metrics is not None:
            await _serve_metrics(router, metrics, tasks)
        on_ready()
        await anext(signals)
        _log.info("draining")
        tasks.start_soon(_end_on_signal, router.server, signals)
        await router.server.drain()
        tasks.cancel_scope.cancel(reason="drained")


async def _serve_metrics(router: Router, listener: Listener, tasks: trio.Nursery) -> None:
    """Let operators read the metrics; without a free address the Router serves all the same."""
    server = Server(router.parts.network, MetricsFront(partial(_load_metrics, router)))
    try:
        await server.bind([listener])
    except BindFailed as error:
        _log.error("metrics cannot be read: %s", error)  # no traceback helps
        return
    await tasks.start(server.run)
    _log.info("metrics can be read on port %d", server.ports[listener.name])


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
