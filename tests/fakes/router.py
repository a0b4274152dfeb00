"""A whole Router on a network in memory, with its access log in a list."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs
import msgspec
import trio
import trio.testing

from tests.demo.raw_client import CHAT, Got, ask
from vsr.compose.generation import Parts, build_generation
from vsr.compose.router import Router
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.engine.extensions import Extensions
from vsr.engine.stores import Stores
from vsr.graph.suspend.settings import open_memory
from vsr.graph.suspend.store import SuspendStore
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
from vsr.http.h1_client import ClientConnection
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import Connection, ConnectionBroken
from vsr.resources.looper import StateStore
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import Tracing
from vsr.routing.generation import Generation
from vsr.routing.ports import Runtime
from vsr.telemetry.access_log import AccessLog
from vsr.telemetry.spans import SpanSink
from vsr.upstream.clusters import Clusters

ROUTER_PORT = 8899


@attrs.define(eq=False)
class RunningRouter:
    """A Router that serves until its nursery is cancelled, seen from outside and from within."""

    network: MemoryNetwork
    router: Router
    parts: Parts
    access_log: AccessLog
    _log: list[bytes]

    @property
    def generation(self) -> Generation:
        """Return the generation that new requests get."""
        generation = self.router.active.current
        assert generation is not None
        return generation

    async def connect(self) -> MemoryConnection:
        """Open a client connection."""
        return await self.network.connect("router", ROUTER_PORT)

    async def ask(
        self,
        body: bytes = b"",
        *,
        target: bytes = CHAT,
        method: bytes = b"POST",
        lines: Sequence[HeaderLine] = (),
        patience_s: float = 1000,
    ) -> Got:
        """Send one request on a connection of its own and read its answer to the end."""
        connection = await self.connect()
        got = await ask(
            connection, body, target=target, method=method, lines=lines, patience_s=patience_s
        )
        connection.close()
        return got

    async def log(self) -> list[dict[str, Any]]:
        """Return the access log so far, one mapping per line."""
        return [json.loads(line) for line in (await self.log_text()).splitlines()]

    async def log_text(self) -> bytes:
        """Return the access log so far as it was written."""
        await trio.testing.wait_all_tasks_blocked()
        await self.access_log.flush()
        return b"".join(self._log)

    def activate(self, document: str | Snapshot, version: int) -> Generation:
        """Serve `document` from now on; return its generation."""
        previous = self.generation
        generation = build_generation(self.parts, as_snapshot(document), version, previous)
        self.router.active.activate(generation)
        return generation

    async def held(self, *generations: Generation) -> tuple[int, int]:
        """Return the open leases and the backend connections in use, once nothing moves."""
        await trio.testing.wait_all_tasks_blocked()
        looked_at = generations or (self.generation,)
        return (
            sum(generation.leases for generation in looked_at),
            sum(clusters_of(generation).connections_in_use for generation in looked_at),
        )


async def start_router(
    nursery: trio.Nursery,
    network: MemoryNetwork,
    document: str | Snapshot,
    *,
    extensions: Extensions | None = None,
    runtime: Runtime | None = None,
    open_spans: Callable[[Tracing], SpanSink] | None = None,
    open_states: Callable[[StateStore], SuspendStore] = open_memory,
) -> RunningRouter:
    """Start a Router that serves `document` until `nursery` is cancelled; runs `network` too.

    Args:
        nursery: the Router lives in it.
        network: its clients and backends are on it.
        document: what it serves.
        extensions: in place of what ships with the Router.
        runtime: answers learned signals, in place of one that knows nothing.
        open_spans: opens what spans go to, in place of the exporter that the document names.
        open_states: opens what runs wait in for their clients' tools.
    """
    written: list[bytes] = []

    async def sink(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        written.append(data)

    await nursery.start(network.run)
    parts, access_log = Parts.default(network), AccessLog(sink)
    parts = msgspec.structs.replace(
        parts,
        extensions=extensions or parts.extensions,
        runtime=runtime or parts.runtime,
        open_spans=open_spans or parts.open_spans,
        stores=Stores(open_states),
    )
    router = await Router.bind(parts, as_snapshot(document), access_log)
    await nursery.start(router.run)
    return RunningRouter(network, router, parts, access_log, written)


async def read_large(connection: Connection) -> tuple[bool, bytes]:
    """Read one answer of any size; return whether it ended as it should, and its body."""
    http = ClientConnection()
    http.begin(is_head_request=False)
    parts: list[bytes] = []
    with suppress(FramingError, ConnectionBroken):
        while not http.is_complete:
            data = await connection.receive()
            if data:
                http.feed(data)
            else:
                http.feed_end()
            parts.append(http.take())
    return http.is_complete, b"".join(parts)


def as_snapshot(document: str | Snapshot) -> Snapshot:
    """Return what a YAML text compiles to."""
    if isinstance(document, Snapshot):
        return document
    return check_bytes(document.encode(), {}, Report("test document")).snapshot


def clusters_of(generation: Generation) -> Clusters:
    """Return a generation's clusters."""
    assert isinstance(generation.upstream, Clusters)
    return generation.upstream


def model_of(port: int, name: str = "alpha", **members: str) -> str:
    """Return one entry of `providers.models` as YAML: a backend on `port`.

    `members` are further members of the backend ref, but `reliability` and `provider_model_id`,
    which belong to the model; values are YAML.
    """
    of_model = {
        key: members.pop(key) for key in ("reliability", "provider_model_id") if key in members
    }
    ref = {"endpoint": f"127.0.0.1:{port}", **members}
    if "base_url" in ref:
        del ref["endpoint"]
    shown = ", ".join(f"{key}: {value}" for key, value in ref.items())
    extra = "".join(f", {key}: {value}" for key, value in of_model.items())
    return f"{{name: {name}{extra}, backend_refs: [{{{shown}}}]}}"


def document_of(*models: str, listener: str = "", default: str = "alpha", routing: str = "") -> str:
    """Return a document with `models` as `model_of` writes them.

    Args:
        models: entries of `providers.models`.
        listener: further members of the one listener, in YAML's flow style.
        default: of `providers.defaults.model`; empty for none.
        routing: the `routing` block in YAML's flow style; empty for none.
    """
    more = f", {listener}" if listener else ""
    entries = "\n    - ".join(models)
    return "\n".join(
        [
            "version: v0.3",
            "listeners:",
            f"  - {{name: http, address: 127.0.0.1, port: {ROUTER_PORT}{more}}}",
            "providers:",
            f"  defaults: {{{f'model: {default}' if default else ''}}}",
            f"  models:\n    - {entries}",
            f"routing: {routing or '{}'}",
        ]
    )
