"""Versions that nobody can vouch for: a process on trial shows whether they can be served."""

import pytest
import trio
import trio.testing

from tests.fakes.workers import Plans, rejected
from tests.workers.scene import NEXT, Scene, start, stop
from vsr.errors import ConfigRejected, VsrError
from vsr.workers.fleet import Phase
from vsr.workers.supervisor import PREPARE_S


async def crash_looping(nursery: trio.Nursery, plans: Plans) -> Scene:
    """Start workers that now die of the version which serves, and wait long for their next try."""
    scene = await start(nursery, plans)
    plans.deadly |= {"first"}
    for process in scene.spawn.there:
        process.kill()
    await trio.sleep(21)
    phases = [status.phase for status in scene.supervisor.statuses]
    assert phases == [Phase.ENDED, Phase.ENDED]
    return scene


async def test_document_that_mends_a_crash_is_served(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once: not when the next try of what crashes would have been due."""
    scene = await crash_looping(nursery, Plans())
    began_at = trio.current_time()

    await (await scene.supervisor.prepare(NEXT, 2)).commit()
    took_s = trio.current_time() - began_at
    [first] = [each for each in scene.spawn.servings if each.accepts]
    await trio.sleep(1)

    assert took_s == pytest.approx(0.5)
    assert first.history == []  # it began with it
    assert scene.admits == [2, 2]
    assert scene.supervisor.fleet.is_serving
    assert [status.version for status in scene.supervisor.statuses] == [2, 2]
    await stop(scene)


async def test_process_on_trial_serves_nobody_before_the_version_does(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is one, and answers what it is asked; it ends with a version that is given up."""
    scene = await crash_looping(nursery, Plans())

    prepared = await scene.supervisor.prepare(NEXT, 2)
    [serving] = scene.spawn.servings
    accepts = serving.accepts
    answers = await scene.supervisor.asking.impart("topic", b"what")
    await prepared.discard()
    await trio.testing.wait_all_tasks_blocked()

    assert not accepts
    assert len(answers.told) == 1
    assert scene.spawn.servings == []
    assert scene.supervisor.word.version == 1
    scene.spawn.plans.deadly.clear()
    await trio.sleep(40)
    assert scene.admits == [1, 1]
    await stop(scene)


@pytest.mark.parametrize(
    ("plans", "error", "text"),
    [
        (Plans(deadly={"next"}), VsrError, "a worker ended while it built"),
        (Plans(of={"next": rejected("no certificate")}), ConfigRejected, "no certificate"),
        (Plans(starts_s={"next": 1000.0}), VsrError, "within 60 s"),
    ],
)
async def test_document_that_mends_nothing_is_refused(
    plans: Plans,
    error: type[VsrError],
    text: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With its reasons; the next one is tried all the same."""
    scene = await crash_looping(nursery, plans)

    with pytest.raises(error, match=text):
        await scene.supervisor.prepare(NEXT, 2)
    word = scene.supervisor.word.version
    plans.deadly, plans.of, plans.starts_s = {"first"}, {}, {}
    await (await scene.supervisor.prepare(NEXT, 2)).commit()

    assert word == 1
    assert scene.supervisor.word.version == 2
    await stop(scene)


async def test_death_under_the_version_before_refuses_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What a worker dies of, amid its work, may be just what the new document mends."""
    scene = await start(nursery)

    async with trio.open_nursery() as tasks:
        tasks.start_soon(_kill_after, scene, 0.5)
        prepared = await scene.supervisor.prepare(NEXT, 2)
    await prepared.commit()

    assert scene.admits == [2, 2]
    assert scene.supervisor.fleet.is_serving
    await stop(scene)


async def _kill_after(scene: Scene, seconds: float) -> None:
    await trio.sleep(seconds)
    scene.spawn.process(1).kill()


async def test_version_that_workers_die_of_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By the one on trial; those that served are back soon."""
    scene = await start(nursery, Plans(deadly={"next"}))

    with pytest.raises(VsrError, match="ended while it built"):
        await scene.supervisor.prepare(NEXT, 2)
    await trio.sleep(2)

    assert len(scene.spawn.started) == 2 + 1 + 2
    assert scene.admits == [1, 1]
    await stop(scene)


async def test_workers_that_hang_at_their_start_hold_up_no_mend(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They have served nobody; they are ended, and one begins with the version."""
    plans = Plans()
    scene = await start(nursery, plans)
    plans.starts_s["first"] = 1000.0
    for process in scene.spawn.there:
        process.kill()
    await trio.sleep(1)
    began_at = trio.current_time()

    await (await scene.supervisor.prepare(NEXT, 2)).commit()
    took_s = trio.current_time() - began_at
    await trio.sleep(1)

    assert took_s <= PREPARE_S + 1
    assert scene.admits == [2, 2]
    await stop(scene)
