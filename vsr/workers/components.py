"""The parts of a process that run beside its requests, and what becomes of it when one fails."""

import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Protocol

import attrs
import msgspec
import trio

from vsr.workers.backoff import Backoff

_log = logging.getLogger("vsr")


class OnFailure(StrEnum):
    """What a failure of a component means."""

    FATAL = "fatal"
    """Nothing can be served without it: the process ends."""
    RESTART = "restart"
    """It begins again, at once and then with pauses; requests are served meanwhile."""
    DEGRADE = "degrade"
    """The process goes on without it."""


class State(StrEnum):
    """What a component does."""

    RUNNING = "running"
    WAITING = "waiting"
    """It has failed, and is started again soon."""
    DEGRADED = "degraded"
    """It has failed, or could not be started, and stays away."""
    STOPPED = "stopped"
    """It has ended, as nothing was left to do."""


class ComponentStatus(msgspec.Struct, frozen=True):
    """What is known of one component."""

    name: str
    on_failure: OnFailure
    state: State
    failures: int = 0
    last_failure: str = ""
    """Its class alone: its text may hold anything."""


class Health(msgspec.Struct, frozen=True):
    """How something is that runs elsewhere: in a thread of a library, or as part of another."""

    is_failing: bool = False
    failures: int = 0
    last_failure: str = ""


class Run(Protocol):
    """What a component does."""

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until cancelled; started once it does its work."""


Work = Callable[[], Awaitable[None]]
"""What a component does that has no beginning to wait for."""


@attrs.define(eq=False)
class _Tally:
    """One component, which may run several times at once: for each model, for each version."""

    name: str
    on_failure: OnFailure
    running: int = 0
    waiting: int = 0
    is_degraded: bool = False
    failures: int = 0
    last_failure: str = ""
    look: Callable[[], Health] = Health

    @property
    def is_over(self) -> bool:
        """Return whether nothing of it is left."""
        return not (self.running or self.waiting or self.is_degraded)

    @property
    def status(self) -> ComponentStatus:
        """Return what is known of it: the worst of all that run."""
        health = self.look()
        state = State.RUNNING if self.running else State.STOPPED
        if self.waiting:
            state = State.WAITING
        if self.is_degraded or health.is_failing:
            state = State.DEGRADED
        last = self.last_failure or health.last_failure
        failures = self.failures + health.failures
        return ComponentStatus(self.name, self.on_failure, state, failures, last)

    def note_failure(self, failure: str) -> None:
        """Count one."""
        self.failures += 1
        self.last_failure = failure


@attrs.define(eq=False)
class Components:
    """Keeps components going by their policies, and knows how each is."""

    _tallies: dict[str, _Tally] = attrs.field(factory=dict, init=False)

    @property
    def statuses(self) -> tuple[ComponentStatus, ...]:
        """Return what is known, in the order in which components began.

        Those that are over without a failure are left out.
        """
        return tuple(
            each.status for each in self._tallies.values() if not each.is_over or each.failures
        )

    def degrade(self, name: str, failure: str) -> None:
        """Take note of a component that could not be started, and is done without."""
        tally = self._tally(name, OnFailure.DEGRADE)
        tally.is_degraded = True
        tally.note_failure(failure)

    def recovered(self, name: str) -> None:
        """Take note that such a component could be started after all."""
        if name in self._tallies:
            self._tallies[name].is_degraded = False

    def watch(self, name: str, look: Callable[[], Health]) -> None:
        """Ask how a component is whenever that is told; what it loses, the process does without."""
        tally = self._tallies.setdefault(name, _Tally(name, OnFailure.DEGRADE))
        tally.look = look
        tally.running += 1

    async def keep(self, name: str, work: Work) -> None:
        """Keep going what begins again when it fails, until it ends or is cancelled."""

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            task_status.started()
            await work()

        await self.run(name, OnFailure.RESTART, run)

    async def run(  # noqa: ASYNC128  # `_Begun` tells
        self,
        name: str,
        on_failure: OnFailure,
        run: Run,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Keep a component going until cancelled; started with it, the first time.

        Raises:
            Exception: as it does where that is fatal, or where it never began.
        """
        tally, backoff, begun = self._tally(name, on_failure), Backoff(), _Begun(task_status)
        while True:
            began_at = trio.current_time()
            tally.running += 1
            try:
                await _run_to_its_end(run, begun)
            except Exception as failure:
                # Whatever it is: the policy says whom a bug of this component may take along.
                tally.note_failure(_kind_of(failure))
                if on_failure is OnFailure.FATAL or not begun.is_told:
                    raise
                if on_failure is OnFailure.DEGRADE:
                    _log.exception("%s has failed, and is done without", name)
                    tally.is_degraded = True
                    return
                delay_s = backoff.delay_s(trio.current_time() - began_at)
                _log.exception("%s has failed; it begins again in %g s", name, delay_s)
            else:
                return
            finally:
                tally.running -= 1
            tally.waiting += 1
            try:
                await trio.sleep(delay_s)
            finally:
                tally.waiting -= 1

    def _tally(self, name: str, on_failure: OnFailure) -> _Tally:
        tally = self._tallies.setdefault(name, _Tally(name, on_failure))
        tally.on_failure = on_failure
        tally.is_degraded = False
        return tally


@attrs.define
class _Begun:
    """Tells once that a component has begun."""

    task_status: trio.TaskStatus[None]
    is_told: bool = False

    def tell(self) -> None:
        """Tell, the first time."""
        if not self.is_told:
            self.is_told = True
            self.task_status.started()


async def _run_to_its_end(run: Run, begun: _Begun) -> None:
    async with trio.open_nursery() as tasks:
        await tasks.start(lambda *, task_status: run(task_status=task_status))
        begun.tell()


def _kind_of(failure: BaseException) -> str:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return type(failure).__name__
