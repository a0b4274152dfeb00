"""Where connections that calls share do their work: beside the calls, while the Router runs."""

from collections.abc import Awaitable, Callable

import attrs
import trio

from vsr.network.timers import LazyTimers


@attrs.define(eq=False)
class Background:
    """The tasks and the timers of shared connections; `run` is running while calls are made."""

    timers: LazyTimers = attrs.field(factory=LazyTimers, init=False)
    _tasks: trio.Nursery | None = attrs.field(default=None, init=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run what is started, until cancelled."""
        async with trio.open_nursery() as tasks:
            self._tasks = tasks
            task_status.started()
            await self.timers.run()

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task`, which ends by itself and answers for its failures."""
        assert self._tasks is not None  # noqa: S101  # see above
        self._tasks.start_soon(task)
