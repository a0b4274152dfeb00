"""A whole standalone Router with two demo models behind it, on real sockets in this process."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import attrs
import msgspec
import trio

from tests.fakes.backend import BACKEND_HOST, start_backend
from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.epoll import EpollNetwork
from vsr.resources.listener import Listener
from vsr.routing.generation import Generation
from vsr.telemetry.access_log import AccessLog
from vsr.upstream.clusters import Clusters

SMALL = "small"
"""Serves what no decision claims, and every path that is not the Router's own."""
LARGE = "large"
"""Serves requests whose text has the word `python`."""
LISTENER = Listener(name="public", address=BACKEND_HOST, port=0, timeout_s=30.0)
_SETTLE_S = 5.0
_POLL_S = 0.002
_STOP_S = 2.0

_HEAD = """\
version: v0.3
listeners: [{{name: public, address: 127.0.0.1, port: {port}, timeout: 30s}}]
providers:
  defaults: {{model: small}}
  models:
    - {{name: small, backend_refs: [{{endpoint: "127.0.0.1:{small}"}}]}}
    - {{name: large, backend_refs: [{{endpoint: "127.0.0.1:{large}"}}]}}
"""
_ROUTING = """\
routing:
  signals: {keywords: [{name: code, operator: OR, keywords: [python]}]}
  decisions: [{name: code, rules: {type: keyword, name: code}, modelRefs: [{model: large}]}]
"""


def document(*, port: int, small: int, large: int, routing: str = _ROUTING) -> str:
    """Return the text of a document that routes between two backends on loopback ports."""
    return _HEAD.format(port=port, small=small, large=large) + routing


@attrs.define(eq=False)
class Standalone:
    """A running Router, its backends, and what can be counted about them."""

    network: EpollNetwork
    router: Router
    small: DemoModel
    large: DemoModel
    access_log: AccessLog
    log_text: list[bytes]

    @property
    def port(self) -> int:
        """Return the listener's port."""
        return self.router.server.ports["public"]

    @property
    def script(self) -> Script:
        """Return how the backend of `small` behaves."""
        script = self.small.script
        assert isinstance(script, Script)
        return script

    @property
    def url(self) -> str:
        """Return the base URL that OpenAI clients take."""
        return f"http://{BACKEND_HOST}:{self.port}/v1"

    @property
    def generation(self) -> Generation:
        """Return the generation that serves."""
        generation = self.router.active.current
        assert generation is not None
        return generation

    @property
    def clusters(self) -> Clusters:
        """Return the upstream of that generation."""
        upstream = self.generation.upstream
        assert isinstance(upstream, Clusters)
        return upstream

    async def log_lines(self) -> list[dict[str, object]]:
        """Return the access log so far."""
        await self.access_log.flush()
        return [json.loads(line) for line in b"".join(self.log_text).splitlines()]

    async def settled(self) -> None:
        """Wait until no request and no client connection is left, here and at the backends."""
        await until(lambda: not any(self.held().values()))

    def held(self) -> dict[str, int]:
        """Return everything that a request under way holds; all of it 0 when there is none.

        A pooled connection that waits for use is two sockets, one at either end; the listeners
        of the Router and of both backends are always there.
        """
        idle = self.clusters.idle_connections
        return {
            "client connections": self.router.server.open_connections,
            "pool slots": self.clusters.connections_in_use,
            "leases": self.generation.leases,
            "backend connections": self.small.open_connections + self.large.open_connections - idle,
            "sockets": self.network.open_sockets - 2 * idle - 3,
            "calls": sum(
                call.end is None for model in (self.small, self.large) for call in model.calls
            ),
        }


async def start_standalone(
    nursery: trio.Nursery,
    script: Script | None = None,
    *,
    listener: Listener = LISTENER,
    small_port: int | None = None,
) -> Standalone:
    """Start a Router that serves until `nursery` is cancelled.

    Args:
        nursery: whose cancellation stops everything and closes every socket.
        script: of both backends, whose models are `small` and `large`.
        listener: the only one.
        small_port: where `small` is dialled, if not at its backend.
    """
    script = script or Script()
    network = EpollNetwork()
    await nursery.start(network.run)
    small = await start_backend(nursery, network, attrs.evolve(script, model=SMALL))
    large = await start_backend(nursery, network, attrs.evolve(script, model=LARGE))
    text = document(port=1, small=small_port or small.port, large=large.port)
    router, access_log, log_text = await start_document(nursery, network, text, listener=listener)
    return Standalone(network, router, small, large, access_log, log_text)


async def start_document(
    nursery: trio.Nursery, network: EpollNetwork, text: str, *, listener: Listener = LISTENER
) -> tuple[Router, AccessLog, list[bytes]]:
    """Start a Router that serves a document until `nursery` is cancelled; `network` is running.

    Returns:
        The Router, its access log, and where that writes.
    """
    snapshot = check_bytes(text.encode(), {}, Report("e2e")).snapshot
    snapshot = msgspec.structs.replace(snapshot, listeners=(listener,))
    log_text: list[bytes] = []

    async def keep(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        log_text.append(data)

    access_log = AccessLog(keep)
    router = await Router.bind(Parts.default(network), snapshot, access_log)
    await nursery.start(run_until_cancelled, router)
    return router, access_log, log_text


async def until(is_so: Callable[[], bool], within_s: float = _SETTLE_S) -> None:
    """Wait for what the kernel and other tasks bring about; fails after `within_s`.

    A time in which the machine lets nothing of this process run counts as one poll: the Router, its
    client and its backends are all in it.
    """
    for _ in range(math.ceil(within_s / _POLL_S)):
        if is_so():
            return
        await trio.sleep(_POLL_S)
    if not is_so():
        raise trio.TooSlowError


def open_descriptors() -> int:
    """Return how many file descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def run_until_cancelled(router: Router, *, task_status: trio.TaskStatus[None]) -> None:
    """Serve until cancelled, and let everything go then."""
    try:
        async with trio.open_nursery() as tasks:
            await tasks.start(router.run)
            task_status.started()
    finally:
        with trio.CancelScope(shield=True, relative_deadline=_STOP_S):
            await router.server.drain(0)
        if router.active.current is not None:
            router.active.current.retire()
