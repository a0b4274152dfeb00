"""What a supervisor lets its workers take over, under a virtual clock."""

from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.workers import Plans, rejected
from tests.workers.scene import LISTENER, NEXT, OTHER, bind_any, start, stop
from vsr.config.attempt import Code
from vsr.errors import ConfigRejected, VsrError
from vsr.resources.listener import Listener
from vsr.resources.looper import LooperSettings, StateBackend, StateStore
from vsr.resources.snapshot import Settings, Snapshot
from vsr.workers.messages import Sample
from vsr.workers.sockets import ListeningSockets
from vsr.workers.supervisor import PREPARE_S, Supervisor


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


async def test_certificates_are_renewed_by_all(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """SIGHUP is the supervisor's alone."""
    scene = await start(nursery)

    scene.supervisor.renew_certificates()
    await trio.testing.wait_all_tasks_blocked()

    assert scene.histories == [[("renew", 1)]] * 2
    await stop(scene)


async def test_address_that_is_taken_at_the_last_moment_is_not_committed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No request sees the version, and all is as it was."""
    scene = await start(nursery)
    prepared = await scene.supervisor.prepare(Snapshot("next", listeners=(LISTENER, OTHER)), 2)
    [sock] = prepared.change.new.values()
    sock.close()

    with pytest.raises(ConfigRejected, match="cannot listen on port 2"):
        await prepared.commit()
    await prepared.discard()
    await trio.testing.wait_all_tasks_blocked()

    assert scene.admits == [1, 1]
    assert scene.histories == [[("prepare", 2), ("discard", 2)]] * 2
    assert [place.port for place in scene.supervisor.sockets.bound] == [1]
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


async def test_metrics_are_those_of_all(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that does not tell them in time counts as before, is named, and holds nobody up."""
    scene = await start(nursery)

    both = await scene.supervisor.metrics()
    slow = scene.spawn.serving(1)
    slow.plans = attrs.evolve(slow.plans, answer_s=100.0)
    started_at = trio.current_time()
    late = await scene.supervisor.metrics()

    assert both[:-1] == late[:-1]
    assert [sample.value for family in both for sample in family.samples] == [2.0, 1.0, 1.0]
    assert late[-1].samples == (
        Sample("llm_worker_up", {"worker": "1"}, 0.0),
        Sample("llm_worker_up", {"worker": "2"}, 1.0),
    )
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
