"""Where shared connections work: a failure of one is nobody else's."""

import pytest
import trio
import trio.testing

from vsr.network.timers import Timer
from vsr.upstream.background import Background
from vsr.workers.components import Components, ComponentStatus, OnFailure, State


async def test_failure_of_one_task_ends_neither_the_others_nor_the_router(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is told to the log, and what is started later runs."""
    background = Background()
    await nursery.start(background.run)
    ended: list[float] = []

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("bug")

    async def work() -> None:
        await trio.sleep(1)
        ended.append(trio.current_time())

    background.start(work)
    background.start(fail)
    await trio.sleep(2)
    background.start(work)
    await trio.sleep(2)

    assert ended == [1, 3]
    assert [record.message for record in caplog.records] == ["a shared backend connection failed"]


async def test_timers_that_fail_take_no_connection_along(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They begin again, as the process has it."""
    components = Components()
    background = Background(components.keep)
    await nursery.start(background.run)
    ended: list[float] = []

    async def work() -> None:
        await trio.sleep(3)
        ended.append(trio.current_time())

    def fail() -> None:
        raise ZeroDivisionError

    background.start(work)
    background.timers.set(Timer(fail), 1.0)
    background.timers.set(Timer(lambda: ended.append(trio.current_time())), 2.0)
    await trio.sleep(5)

    assert ended == [2.0, 3.0]
    assert components.statuses == (
        ComponentStatus("backend timers", OnFailure.RESTART, State.RUNNING, 1, "ZeroDivisionError"),
    )


async def test_tasks_end_with_it(autojump_clock: trio.testing.MockClock) -> None:
    """A cancellation is no failure, and passes."""
    background = Background()
    async with trio.open_nursery() as nursery:
        await nursery.start(background.run)
        background.start(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert nursery.cancel_scope.cancelled_caught
