"""What every generation of a process is built from, and how one is built."""

import os
import random
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from vsr.engine.execution_stats import ExecutionStats
from vsr.engine.extensions import Extensions, StateKeeper, Surroundings
from vsr.engine.pipeline import compile_engine
from vsr.engine.shipped import BUILTIN
from vsr.engine.stores import Stores, open_configured, open_memory
from vsr.network.port import Network
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import Tracing
from vsr.routing.generation import Active, Generation
from vsr.routing.ports import GraphPorts, NoRuntime, Runtime
from vsr.slices import Sliced, at_once
from vsr.telemetry.spans import SpanSink, open_sink
from vsr.upstream.background import Background
from vsr.upstream.clusters import Clusters, build_clusters
from vsr.upstream.clusters import Surroundings as UpstreamSurroundings
from vsr.upstream.quarantine import Quarantine
from vsr.upstream.tls_contexts import backend_context
from vsr.workers.components import Components

if TYPE_CHECKING:
    from vsr.graph.run import GraphRun
    from vsr.graph.suspend.tool_ids import DrawBytes


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
    quarantine: Quarantine = msgspec.field(default_factory=Quarantine)
    """Endpoints that an operator has taken out of rotation."""
    active: Active | None = None
    """What one of several workers serves; None: the process is the whole installation."""

    @property
    def upstream(self) -> UpstreamSurroundings:
        """Return what clusters are built from."""
        return UpstreamSurroundings(
            self.network, self.rng, backend_context, self.background, self.quarantine
        )

    components: Components = msgspec.field(default_factory=Components)
    """Of the process."""

    @classmethod
    def default(cls, network: Network, components: Components | None = None) -> "Parts":
        """Return the parts that ship with the Router, for a process with these components."""
        components = components or Components()
        return cls(
            components=components,
            background=Background(components.keep),
            network=network,
            extensions=BUILTIN,
            rng=random.Random(),  # noqa: S311  # spreads load, hides nothing
            stores=Stores(partial(open_configured, os.environ, secrets.token_bytes)),
        )


def build_generation(
    parts: Parts, snapshot: Snapshot, version: int, previous: Generation | None = None
) -> Generation:
    """Build everything that serves `snapshot` at once; see `building`."""
    return at_once(building(parts, snapshot, version, previous))


def building(
    parts: Parts, snapshot: Snapshot, version: int, previous: Generation | None = None
) -> Sliced[Generation]:
    """Build everything that serves `snapshot`, in slices.

    Args:
        parts: what to build from.
        snapshot: what to serve.
        version: of the configuration.
        previous: what serves now, to be retired by this one; unchanged clusters go on as they are.

    Raises:
        ConfigRejected: a decision or graph asks for something that does not exist, or TLS settings
            of a backend cannot be used.
    """
    engine = yield from compile_engine(
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
    clusters = yield from build_clusters(
        snapshot,
        parts.upstream,
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


def compile_alone(snapshot: Snapshot) -> None:
    """Compile everything that routes by `snapshot`, to find what is wrong with it.

    Raises:
        ConfigRejected: a decision or graph asks for something that does not exist.
    """
    surroundings = Surroundings(time.perf_counter, time.time, NoRuntime())
    at_once(compile_engine(snapshot, 0, extensions=BUILTIN, surroundings=surroundings))


def _keeper(parts: Parts, snapshot: Snapshot) -> StateKeeper:
    return StateKeeper(parts.stores.store(snapshot.settings.looper.state), parts.draw)
