"""A request ended behind every single step of any task, and at random instants."""

from collections.abc import Callable
from itertools import count

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.demo.raw_client import AnswerEnd, Got, chat_body, read_answer
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, clusters_of, document_of, model_of, start_router
from tests.faults.moments import RecordingEngine, request_of
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.gateway.connection import H1Connection
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken

STREAM, WHOLE = chat_body(model="auto", stream=True), chat_body(model="auto")
SCRIPT = Script(latency_s=0.01, chunks=3, chunk_interval_s=0.01)
TRIES = 4
KNOWN_ENDS = {
    ("succeeded", None),
    ("cancelled", "client_gone"),
    ("cancelled", "drain"),
    ("timed_out", "deadline"),
}


@attrs.define(eq=False)
class Run:
    """One request through a Router, and what became of it."""

    router: RunningRouter
    backend: DemoModel
    engine: RecordingEngine
    client: MemoryConnection
    got: Got | None = None

    async def ask(self, body: bytes) -> None:
        """Send a request in two pieces and read the answer, as far as it goes."""
        sent = request_of(body)
        try:
            await self.client.send(sent[:20])
            await trio.lowlevel.checkpoint()
            await self.client.send(sent[20:])
        except ConnectionBroken:
            return
        self.got = await read_answer(self.client)


End = Callable[[Run], None]


def leave(run: Run) -> None:
    """Let the client close."""
    run.client.close()


def leave_with_reset(run: Run) -> None:
    """Let the client reset."""
    run.client.abort()


def half_close(run: Run) -> None:
    """Let the client close its sending side."""
    run.client.shutdown_send()


def pass_deadline(run: Run) -> None:
    """Let the deadline of the request under way pass."""
    for server in run.router.router.server._listeners:
        for connection in server.connections:
            if isinstance(connection, H1Connection):
                connection._deadline_passed()


def force_drain(run: Run) -> None:
    """End all that is under way, as a drain does when its time is over."""
    run.router.router.server.force_end()


@attrs.define(eq=False)
class AfterStep(trio.abc.Instrument):
    """Calls `act` once, behind the step number `step` of any task."""

    step: int
    act: Callable[[], None]
    count: int = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a step."""
        del task
        self.count += 1
        if self.count == self.step:
            self.act()


async def _start(nursery: trio.Nursery) -> Run:
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, SCRIPT)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    engine = RecordingEngine(router.generation.engine)
    router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest
    return Run(router, backend, engine, await router.connect())


async def _end_behind_step(step: int, end: End, body: bytes, check: Callable[[Run], None]) -> bool:
    """Run one request and end it behind a step; return whether it lived that long."""
    async with trio.open_nursery() as nursery:
        run = await _start(nursery)
        await trio.testing.wait_all_tasks_blocked()
        instrument = AfterStep(step, lambda: end(run))
        trio.lowlevel.add_instrument(instrument)
        nursery.start_soon(run.ask, body)
        with trio.move_on_after(5):
            await trio.sleep(0.2)
        trio.lowlevel.remove_instrument(instrument)
        await _check_nothing_is_held(run)
        check(run)
        nursery.cancel_scope.cancel()
    return instrument.count >= step


async def _check_nothing_is_held(run: Run) -> None:
    router = run.router
    assert await router.held() == (0, 0)
    assert router.router.server.open_connections == int(not run.client.is_gone)
    run.client.close()
    await trio.testing.wait_all_tasks_blocked()
    assert router.router.server.open_connections == 0
    idle = clusters_of(router.generation).idle_connections
    assert router.network.open_connections == 2 * idle
    lines = await router.log()
    assert len(lines) <= 1
    entries = run.engine.entries()
    assert len(entries) <= len(lines)
    for entry in entries:
        assert entry.outcome is not None
        assert entry.reservation.is_settled
        assert entry.outcome.terminal == lines[0]["outcome"]
    assert {(line["outcome"], line["cause"]) for line in lines} <= KNOWN_ENDS


def _check_left(run: Run) -> None:
    """Nothing more: the client can't tell."""


def _check_late(run: Run) -> None:
    """An answer is whole, or a 504, or visibly broken once a part of it is out."""
    got = run.got
    assert got is not None
    if got.end is AnswerEnd.WHOLE:
        assert got.status in {200, 504}
        assert got.status == 200 or got.body == b"upstream request timeout"
    else:
        assert got.end in {AnswerEnd.CUT, AnswerEnd.RESET}
        assert got.status == 200, "broken off although nothing was out"


def _check_drained(run: Run) -> None:
    """Whole or visibly not."""
    got = run.got
    if got is not None and got.end is AnswerEnd.WHOLE:
        assert got.status == 200


ENDS: list[tuple[End, Callable[[Run], None]]] = [
    (leave, _check_left),
    (leave_with_reset, _check_left),
    (half_close, _check_left),
    (pass_deadline, _check_late),
    (force_drain, _check_drained),
]


@pytest.mark.parametrize("body", [WHOLE, STREAM], ids=["buffered", "streamed"])
@pytest.mark.parametrize(("end", "check"), ENDS)
def test_request_may_end_behind_any_step(
    end: End, check: Callable[[Run], None], body: bytes
) -> None:
    """Field report L1: no step leaks a lease, a slot, a connection or an open ledger entry."""
    for step in count(1):
        # Trio shuffles ready tasks, so one try per step would see one of several orders.
        lived = False
        for _ in range(TRIES):
            clock = trio.testing.MockClock(autojump_threshold=0)
            lived |= trio.run(_end_behind_step, step, end, body, check, clock=clock)
        if not lived:
            assert step > 10
            return


@settings(max_examples=40, deadline=None)
@given(
    instants=st.lists(st.floats(0, 1.2), min_size=1, max_size=8),
    ends=st.lists(st.sampled_from(ENDS[:3]), min_size=8, max_size=8),
    streams=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_clients_may_leave_at_any_instant(
    instants: list[float],
    ends: list[tuple[End, Callable[[Run], None]]],
    streams: list[bool],
) -> None:
    """Field report C3: several at once; each is told once, each backend left within 50 ms."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            network = MemoryNetwork()
            script = Script(latency_s=0.5, chunks=5, chunk_interval_s=0.1)
            backend = await start_backend(nursery, network, script)
            router = await start_router(nursery, network, document_of(model_of(backend.port)))
            left_at: dict[str, float] = {}

            async def one(number: int, at: float) -> None:
                run = Run(
                    router,
                    backend,
                    RecordingEngine(router.generation.engine),
                    await router.connect(),
                )
                body = chat_body(f"client {number}", model="auto", stream=streams[number])
                with trio.move_on_at(at):
                    await run.ask(body)
                    return
                ends[number][0](run)
                left_at[f"client {number}"] = trio.current_time()

            async with trio.open_nursery() as clients:
                for number, at in enumerate(instants):
                    clients.start_soon(one, number, at)
            await trio.sleep(2)

            assert await router.held() == (0, 0)
            lines = await router.log()
            assert {(line["outcome"], line["cause"]) for line in lines} <= KNOWN_ENDS
            for call in backend.calls:
                name = next((n for n in left_at if n.encode() in call.seen.body), None)
                if name is not None and call.end != "completed":
                    assert call.ended_at is not None
                    assert left_at[name] <= call.ended_at <= left_at[name] + 0.05
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
