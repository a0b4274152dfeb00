"""Questions to all workers, under a virtual clock."""

import attrs
import pytest
import trio
import trio.testing

from tests.fakes.workers import FakeServing
from tests.workers.scene import Scene, start, stop
from vsr.workers.asking import ASK_S, Answers

BOTH = Answers({1: b"topic: what", 2: b"topic: what"})
SECOND = Answers({2: b"topic: what"}, (1,))


def change(serving: FakeServing, **plans: object) -> None:
    """Let one worker behave otherwise."""
    serving.plans = attrs.evolve(serving.plans, **plans)  # type: ignore[arg-type]  # by name


async def timed(scene: Scene) -> tuple[Answers, float]:
    """Ask all; return what they say and how long that took."""
    began_at = trio.current_time()
    answers = await scene.supervisor.asking.ask("topic", b"what")
    return answers, trio.current_time() - began_at


async def test_all_are_asked_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And nobody is missing."""
    scene = await start(nursery)
    for serving in scene.spawn.servings:
        change(serving, answer_s=1.0)

    answers, took_s = await timed(scene)

    assert answers == BOTH
    assert took_s == pytest.approx(1.0)
    await stop(scene)


async def test_worker_that_takes_too_long_is_named(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its answer to one question is never taken for that to the next."""
    scene = await start(nursery)
    change(scene.spawn.serving(1), answer_s=ASK_S + 1)

    answers, took_s = await timed(scene)
    change(scene.spawn.serving(1), answer_s=0.0)
    later, _ = await timed(scene)
    await trio.sleep(5)

    assert answers == SECOND
    assert took_s == pytest.approx(ASK_S)
    assert later == BOTH
    await stop(scene)


async def test_worker_that_fails_at_it_is_named_and_serves_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody waits for it."""
    scene = await start(nursery)
    change(scene.spawn.serving(1), is_clueless=True)

    answers, took_s = await timed(scene)

    assert answers == SECOND
    assert took_s == pytest.approx(0.0)
    assert scene.supervisor.fleet.is_serving
    assert len(scene.spawn.started) == 2
    await stop(scene)


async def test_worker_that_ends_amid_a_question_is_named(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody waits for its end, nor asks the one that is started in its place."""
    scene = await start(nursery)
    change(scene.spawn.serving(1), answer_s=1.5)

    async with trio.open_nursery() as tasks:
        tasks.start_soon(_kill_after, scene, 0.25)
        answers, took_s = await timed(scene)
    starting, _ = await timed(scene)

    assert answers == SECOND
    assert took_s == pytest.approx(0.25)
    assert starting == SECOND
    await stop(scene)


async def _kill_after(scene: Scene, seconds: float) -> None:
    await trio.sleep(seconds)
    scene.spawn.process(1).kill()


async def test_several_questions_are_open_at_a_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Each has its own answers, and its own limit."""
    scene = await start(nursery)
    change(scene.spawn.serving(1), answer_s=1.5)
    found: dict[bytes, Answers] = {}

    async def ask(question: bytes, after_s: float) -> None:
        await trio.sleep(after_s)
        found[question] = await scene.supervisor.asking.ask("topic", question)

    async with trio.open_nursery() as tasks:
        tasks.start_soon(ask, b"a", 0.0)
        tasks.start_soon(ask, b"b", 1.0)

    assert found == {
        each: Answers(dict.fromkeys((1, 2), b"topic: " + each)) for each in (b"a", b"b")
    }
    await stop(scene)


async def test_question_whose_asker_left_is_forgotten(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The answer that comes then is nobody's."""
    scene = await start(nursery)
    change(scene.spawn.serving(1), answer_s=1.0)

    with trio.move_on_after(0.5):
        await timed(scene)
    await trio.sleep(1)
    answers, _ = await timed(scene)

    assert answers == BOTH
    await stop(scene)


async def test_what_is_imparted_is_known_to_workers_that_begin_later(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Before they serve anybody, and only the last of a topic; one that starts is asked, too."""
    scene = await start(nursery)

    await scene.supervisor.asking.impart("topic", b"old")
    await scene.supervisor.asking.impart("topic", b"new")
    scene.spawn.process(1).kill()
    await trio.sleep(0.2)
    answers = await scene.supervisor.asking.impart("other", b"x")
    await trio.sleep(1)
    second, first = scene.spawn.serving(1), scene.spawn.serving(2)

    assert answers == Answers({1: b"other: x", 2: b"other: x"})
    assert first.asked == [("topic", b"old"), ("topic", b"new"), ("other", b"x")]
    assert (second.asked, second.asked_before) == ([("topic", b"new"), ("other", b"x")], 1)
    await stop(scene)
