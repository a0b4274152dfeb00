"""Processes of a supervisor: started, ended, started again, under a virtual clock."""

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.fakes.workers import FakeSpawn, Plans, rejected
from tests.workers.scene import FIRST, NEXT, bind_any, start, stop
from vsr.errors import ConfigRejected, VsrError
from vsr.workers.crew import WorkersFailed
from vsr.workers.fleet import Phase
from vsr.workers.sockets import ListeningSockets
from vsr.workers.supervisor import DRAIN_S, Supervisor


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
