"""Clients that leave while their call waits, tries or tries again: nothing of it is left behind."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.stepped_backend import EVENT_STREAM, Act
from tests.fakes.router import clusters_of
from tests.faults.moments import LARGE, request_of
from tests.faults.test_every_step import AfterStep
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    RESET,
    SILENT,
    STREAM,
    Departure,
    Play,
    Scene,
    event,
    failing,
    read_on,
    start_scene,
    streaming,
)
from vsr.network.memory import Fault as NetworkFault
from vsr.network.memory import MemoryConnection
from vsr.network.port import ConnectionBroken
from vsr.routing.outcome import Attempt

LEAVES_AT_S = 1.0
AT_ONCE_S = 0.05
SETTINGS = (
    "retry_count: 2, retry_on: '5xx', retry_after_max: 9s, retry_back_off_base: 1ms, "
    "connect_timeout: 60s"
)
TRY_LATER = failing(503, (b"retry-after", b"5"))
FIRST_BYTE = ", first_byte_timeout: 60s"
ONE_SLOT = ", max_connections: 1"


def no_fault(scene: Scene) -> None:
    """Leave it to the plays."""


def second_is_out_of_reach(scene: Scene) -> None:
    """Let connecting to the second backend take for ever."""
    scene.network.faults["b1.test"] = NetworkFault.SILENT


def second_does_not_read(scene: Scene) -> None:
    """Let the second backend read nothing."""
    scene.backends[1].reads = False


@attrs.frozen
class Moment:
    """What a call does when its client leaves."""

    plays: Sequence[Sequence[Play]]
    attempts: int
    held: dict[str, int]
    """What the call holds until then."""
    arrange: Callable[[Scene], None] = no_fault
    more: str = ""
    body: bytes = STREAM


ATTEMPT = {"active": 1, "hosts": 1, "connections": 1}
MOMENTS = {
    "back-off": Moment([[TRY_LATER], [OK]], 1, {"slots": 1}),
    "connecting": Moment(
        [[RESET], [OK]], 2, {"active": 1, "hosts": 1, "slots": 1}, second_is_out_of_reach
    ),
    "writing": Moment(
        [[RESET], [OK]], 2, {**ATTEMPT, "slots": 1}, second_does_not_read, body=LARGE
    ),
    "waiting for the head": Moment([[RESET], [SILENT]], 2, {**ATTEMPT, "slots": 1}),
    "waiting for the first byte": Moment(
        [[RESET], [(EVENT_STREAM, Act.HANG)]], 2, {**ATTEMPT, "slots": 1}, more=FIRST_BYTE
    ),
    "in mid-stream": Moment([[RESET], [streaming(0.3, 60.0)]], 2, ATTEMPT),
    "in mid-stream behind a first byte": Moment(
        [[failing(500)], [streaming(0.3, 60.0)]], 2, ATTEMPT, more=FIRST_BYTE
    ),
    "first attempt": Moment([[SILENT], [OK]], 1, ATTEMPT),
}


async def leave(how: str, scene: Scene, client: MemoryConnection) -> None:
    """Let the client leave, or have the Router give up on it."""
    if how == "drain":
        await scene.router.router.server.drain(grace_s=0)
    else:
        getattr(client, how)()


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send", "drain"])
@pytest.mark.parametrize("name", MOMENTS)
async def test_client_that_leaves_ends_its_attempts_at_once(
    name: str, how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report C1: its backend is left, its permits are back, and nothing is tried again."""
    moment = MOMENTS[name]
    scene = await start_scene(nursery, SETTINGS + moment.more, *moment.plays)
    moment.arrange(scene)
    client = await scene.begin(moment.body)
    await trio.sleep_until(LEAVES_AT_S)
    assert await scene.held() == {**NOTHING, "leases": 1, **moment.held}
    calls = len(scene.calls)

    await leave(how, scene, client)
    held = await scene.held()
    assert trio.current_time() <= LEAVES_AT_S + AT_ONCE_S
    await trio.sleep(60)

    client.close()
    assert held == NOTHING
    left_at = [at for backend in scene.backends for at in backend.gone_at]
    assert all(at <= LEAVES_AT_S + AT_ONCE_S for at in left_at)
    assert len(scene.calls) == calls
    assert await scene.held() == NOTHING
    assert scene.network.open_connections == 0
    [line] = await scene.router.log()
    assert (line["outcome"], line["attempts"]) == ("cancelled", moment.attempts)
    assert line["response_flags"] == ("-" if how == "drain" else "DC")
    assert all(attempt.ended_at is not None for attempt in scene.journal())
    last = scene.journal()[-1]
    assert (last.error, last.stage) == ("" if last.status else "cancelled", "")


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
@pytest.mark.parametrize("attempts", [0, 1])
async def test_client_that_leaves_gives_its_place_in_line_up(
    attempts: int, how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report C1: whether it waits to try, or to try again; those behind it move up."""
    plays = [*[TRY_LATER] * attempts, streaming(20.0), OK]
    scene = await start_scene(nursery, SETTINGS + ONE_SLOT, plays)
    clients = []
    if attempts:
        clients.append(await scene.begin())
        await trio.sleep(1)
    holder = await scene.begin(STREAM)
    await trio.sleep(1)
    if not attempts:
        clients.append(await scene.begin())
    await trio.sleep(10)
    behind = await scene.begin()
    held = await scene.held()
    assert held == {**NOTHING, **ATTEMPT, "waiting": 2, "leases": 3, "slots": attempts}

    getattr(clients[0], how)()

    assert await scene.held() == {**held, "waiting": 1, "leases": 2, "slots": 0}
    await trio.sleep(20)
    assert await scene.held() == NOTHING
    assert len(scene.calls) == 2 + attempts
    lines = await scene.router.log()
    assert [(line["outcome"], line["attempts"]) for line in lines] == [
        ("cancelled", attempts),
        ("succeeded", 1),
        ("succeeded", 1),
    ]
    assert not holder.is_gone
    assert not behind.is_gone


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
async def test_client_that_leaves_does_not_disturb_a_health_check(
    how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The check's own connection stays until its time is over; it counts for nothing else."""
    health = ", health_check_path: /health, health_check_interval: 1s, health_check_timeout: 4s"
    scene = await start_scene(nursery, SETTINGS + health, [SILENT])
    client = await scene.begin()
    scene.backends[0].health = SILENT
    await trio.sleep(61)
    assert len(scene.backends[0].checks) == 2
    assert await scene.held() == {**NOTHING, **ATTEMPT, "leases": 1, "connections": 2}

    getattr(client, how)()

    assert await scene.held() == {**NOTHING, "connections": 1}
    assert trio.current_time() <= 61 + AT_ONCE_S
    await trio.sleep_until(64.5)
    assert await scene.held() == NOTHING
    assert scene.state.hosts[0].is_healthy


async def _leave_behind_step(step: int, how: str, more: str, body: bytes) -> bool:
    """Run one call that is tried three times, left behind a step; return whether it got there."""
    async with trio.open_nursery() as nursery:
        plays = [[OK, RESET, (0.01, *failing(503))], [OK, streaming(0.01)]]
        scene = await start_scene(nursery, SETTINGS + more, *plays)
        # Attempts behind this need not wait for a connection.
        await scene.ask()
        await scene.ask()
        client = await scene.router.connect()
        await trio.testing.wait_all_tasks_blocked()
        departure = Departure(scene, client, how)
        instrument = AfterStep(step, departure)
        trio.lowlevel.add_instrument(instrument)
        with suppress(ConnectionBroken):
            await client.send(request_of(body))
        nursery.start_soon(read_on, client)
        await trio.sleep(0.3)
        trio.lowlevel.remove_instrument(instrument)
        assert await scene.held() == NOTHING
        lines = await scene.router.log()
        assert len(lines) - 2 <= 1
        if departure.begun is not None:
            assert lines[2]["attempts"] == departure.begun, "tried again for nobody"
        assert all(_has_one_end(each) for plan in range(len(lines)) for each in _of(scene, plan))
        nursery.cancel_scope.cancel()
    return instrument.count >= step


def _of(scene: Scene, plan: int) -> Sequence[Attempt]:
    return scene.journal(plan) if plan < len(scene.engine.plans) else ()


def _has_one_end(attempt: Attempt) -> bool:
    """Return whether an attempt has ended, with an answer or with an error before it."""
    return attempt.ended_at is not None and (attempt.status is not None) != (
        attempt.error != "" and attempt.head_at is None
    )


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["buffered", "streamed"])
@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.parametrize("more", ["", FIRST_BYTE + ONE_SLOT])
def test_client_may_leave_behind_any_step_of_a_call_that_is_tried_again(
    how: str, more: str, body: bytes
) -> None:
    """Nothing is held afterwards, and no attempt is begun for a client that has left."""
    for step in count(1):
        # Trio shuffles ready tasks, so one try per step would see one of several orders.
        lived = False
        for _ in range(3):
            clock = trio.testing.MockClock(autojump_threshold=0)
            lived |= trio.run(_leave_behind_step, step, how, more, body, clock=clock)
        if not lived:
            assert step > 10
            return


FAULTS: list[Play] = [
    OK,
    (0.2, *OK),
    RESET,
    (Act.CLOSE,),
    (0.3, Act.RESET),
    SILENT,
    TRY_LATER,
    failing(503),
    failing(429),
    (EVENT_STREAM, Act.HANG),
    (EVENT_STREAM, event("first"), 0.1, Act.RESET),
    (EVENT_STREAM, event("first"), Act.HANG),
    (b"HTTP/1.1 2x0 OK\r\n\r\n",),
    (0.1, *streaming(0.2, 0.2)),
]
RETRY_COUNT = 3
ENDS = {
    ("succeeded", None),
    ("failed", None),
    ("timed_out", "deadline"),
    ("cancelled", "client_gone"),
}


@attrs.frozen
class Visitor:
    """A client: when it comes, when it leaves, and whether it wants a stream."""

    comes_at: float
    stays_s: float
    how: str
    streams: bool

    async def visit(self, scene: Scene) -> None:
        """Ask, and leave whatever has become of it."""
        await trio.sleep(self.comes_at)
        client = await scene.begin(STREAM if self.streams else BODY)
        with trio.move_on_after(self.stays_s):
            await read_on(client)
        getattr(client, self.how)()
        await trio.sleep(AT_ONCE_S)
        client.close()


visitors = st.builds(
    Visitor,
    comes_at=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    stays_s=st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 9.0]),
    how=st.sampled_from(["close", "abort", "shutdown_send"]),
    streams=st.booleans(),
)


async def _play_and_check(plays: Sequence[Sequence[Play]], guests: Sequence[Visitor]) -> None:
    limits = "max_connections: 2, max_pending: 3, max_retries: 2, consecutive_5xx: 2"
    times = "per_try_timeout: 1s, first_byte_timeout: 700ms, total_timeout: 4s, idle_timeout: 1s"
    text = f"retry_count: {RETRY_COUNT}, retry_on: 5xx, retry_after_max: 9s, {limits}, {times}"
    async with trio.open_nursery() as nursery:
        scene = await start_scene(nursery, text, *plays)
        async with trio.open_nursery() as clients:
            for guest in guests:
                clients.start_soon(guest.visit, scene)
        assert await scene.held() == NOTHING
        lines = await scene.router.log()
        assert len(lines) == len(guests)
        assert {(line["outcome"], line["cause"]) for line in lines} <= ENDS
        journals = [scene.journal(at) for at in range(len(scene.engine.plans))]
        assert sum(map(len, journals)) == sum(line["attempts"] for line in lines)
        assert all(len(journal) <= RETRY_COUNT + 1 for journal in journals)
        assert all(_has_one_end(attempt) for journal in journals for attempt in journal)
        assert len(scene.calls) <= sum(map(len, journals))
        idle = sum(pool.idle for pool in clusters_of(scene.generations[0]).pools.values())
        await trio.testing.wait_all_tasks_blocked()
        assert scene.network.open_connections == 2 * idle
        nursery.cancel_scope.cancel()


@settings(max_examples=60, deadline=None)
@given(
    plays=st.lists(
        st.lists(st.sampled_from(FAULTS), min_size=1, max_size=6), min_size=1, max_size=3
    ),
    guests=st.lists(visitors, min_size=1, max_size=7),
)
def test_permits_return_whatever_happens(
    plays: Sequence[Sequence[Play]], guests: Sequence[Visitor]
) -> None:
    """Faults and departures at random: one end per attempt, one line per request, nothing held."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(_play_and_check, plays, guests, clock=clock)
