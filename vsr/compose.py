"""The wiring: registries, generations, the process nursery. The only module that knows all."""

import gc
import logging
import os
import random
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from pathlib import Path

import attrs
import trio

from vsr.config.report import Report
from vsr.config.source import check_bytes, load_snapshot
from vsr.decision.selection.builtin import BUILTIN_SELECTIONS
from vsr.decision.signals.builtin import BUILTIN_SIGNALS
from vsr.engine.extensions import Extensions, Surroundings
from vsr.engine.pipeline import compile_engine
from vsr.engine.plugins.builtin import BUILTIN_PLUGINS
from vsr.errors import ConfigRejected, Problem
from vsr.gateway.handler import Gateway
from vsr.gateway.serve import BindFailed, Server
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.network.epoll import EpollNetwork
from vsr.network.port import Network
from vsr.network.tls_server import CertificateRejected, ServerCertificate
from vsr.registry import Registry
from vsr.resources.snapshot import Snapshot
from vsr.routing.generation import ActiveGeneration, Generation
from vsr.routing.ports import NoRuntime, Runtime
from vsr.telemetry.access_log import AccessLog
from vsr.upstream.clusters import Clusters

_log = logging.getLogger("vsr")
_FLUSH_S = 2.0
_COLLECT_EVERY = 20_000
"""Allocations between collections of the youngest generation; requests leave no cycles behind."""


BUILTIN = Extensions(
    nodes=Registry("node type", BUILTIN_NODES),
    signals=Registry("signal", BUILTIN_SIGNALS),
    selections=Registry("selection algorithm", BUILTIN_SELECTIONS),
    plugins=Registry("plugin", BUILTIN_PLUGINS),
)
"""What ships with the Router."""


@attrs.frozen
class Parts:
    """What every generation of one process is built from."""

    network: Network
    extensions: Extensions
    rng: random.Random
    runtime: Runtime = attrs.field(factory=NoRuntime)

    @classmethod
    def default(cls, network: Network) -> "Parts":
        """Return the parts that ship with the Router."""
        return cls(
            network=network,
            extensions=BUILTIN,
            rng=random.Random(),  # noqa: S311  # spreads load, hides nothing
        )


def build_generation(parts: Parts, snapshot: Snapshot, version: int) -> Generation:
    """Build everything that serves `snapshot`.

    Raises:
        ConfigRejected: a decision or graph asks for something that does not exist.
    """
    clusters = Clusters(snapshot, parts.network, parts.rng, _default_tls_context)
    engine = compile_engine(
        snapshot,
        version,
        extensions=parts.extensions,
        surroundings=Surroundings(time.perf_counter, time.time, parts.runtime),
    )
    return Generation(version, snapshot, engine, clusters, on_unused=clusters.close)


@attrs.define(eq=False)
class Router:
    """A standalone Router: its gateway, its listeners, its active generation."""

    gateway: Gateway
    server: Server
    active: ActiveGeneration

    @classmethod
    async def bind(
        cls,
        parts: Parts,
        snapshot: Snapshot,
        access_log: AccessLog,
        *,
        folder: Path | None = None,
    ) -> "Router":
        """Build the first generation and bind its listeners.

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
        server = Server(parts.network, gateway, _load_certificates(snapshot, folder or Path()))
        try:
            await server.bind(snapshot.listeners)
        except BindFailed as error:
            path = f"listeners[{error.listener.name}]"
            mend = "free the address, or choose another address or port"
            raise ConfigRejected([Problem(path, str(error), mend=mend)]) from None
        active.activate(generation)
        return cls(gateway, server, active)


def _load_certificates(snapshot: Snapshot, folder: Path) -> dict[str, ServerCertificate]:
    """Load the certificates of all listeners that have one; reading files at the start may block.

    Raises:
        ConfigRejected: a pair cannot be served; every such listener is named.
    """
    certificates: dict[str, ServerCertificate] = {}
    problems: list[Problem] = []
    for listener in snapshot.listeners:
        if listener.tls is None:
            continue
        cert_file, key_file = folder / listener.tls.cert_file, folder / listener.tls.key_file
        try:
            certificates[listener.name] = ServerCertificate(listener.name, cert_file, key_file)
        except CertificateRejected as error:
            path = f"listeners[{listener.name}].tls"
            mend = "give it a certificate chain and the key that belongs to it, both as PEM"
            problems.append(Problem(path, "its certificate cannot be served", str(error), mend))
    if problems:
        raise ConfigRejected(problems)
    return certificates


Signals = AsyncIterator[int]
Serve = Callable[[EpollNetwork, AccessLog, Signals], Awaitable[None]]


def run_router(config_path: Path) -> None:
    """Serve `config_path` in standalone mode until SIGTERM or SIGINT.

    Raises:
        ConfigRejected: the document is refused, or its listeners cannot be bound.
    """
    snapshot = load_snapshot(config_path, os.environ)

    async def serve(network: EpollNetwork, access_log: AccessLog, signals: Signals) -> None:
        await serve_router(network, access_log, snapshot, signals, folder=config_path.parent)

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
            await serve_router(network, access_log, snapshot, signals, lambda: _say(banner))
            tasks.cancel_scope.cancel(reason="demo ends")

    _run(serve)


async def serve_router(
    network: EpollNetwork,
    access_log: AccessLog,
    snapshot: Snapshot,
    signals: Signals,
    on_ready: Callable[[], None] = lambda: None,
    *,
    folder: Path | None = None,
) -> None:
    """Serve `snapshot` until a signal asks to drain; a second one ends what is under way.

    Args:
        network: real sockets; it is running.
        access_log: gets a line per request.
        snapshot: what to serve.
        signals: of the process.
        on_ready: runs once it serves.
        folder: where relative paths in the document start.
    """
    router = await Router.bind(Parts.default(network), snapshot, access_log, folder=folder)
    async with trio.open_nursery() as tasks:
        await tasks.start(router.server.run)
        for name, bound in router.server.ports.items():
            _log.info("listener %s serves on port %d", name, bound)
        on_ready()
        await anext(signals)
        _log.info("draining")
        tasks.start_soon(_end_on_signal, router.server, signals)
        await router.server.drain()
        tasks.cancel_scope.cancel(reason="drained")


async def _end_on_signal(server: Server, signals: Signals) -> None:
    async for _ in signals:
        _log.info("ending requests under way")
        server.force_end()


def _run(serve: Serve) -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )

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


@cache
def _default_tls_context() -> ssl.SSLContext:
    """Return the context of all TLS backends: system CA bundle, TLS 1.2 or newer."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
