"""An HTTP/2 request that ends behind any step of any task: nothing is held, no other harmed."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.h2_client import H2Client, reset
from tests.fakes.router import RunningRouter, clusters_of
from tests.gateway.h2_running import STREAM, WHOLE, connect, start
from vsr.demo.script import Script
from vsr.gateway.h2_connection import H2Connection
from vsr.http.h2_frames import ErrorCode
from vsr.network.port import ConnectionBroken

SCRIPT = Script(latency_s=0.01, chunks=3, chunk_interval_s=0.01)
KNOWN_ENDS = {
    ("succeeded", None),
    ("cancelled", "client_gone"),
    ("cancelled", "drain"),
    ("timed_out", "deadline"),
}
TRIES = 2


@attrs.define
class Run:
    """A client with two requests, of which the first is ended."""

    router: RunningRouter
    client: H2Client
    sent_first: bool = False


End = Callable[[Run], None]


def reset_first(run: Run) -> None:
    """Let the client reset the first stream, if it has sent anything of it."""
    if run.sent_first:
        run.client.connection.try_send(reset(1).serialize())


def pass_deadline(run: Run) -> None:
    """Let the deadline of the first request pass."""
    (server,) = run.router.router.server._listeners
    for served in server.connections:
        if isinstance(served, H2Connection) and 1 in served._streams:
            served._streams[1]._deadline_passed()


def leave(run: Run) -> None:
    """Close the client's connection."""
    run.client.connection.close()


def force_drain(run: Run) -> None:
    """End all that is under way."""
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


async def end_behind_step(step: int, end: End, body: bytes) -> bool:
    """Run two requests and end the first behind a step; return whether it lived that long."""
    async with trio.open_nursery() as nursery:
        router, _ = await start(nursery, SCRIPT)
        run = Run(router, await connect(nursery, router))
        await trio.testing.wait_all_tasks_blocked()
        instrument = AfterStep(step, lambda: end(run))
        trio.lowlevel.add_instrument(instrument)
        with suppress(ConnectionBroken):
            await run.client.request(body)
            run.sent_first = True
            await run.client.request(body)
        await trio.sleep(0.5)
        trio.lowlevel.remove_instrument(instrument)
        await check(run, end)
        nursery.cancel_scope.cancel()
    return instrument.count >= step


async def check(run: Run, end: End) -> None:
    """Nothing is held, and the second request is whole unless the connection was ended."""
    router, client = run.router, run.client
    assert await router.held() == (0, 0)
    if end in {reset_first, pass_deadline}:
        first, second = client.streams[1], client.streams[3]
        assert client.goaways == []
        assert second.is_whole
        assert second.status == 200
        if end is pass_deadline:
            assert first.is_whole or first.reset == ErrorCode.INTERNAL_ERROR
            assert first.status in {200, 504}
    client.connection.close()
    await trio.testing.wait_all_tasks_blocked()
    assert router.router.server.open_connections == 0
    idle = clusters_of(router.generation).idle_connections
    assert router.network.open_connections == 2 * idle
    lines = await router.log()
    assert len(lines) <= 2
    assert {(line["outcome"], line["cause"]) for line in lines} <= KNOWN_ENDS


@pytest.mark.parametrize("body", [WHOLE, STREAM], ids=["buffered", "streamed"])
@pytest.mark.parametrize("end", [reset_first, pass_deadline, leave, force_drain])
def test_request_may_end_behind_any_step(end: End, body: bytes) -> None:
    """Field report L1: no step leaks a lease, a slot or a connection."""
    for step in count(1):
        lived = False
        for _ in range(TRIES):
            clock = trio.testing.MockClock(autojump_threshold=0)
            lived |= trio.run(end_behind_step, step, end, body, clock=clock)
        if not lived:
            assert step > 10
            return
