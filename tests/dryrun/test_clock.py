"""The clock that never waits."""

import time

import trio

from vsr.dryrun.clock import JumpingClock


def test_sleeping_takes_no_time_and_ends_exactly() -> None:
    """However long, and in the order of the deadlines."""
    ends: list[float] = []

    async def sleep(seconds: float) -> None:
        await trio.sleep(seconds)
        ends.append(trio.current_time())

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for seconds in (86_400.1, 0.1, 3600.25):
                nursery.start_soon(sleep, seconds)

    began = time.perf_counter()
    trio.run(main, clock=JumpingClock())

    assert ends == [0.1, 3600.25, 86_400.1]
    assert time.perf_counter() - began < 5


def test_time_never_goes_back() -> None:
    """A deadline that lies before the start of time is over at once."""

    async def main() -> float:
        await trio.sleep(2)
        with trio.CancelScope(deadline=-5):
            await trio.sleep_forever()
        return trio.current_time()

    assert trio.run(main, clock=JumpingClock()) == 2


def test_time_stands_still_while_a_task_can_run() -> None:
    """Work between two waits takes no virtual time."""

    async def main() -> float:
        with trio.move_on_after(1):
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            return trio.current_time()
        return -1

    assert trio.run(main, clock=JumpingClock()) == 0
