"""The moments of a request at which it may be ended, each brought about and held."""

from collections.abc import Callable
from contextlib import suppress

import attrs
import trio

from tests.demo.raw_client import chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.engine.session import RoutingSession
from vsr.graph.ledger import LedgerEntry
from vsr.network.memory import Fault as NetworkFault
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken
from vsr.routing.engine import Engine
from vsr.routing.plan import Plan
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request

STREAM, WHOLE = chat_body(model="auto", stream=True), chat_body(model="auto")
LARGE = chat_body("x" * 1_000_000, model="auto")
HELD_AT_S = 1.0
"""When a moment is reached; nothing moves any more then, but for streams."""


def request_of(body: bytes) -> bytes:
    """Return a chat request."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


@attrs.frozen
class Moment:
    """A request, and a backend that holds it at one point."""

    sent: bytes
    backend: Script | RawBackend | NetworkFault | None = None
    """None where the request never gets that far."""
    is_logged: bool = True
    is_planned: bool = True
    """Whether the request is complete, so that a call was begun."""
    is_committed: bool = False
    """Whether the client has the head of an answer."""
    reads: bool = True
    """Whether the client reads what comes."""
    tls: bool = False
    is_backend_done: bool = False
    """Whether the whole answer is with us, so that the backend need not be left."""

    @property
    def connections_to_leave(self) -> int:
        """Return how many backend connections the request holds and must not keep."""
        if self.is_backend_done or not isinstance(self.backend, Script | RawBackend):
            return 0
        return 1


def _raw(answer: bytes = b"", *, reads: bool = True) -> RawBackend:
    return RawBackend(MemoryNetwork(), answer, reads=reads)


MOMENTS: dict[str, Callable[[], Moment]] = {
    "head is sent": lambda: Moment(request_of(STREAM)[:30], is_logged=False, is_planned=False),
    "body is sent": lambda: Moment(request_of(STREAM)[:-5], is_planned=False),
    "connecting": lambda: Moment(request_of(STREAM), NetworkFault.SILENT),
    "shaking hands": lambda: Moment(request_of(STREAM), _raw(reads=False), tls=True),
    "request is written": lambda: Moment(request_of(LARGE), _raw(reads=False)),
    "waiting for the head": lambda: Moment(request_of(STREAM), Script(fault=Fault.SILENCE)),
    "head is half there": lambda: Moment(request_of(STREAM), _raw(b"HTTP/1.1 200 OK\r\nx")),
    "collecting the body": lambda: Moment(request_of(WHOLE), Script(fault=Fault.STALL_MIDSTREAM)),
    "first piece is late": lambda: Moment(request_of(STREAM), Script(fault=Fault.SLOW_FIRST_BYTE)),
    "streaming": lambda: Moment(
        request_of(STREAM), Script(chunks=900, chunk_interval_s=0.3), is_committed=True
    ),
    "stream is silent": lambda: Moment(
        request_of(STREAM), Script(fault=Fault.STALL_MIDSTREAM), is_committed=True
    ),
    "client reads nothing of a stream": lambda: Moment(
        request_of(STREAM), Script(chunks=3000, piece_bytes=1000), is_committed=True, reads=False
    ),
    "client reads nothing of a large answer": lambda: Moment(
        request_of(WHOLE), _raw(reply(200, b"x" * 2_000_000)), is_committed=True, reads=False
    ),
    "client reads nothing of a small answer": lambda: Moment(
        request_of(WHOLE),
        _raw(reply(200, b"x" * 200_000)),
        is_committed=True,
        reads=False,
        is_backend_done=True,
    ),
}


@attrs.define(eq=False)
class RecordingEngine:
    """Notes the plans that an engine makes."""

    real: Engine
    plans: list[Plan] = attrs.field(factory=list)

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Plan, and note it."""
        plan = await self.real.plan(request, tasks, journal)
        self.plans.append(plan)
        return plan

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def entries(self) -> list[LedgerEntry]:
        """Return the ledger entries of all plans."""
        sessions = [plan.session for plan in self.plans]
        return [
            entry
            for session in sessions
            if isinstance(session, RoutingSession) and session.run is not None
            for entry in session.run.ledger.entries
        ]


@attrs.define(eq=False)
class Held:
    """A request that has been brought to its moment."""

    moment: Moment
    router: RunningRouter
    client: MemoryConnection
    engine: RecordingEngine
    left_at: Callable[[], list[float]]
    """When backends were left, for each connection they had."""
    got: bytearray = attrs.field(factory=bytearray)


async def hold(nursery: trio.Nursery, moment: Moment, reliability: str = "{}") -> Held:
    """Bring a request to `moment`; the clock then shows `HELD_AT_S`."""
    network = MemoryNetwork()
    backend, left_at = await _start_backend(nursery, network, moment)
    scheme = "https" if moment.tls else "http"
    ref = model_of(1, base_url=f"'{scheme}://b.test:{backend}'", reliability=reliability)
    router = await start_router(nursery, network, document_of(ref))
    engine = RecordingEngine(router.generation.engine)
    router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest
    client = await router.connect()
    held = Held(moment, router, client, engine, left_at)
    await client.send(moment.sent)
    if moment.reads:
        nursery.start_soon(_read, held)
    await trio.sleep_until(HELD_AT_S)
    return held


async def _start_backend(
    nursery: trio.Nursery, network: MemoryNetwork, moment: Moment
) -> tuple[int, Callable[[], list[float]]]:
    backend = moment.backend
    if isinstance(backend, Script):
        demo = await start_backend(nursery, network, backend)
        return demo.port, lambda: [call.ended_at for call in demo.calls if call.ended_at]
    if isinstance(backend, RawBackend):
        backend.network = network
        await backend.start(nursery)
        return backend.port, lambda: backend.gone_at
    network.faults["b.test"] = NetworkFault.SILENT
    return 1, list


async def _read(held: Held) -> None:
    with suppress(ConnectionBroken):
        while data := await held.client.receive():
            held.got += data
