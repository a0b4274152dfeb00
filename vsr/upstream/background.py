"""Where connections that calls share do their work: beside the calls, while the Router runs."""

import logging
from collections.abc import Awaitable, Callable

import attrs
import trio

from vsr.network.timers import LazyTimers

_log = logging.getLogger("vsr.upstream")

Work = Callable[[], Awaitable[None]]
Keep = Callable[[str, Work], Awaitable[None]]
"""Keeps work of a name going, which begins again when it fails, until cancelled."""


async def plainly(_name: str, work: Work) -> None:
    """Implements `Keep` for whoever wants to hear of failures."""
    await work()


@attrs.define(eq=False)
class Background:
    """The tasks and the timers of shared connections; `run` is running while calls are made."""

    keep: Keep = plainly
    timers: LazyTimers = attrs.field(factory=LazyTimers, init=False)
    _tasks: trio.Nursery | None = attrs.field(default=None, init=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run what is started, until cancelled."""
        async with trio.open_nursery() as tasks:
            self._tasks = tasks
            task_status.started()
            await self.keep("backend timers", self.timers.run)

    def start(self, task: Work) -> None:
        """Run `task`, which ends by itself; whatever it fails with is told to the log alone."""
        assert self._tasks is not None  # noqa: S101  # see above
        self._tasks.start_soon(_run, task)


async def _run(task: Work) -> None:
    try:
        await task()
    except Exception:  # noqa: BLE001  # one connection's bug must not end the Router
        _log.exception("a shared backend connection failed")
