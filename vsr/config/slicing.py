"""Work in slices on a loop that serves."""

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import trio

from vsr.slices import Sliced

SLICE_S = 0.002
"""What is done between two looks at the loop takes no longer, but for one resource at a time."""
_T = TypeVar("_T")


async def in_slices(work: Sliced[_T], clock: Callable[[], float] = perf_counter) -> _T:
    """Return what `work` comes to; requests are served in between."""
    ends_at = clock() + SLICE_S
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: _T = end.value
            return result
        if clock() >= ends_at:
            await trio.lowlevel.checkpoint()
            ends_at = clock() + SLICE_S
