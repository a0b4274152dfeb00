"""Where shared connections work: a failure of one is nobody else's."""

import pytest
import trio
import trio.testing

from vsr.upstream.background import Background


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


async def test_tasks_end_with_it(autojump_clock: trio.testing.MockClock) -> None:
    """A cancellation is no failure, and passes."""
    background = Background()
    async with trio.open_nursery() as nursery:
        await nursery.start(background.run)
        background.start(trio.sleep_forever)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert nursery.cancel_scope.cancelled_caught
