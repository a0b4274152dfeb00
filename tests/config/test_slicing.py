"""Work in slices."""

import trio

from vsr.config.slicing import SLICE_S, in_slices
from vsr.slices import Sliced


async def test_loop_is_looked_at_when_a_slice_has_passed() -> None:
    """Not at each step: that would take longer than the work."""
    now, seen = 0.0, 0

    def clock() -> float:
        return now

    def work() -> Sliced[str]:
        nonlocal now
        for _ in range(10):
            now += SLICE_S / 2
            yield
        return "done"

    async def count() -> None:
        nonlocal seen
        while True:
            await trio.lowlevel.checkpoint()
            seen += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        result = await in_slices(work(), clock)
        nursery.cancel_scope.cancel()

    assert result == "done"
    assert 3 <= seen <= 7
