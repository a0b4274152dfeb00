"""A handler whose requests do what a test says, and that notes what the connection does to them."""

from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import trio

from vsr.gateway.connection import H1Connection
from vsr.gateway.exchange import Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.http.plain_head import PlainHeads
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.timers import LazyTimers
from vsr.routing.outcome import Cause


@attrs.define(eq=False)
class ScriptedRun:
    """One request under way; its work is a script's, its end is noted."""

    script: "Script"
    exchange: Exchange
    scope: RequestScope
    needs_end: bool = False
    cause_at_start: Cause | None = None
    """What the scope said when the request began."""
    was_cancelled_at_start: bool = False
    failure: Exception | None = None
    cause: Cause | None = None
    """What the scope said when the request ended."""
    events: list[str] = attrs.field(factory=list)
    fails_to_finish: bool = False
    children_begun: int = 0
    children_ended: int = 0
    late_children: int = 0
    """Children that were still there when the request was concluded or accounted for."""

    async def work(self) -> None:
        """Run the script as the real handler would: only cancellation passes."""
        self.events.append("work")
        self.was_cancelled_at_start = trio.current_effective_deadline() == -float("inf")
        try:
            await self.script(self)
        except Exception as failure:  # noqa: BLE001  # as the real one does
            self.failure = failure
            self.needs_end = True

    async def conclude(self, failure: Exception | None) -> None:
        """Answer 500 or 504 where nothing was answered."""
        self.events.append("conclude")
        self._note_children()
        self.failure = self.failure or failure
        if self.exchange.has_ended:
            return
        if self.exchange.is_committed:
            self.exchange.abort()
        elif self.failure is not None:
            await self.exchange.respond(500, [], b"failed")
        elif self.scope.cause is Cause.DEADLINE:
            await self.exchange.respond(504, [], b"late")

    def finish(self) -> None:
        """Take note."""
        self.events.append("finish")
        self.cause = self.scope.cause
        self._note_children()
        if self.fails_to_finish:
            raise LookupError

    def start_child(self, task: Callable[[], Awaitable[object]]) -> None:
        """Start `task` in the request's nursery, and count it."""
        self.children_begun += 1
        self.scope.start_soon(partial(self._count_child, task))

    async def _count_child(self, task: Callable[[], Awaitable[object]]) -> None:
        try:
            await task()
        finally:
            self.children_ended += 1

    def _note_children(self) -> None:
        self.late_children += self.children_begun - self.children_ended


Script = Callable[[ScriptedRun], Awaitable[None]]


@attrs.define(eq=False)
class ScriptedHandler:
    """Gives each request the next script; one too many is a fault of the test."""

    scripts: list[Script]
    runs: list[ScriptedRun] = attrs.field(factory=list)
    refusals: list[int] = attrs.field(factory=list)

    def __call__(self, exchange: Exchange, scope: RequestScope) -> ScriptedRun:
        """Open the run of one request."""
        assert all(run.events[-1:] == ["finish"] for run in self.runs), "the last one is not over"
        run = ScriptedRun(self.scripts[len(self.runs)], exchange, scope, cause_at_start=scope.cause)
        self.runs.append(run)
        return run

    def note_refusal(self, status: int, protocol: str = "HTTP/1.1") -> None:
        """Take note."""
        del protocol
        self.refusals.append(status)


@attrs.define(eq=False)
class ListenerOfOne:
    """What one connection asks of its listener."""

    idle_s: float = 1000.0
    is_draining: bool = False
    scheme: bytes = b"http"
    heads: PlainHeads = attrs.field(factory=PlainHeads)
    timers: LazyTimers = attrs.field(factory=LazyTimers)


@attrs.define(eq=False)
class ServedConnection:
    """A connection under test, seen from its client."""

    client: MemoryConnection
    served: H1Connection
    handler: ScriptedHandler
    listener: ListenerOfOne
    has_returned: bool = False

    async def serve(self) -> None:
        """Serve until the connection is over."""
        await self.served.serve()
        self.has_returned = True


async def serve_scripts(nursery: trio.Nursery, *scripts: Script) -> ServedConnection:
    """Serve one connection, whose requests run `scripts`, until `nursery` is cancelled."""
    network, listener, handler = MemoryNetwork(), ListenerOfOne(), ScriptedHandler(list(scripts))
    await nursery.start(network.run)
    nursery.start_soon(listener.timers.run)
    client, far = MemoryConnection(network), MemoryConnection(network)
    client.join(far)
    connection = ServedConnection(client, H1Connection(far, listener, handler), handler, listener)
    nursery.start_soon(connection.serve)
    return connection
