"""A supervisor with real workers that serve nothing real, under a virtual clock."""

import socket
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.workers import FakeSpawn, Plans, rejected
from vsr.config.attempt import Code
from vsr.errors import ConfigRejected, VsrError
from vsr.network.epoll_listener import listening_socket
from vsr.resources.listener import Listener
from vsr.resources.looper import LooperSettings, StateBackend, StateStore
from vsr.resources.snapshot import Settings, Snapshot
from vsr.workers.crew import WorkersFailed
from vsr.workers.fleet import Phase
from vsr.workers.sockets import ListeningSockets
from vsr.workers.supervisor import DRAIN_S, PREPARE_S, Supervisor

LISTENER = Listener("public", "127.0.0.1", 1, 30.0)
OTHER = Listener("other", "127.0.0.1", 2, 30.0)
FIRST = Snapshot("first", listeners=(LISTENER,))
NEXT = Snapshot("next", listeners=(LISTENER,))


def bind_any(address: str, port: int) -> socket.socket:
    """Bind where there is room: ports of the documents are made up."""
    if port > 1000:
        raise OSError(98, "in use")
    return listening_socket(address, 0)


@attrs.define
class Scene:
    """A supervisor that runs."""

    supervisor: Supervisor
    spawn: FakeSpawn

    @property
    def admits(self) -> list[int]:
        """Return the versions that requests get which come now, worker by worker."""
        return [each.admits for each in self.spawn.servings]

    @property
    def histories(self) -> list[list[tuple[str, int]]]:
        """Return what the workers did."""
        return [each.history for each in self.spawn.servings]


async def start(nursery: trio.Nursery, plans: Plans | None = None, size: int = 2) -> Scene:
    """Start a supervisor with workers that serve version 1."""
    spawn = FakeSpawn(nursery, plans or Plans())
    supervisor = Supervisor.open(size, FIRST, 1, Path(), spawn, ListeningSockets(bind_any))
    await nursery.start(supervisor.run)
    return Scene(supervisor, spawn)


async def stop(scene: Scene) -> None:
    """End everything."""
    scene.supervisor.force_end()
    await scene.supervisor.drain()
    scene.supervisor.word.close()


async def test_all_serve_before_the_supervisor_does(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They get the sockets that it has bound, and start side by side."""
    scene = await start(nursery, size=3)

    assert trio.current_time() == pytest.approx(0.5)
    assert scene.supervisor.fleet.is_serving
    assert [status.pid for status in scene.supervisor.statuses] != [0, 0, 0]
    assert [list(each.sockets) for each in scene.spawn.there] == [[("127.0.0.1", 1)]] * 3
    await stop(scene)


async def test_version_is_served_by_all_from_one_store_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By requests at once, before any worker has heard of it; until then by none."""
    scene = await start(nursery)

    prepared = await scene.supervisor.prepare(NEXT, 2)
    before = scene.admits
    scene.supervisor.commit(prepared)
    at_once = scene.admits
    await scene.supervisor.taken_over()

    assert (before, at_once) == ([1, 1], [2, 2])
    assert scene.histories == [[("prepare", 2), ("commit", 2)]] * 2
    assert prepared.reused == ("upstream",)
    assert [status.version for status in scene.supervisor.statuses] == [2, 2]
    await stop(scene)


async def test_commit_reaches_workers_without_requests(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It returns once all have taken over."""
    scene = await start(nursery)

    await (await scene.supervisor.prepare(NEXT, 2)).commit()

    assert [each.version for each in scene.spawn.servings] == [2, 2]
    await stop(scene)


async def test_refusal_leaves_all_as_they_were(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the worker's problems; the next version is the same number, and is served."""
    scene = await start(nursery, Plans(of={"bad": rejected("no"), "slow": 5.0}))

    with pytest.raises(ConfigRejected, match="listeners: no"):
        await scene.supervisor.prepare(Snapshot("bad", listeners=(LISTENER, OTHER)), 2)
    after = scene.admits
    await (await scene.supervisor.prepare(NEXT, 2)).commit()

    assert after == [1, 1]
    assert scene.admits == [2, 2]
    assert [place.port for place in scene.supervisor.sockets.bound] == [1]
    await stop(scene)


async def test_one_refusal_makes_the_others_give_up(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that still builds is cancelled, and what is built is not served."""
    plans = Plans(of={"next": 20.0})
    scene = await start(nursery, plans)
    other = attrs.evolve(plans, of={"next": VsrError("cannot be warmed")})
    scene.spawn.servings[1].plans = other

    started_at = trio.current_time()
    with pytest.raises(VsrError, match="warmed"):
        await scene.supervisor.prepare(NEXT, 2)
    took_s = trio.current_time() - started_at
    await trio.sleep(100)

    assert took_s == pytest.approx(0.0)
    assert scene.histories == [[("prepare", 2)]] * 2
    assert scene.admits == [1, 1]
    await stop(scene)


async def test_prepared_version_can_be_discarded(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As when a newer document supersedes it; sockets that it alone needs are closed."""
    scene = await start(nursery)

    prepared = await scene.supervisor.prepare(Snapshot("next", listeners=(LISTENER, OTHER)), 2)
    await prepared.discard()
    await trio.testing.wait_all_tasks_blocked()

    assert scene.histories == [[("prepare", 2), ("discard", 2)]] * 2
    assert [place.port for place in scene.supervisor.sockets.bound] == [1]
    assert scene.supervisor.fleet.activation is None
    await stop(scene)


async def test_cancelled_preparation_leaves_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As when the Router ends in the middle of it."""
    scene = await start(nursery, Plans(of={"next": 20.0}))

    with trio.move_on_after(3):
        await scene.supervisor.prepare(Snapshot("next", listeners=(LISTENER, OTHER)), 2)
    await trio.sleep(30)

    assert scene.supervisor.fleet.activation is None
    assert scene.histories == [[("prepare", 2)]] * 2
    assert [place.port for place in scene.supervisor.sockets.bound] == [1]
    await stop(scene)


async def test_worker_that_hangs_is_replaced(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What it was to build is refused; nobody waits for ever."""
    scene = await start(nursery, Plans(of={"next": 10_000.0}))

    with pytest.raises(VsrError, match="within 60 s"):
        await scene.supervisor.prepare(NEXT, 2)
    took_s = trio.current_time()
    await trio.sleep(5)

    assert took_s == pytest.approx(PREPARE_S + 0.5)
    assert scene.supervisor.fleet.is_serving
    assert len(scene.spawn.started) == 4
    await stop(scene)


async def test_dead_worker_is_started_again_with_what_serves(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once the first time, then with pauses that double."""
    scene = await start(nursery)
    await (await scene.supervisor.prepare(NEXT, 2)).commit()

    for _ in range(4):
        scene.spawn.there[-1].kill()
        await trio.sleep(10)

    assert scene.admits == [2, 2]
    assert sorted(status.restarts for status in scene.supervisor.statuses) == [0, 4]
    starts = [at for at, _ in scene.spawn.started[2:]]
    assert [later - starts[0] for later in starts] == pytest.approx([0, 10.5, 21.0, 32.0])
    await stop(scene)


async def test_no_worker_starts_amid_an_activation(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that dies when it has agreed does not stop it; the next one begins with the version."""
    scene = await start(nursery)

    prepared = await scene.supervisor.prepare(NEXT, 2)
    scene.spawn.there[0].kill()
    await trio.sleep(10)
    amid = scene.supervisor.statuses
    await prepared.commit()
    await trio.sleep(1)

    assert [status.phase for status in amid].count(Phase.ENDED) == 1
    assert scene.supervisor.fleet.is_serving
    assert scene.admits == [2, 2]
    await stop(scene)


async def test_process_that_takes_its_time_to_end_is_no_member_any_more(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither for a version that is prepared meanwhile, nor for one that was, and is committed."""
    scene = await start(nursery, size=3)
    first, second, _ = scene.spawn.there
    first.lingers_s = second.lingers_s = 1.5

    first.kill()
    await trio.sleep(0.1)
    prepared = await scene.supervisor.prepare(NEXT, 2)
    second.kill()
    await trio.sleep(0.1)
    await prepared.commit()
    await trio.sleep(5)

    assert scene.supervisor.fleet.is_serving
    assert scene.admits == [2, 2, 2]
    await stop(scene)


async def test_death_of_all_who_agreed_is_no_commit(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The old version serves when they are back."""
    scene = await start(nursery)

    prepared = await scene.supervisor.prepare(NEXT, 2)
    for process in scene.spawn.there:
        process.kill()
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(VsrError, match="no worker"):
        await prepared.commit()
    await prepared.discard()
    await trio.sleep(2)

    assert scene.supervisor.word.version == 1
    assert scene.admits == [1, 1]
    await stop(scene)


@pytest.mark.parametrize(
    ("plans", "error"),
    [
        (Plans(first=rejected("bad")), ConfigRejected),
        (Plans(first=VsrError("bad")), WorkersFailed),
        (Plans(start_s=1000.0), WorkersFailed),
    ],
)
async def test_first_workers_that_do_not_serve_end_it(
    plans: Plans,
    error: type[VsrError],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing was promised yet: whoever starts the Router is told."""
    spawn = FakeSpawn(nursery, plans)
    supervisor = Supervisor.open(2, FIRST, 1, Path(), spawn, ListeningSockets(bind_any))

    with pytest.RaisesGroup(error):
        await supervisor.run()
    await trio.sleep(5)

    assert spawn.there == []
    supervisor.sockets.close()
    supervisor.word.close()


async def test_drain_is_bounded(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A worker that does not end is ended; nobody is started meanwhile."""
    scene = await start(nursery, Plans(drain_s=1000.0))
    started_at = trio.current_time()

    await scene.supervisor.drain()

    assert trio.current_time() - started_at == pytest.approx(DRAIN_S)
    assert scene.spawn.there == []
    assert len(scene.spawn.started) == 2
    scene.supervisor.word.close()


async def test_second_signal_ends_a_drain(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Every worker ends what is under way."""
    scene = await start(nursery, Plans(drain_s=20.0))
    nursery.start_soon(scene.supervisor.drain)
    await trio.sleep(3)

    scene.supervisor.force_end()
    await trio.sleep(0.1)

    assert scene.spawn.there == []
    scene.supervisor.word.close()


async def test_workers_drain_when_their_supervisor_has_ended(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They notice that its end of the channel is closed."""
    scene = await start(nursery)
    processes = scene.spawn.there

    for process in processes:
        process.channel.close()
    await trio.sleep(1.9)
    draining = [process.ended.is_set() for process in processes]
    await trio.sleep(0.2)

    assert draining == [False, False]
    assert [process.ended.is_set() for process in processes] == [True, True]
    await stop(scene)


async def test_metrics_are_those_of_all(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that does not tell them in time is left out, and holds nobody up for long."""
    scene = await start(nursery)

    both = await scene.supervisor.metrics()
    slow = scene.spawn.servings[0]
    slow.plans = attrs.evolve(slow.plans, metrics_s=100.0)
    started_at = trio.current_time()
    late = await scene.supervisor.metrics()

    assert [sample.value for family in both for sample in family.samples] == [2.0]
    assert late == both
    assert trio.current_time() - started_at == pytest.approx(2.0)
    await stop(scene)


async def test_listener_that_cannot_be_bound_is_named(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And no worker is asked."""
    scene = await start(nursery)
    taken = Listener("taken", "127.0.0.1", 8899, 30.0)

    with pytest.raises(ConfigRejected, match=r"listeners\[taken\].*in use"):
        await scene.supervisor.prepare(Snapshot("next", listeners=(OTHER, taken)), 2)

    assert scene.histories == [[], []]
    await stop(scene)


async def test_state_in_memory_is_refused_at_the_start_and_later(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A client's next request may reach another worker."""
    scene = await start(nursery)
    store = StateStore(StateBackend.MEMORY)
    apart = Snapshot(
        "a", listeners=(LISTENER,), settings=Settings(looper=LooperSettings(state=store))
    )

    reasons = scene.supervisor.check(apart)
    with pytest.raises(ConfigRejected, match="store_backend"):
        Supervisor.open(2, apart, 1, Path(), scene.spawn, ListeningSockets(bind_any))

    assert [reason.code for reason in reasons] == [Code.UNSUPPORTED]
    assert scene.supervisor.check(NEXT) == ()
    await stop(scene)


async def test_process_that_cannot_be_started_is_tried_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The machine may be out of processes for a while; the others serve on."""
    scene = await start(nursery)
    scene.spawn.is_failing = True
    scene.spawn.there[0].kill()
    await trio.sleep(3)
    amid = len(scene.spawn.there)

    scene.spawn.is_failing = False
    await trio.sleep(10)

    assert amid == 1
    assert scene.supervisor.fleet.is_serving
    await stop(scene)
