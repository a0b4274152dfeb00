"""Clients and backends that leave at any time: nothing is left of a call over HTTP/2."""

import random
from contextlib import suppress

import pytest
import trio
import trio.testing

from tests.fakes.h2_backend import (
    EVENT,
    OK,
    REFUSED,
    STREAM_HEAD,
    Act,
    GoAway,
    Head,
    Play,
    Reset,
    model_over_h2,
    start_h2_backend,
    streaming,
)
from tests.fakes.router import clusters_of, document_of
from tests.upstream.h2_scene import BODY, NOTHING, STREAM, Scene, read_on, start_h2_scene
from vsr.errors import UpstreamFailure
from vsr.routing.ports import Journal

LARGE = b'{"model":"auto","messages":[{"role":"user","content":"%b"}]}' % (b"x" * 100_000)
PLAYS: list[Play] = [
    OK,
    (0.3, *OK),
    (Act.HANG,),
    streaming(0.2, 0.2, 0.2),
    (STREAM_HEAD, *[EVENT * 200] * 8),
    (STREAM_HEAD, EVENT, 0.1, Reset(2)),
    REFUSED,
    (0.1, Reset(8)),
    (0.2, GoAway(processed=False)),
    (GoAway(), 0.1, *OK),
    (0.1, Act.ABORT),
    (STREAM_HEAD, EVENT, Act.CLOSE),
    (Head(413), b"{}"),
]


async def test_two_hundred_random_ends_leave_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No stream, window, place, permit, lease or task; and the Router serves as before."""
    rng = random.Random(7)  # noqa: S311  # repeatable
    plays = [rng.choice(PLAYS) for _ in range(400)]
    scene = await start_h2_scene(
        nursery,
        *plays,
        OK,
        settings={3: 7},
        is_early=True,
        reliability="retry_count: 1, retry_on: 'refused-stream,connect-failure', idle_timeout: 2s",
    )
    await scene.ask()
    await scene.held()
    before = len(nursery.child_tasks)

    async def leave() -> None:
        await trio.sleep(rng.uniform(0, 8))
        client = await scene.begin(rng.choice([BODY, STREAM, LARGE]))
        with trio.move_on_after(rng.choice([0, 0.05, 0.25, 0.25, 5])):
            await read_on(client)
        getattr(client, rng.choice(["close", "abort"]))()

    async with trio.open_nursery() as clients:
        for _ in range(200):
            clients.start_soon(leave)
    held = await scene.held()
    scene.backend.plays = [OK]
    got = await scene.ask()
    await scene.held()

    assert held == NOTHING
    assert got.status == 200
    assert await scene.open_streams() == 0
    background = scene.router.parts.background._tasks
    assert background is not None
    connections = sum(len(host.connections) for host in scene.pool._hosts.values())
    assert len(background.child_tasks) == connections
    assert scene.backend.open_sessions == connections
    assert len(nursery.child_tasks) == before
    windows = {
        each._http._h2.inbound_flow_control_window
        for host in scene.pool._hosts.values()
        for each in host.connections
    }
    assert min(windows, default=1_000_000) > 400_000


STEPPED: dict[str, Play] = {
    "whole": OK,
    "silent": (Act.HANG,),
    "stream": streaming(0.2),
    "large": (STREAM_HEAD, *[EVENT * 200] * 8),
}


@pytest.mark.parametrize("name", STEPPED)
@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "big"])
async def test_call_cancelled_at_any_step_leaves_nothing(
    name: str, body: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind every step of any task: dialling, settings, sending, the head, the body."""
    scene = await start_h2_scene(nursery, STEPPED[name], is_early=True)

    steps = 0
    while await _cancelled_behind(steps, scene, body):
        assert await scene.held() == NOTHING
        assert await scene.open_streams() == 0
        for session in scene.backend.sessions:
            session.close()
        await scene.held()
        steps += 1

    assert steps > 10
    assert await scene.held() == NOTHING


class _Countdown(trio.abc.Instrument):
    """Cancels a scope behind so many steps of any task."""

    def __init__(self, steps: int, scope: trio.CancelScope) -> None:
        self._left = steps
        self.scope = scope

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count."""
        del task
        if self._left == 0:
            self.scope.cancel()
        self._left -= 1


async def _cancelled_behind(steps: int, scene: Scene, body: bytes) -> bool:
    """Cancel a call behind so many steps; return whether it was still under way."""
    countdown = _Countdown(steps, trio.CancelScope())
    trio.lowlevel.add_instrument(countdown)
    try:
        with trio.move_on_after(3), countdown.scope, suppress(UpstreamFailure):
            response = await scene.send(Journal([]), body, idle_s=1.0)
            try:
                while not response.is_complete:
                    await response.receive()
            finally:
                response.close()
    finally:
        trio.lowlevel.remove_instrument(countdown)
    return countdown.scope.cancelled_caught


async def test_generation_change_closes_connections_with_their_last_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Those to backends that are still named are kept; dropped ones go, idle ones at once."""
    scene = await start_h2_scene(nursery, (5.0, *OK), more=[[OK], [OK]])
    first, second, third = scene.backends
    client = await scene.begin()
    await scene.ask()
    document = document_of(model_over_h2(second.port, third.port))
    old = scene.router.generation

    new = scene.router.activate(document, 2)
    await trio.testing.wait_all_tasks_blocked()
    kept = (first.open_sessions, second.open_sessions)
    answer = await client.receive()
    await scene.router.held(old, new)
    ended = (first.open_sessions, second.open_sessions)
    got = await scene.ask()

    assert kept == (1, 1)
    assert answer.startswith(b"HTTP/1.1 200")
    assert (ended, got.status, len(second.sessions)) == ((0, 1), 200, 1)


async def test_other_version_gets_connections_of_its_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A document that asks for HTTP/1.1 again closes those of HTTP/2."""
    scene = await start_h2_scene(nursery)
    await scene.ask()
    port = scene.backend.port
    plain = model_over_h2(port).replace("'2'", "'1.1'")

    scene.router.activate(document_of(plain), 2)
    await trio.testing.wait_all_tasks_blocked()

    assert scene.backend.open_sessions == 0
    assert clusters_of(scene.router.generation).idle_connections == 0


async def test_connection_dialled_for_a_retired_generation_is_not_kept(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its call is served, and it closes behind it."""
    scene = await start_h2_scene(nursery, settings_after_s=3.0)
    other = await start_h2_backend(nursery, scene.network)
    client = await scene.begin()

    scene.router.activate(document_of(model_over_h2(other.port)), 2)
    answer = await client.receive()
    await trio.testing.wait_all_tasks_blocked()

    assert answer.startswith(b"HTTP/1.1 200")
    assert scene.backend.open_sessions == 0


async def test_drain_lets_calls_end_and_closes_connections(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The process leaves with no socket open."""
    scene = await start_h2_scene(nursery, (2.0, *OK))
    client = await scene.begin()

    async def read() -> None:
        assert (await client.receive()).startswith(b"HTTP/1.1 200")
        client.close()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(read)
        await scene.router.router.server.drain()
    await trio.testing.wait_all_tasks_blocked()

    assert trio.current_time() == pytest.approx(2)
    assert scene.backend.open_sessions == 0
