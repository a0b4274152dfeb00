"""The parts of a process that run beside its requests, and what becomes of it when one fails."""

import logging
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


class ComponentStatus(msgspec.Struct, frozen=True):
    """What is known of one component."""

    name: str
    state: State
    failures: int = 0
    last_failure: str = ""
    """Its class alone: its text may hold anything."""


class Run(Protocol):
    """What a component does."""

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Run until cancelled; started once it does its work."""


@attrs.define(eq=False)
class Components:
    """Keeps components going by their policies, and knows how each is."""

    _statuses: dict[str, ComponentStatus] = attrs.field(factory=dict, init=False)

    @property
    def statuses(self) -> tuple[ComponentStatus, ...]:
        """Return what is known, in the order in which components began."""
        return tuple(self._statuses.values())

    def degrade(self, name: str, failure: str) -> None:
        """Take note of a component that could not be started, and is done without."""
        self._note_failure(name, State.DEGRADED, failure)

    def running(self, name: str) -> None:
        """Take note of a component that runs, whoever keeps it going."""
        before = self._statuses.get(name, ComponentStatus(name, State.RUNNING))
        self._statuses[name] = msgspec.structs.replace(before, state=State.RUNNING)

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
        backoff = Backoff()
        begun = _Begun(task_status)
        while True:
            began_at = trio.current_time()
            self.running(name)
            try:
                await _run_to_its_end(run, begun)
            except Exception as failure:
                # Whatever it is: the policy says whom a bug of this component may take along.
                if on_failure is OnFailure.FATAL or not begun.is_told:
                    raise
                kind = _kind_of(failure)
                if on_failure is OnFailure.DEGRADE:
                    _log.exception("%s has failed, and is done without", name)
                    self._note_failure(name, State.DEGRADED, kind)
                    return
                delay_s = backoff.delay_s(trio.current_time() - began_at)
                _log.exception("%s has failed; it begins again in %g s", name, delay_s)
                self._note_failure(name, State.WAITING, kind)
            else:
                return
            await trio.sleep(delay_s)

    def _note_failure(self, name: str, state: State, failure: str) -> None:
        before = self._statuses.get(name, ComponentStatus(name, state))
        self._statuses[name] = ComponentStatus(name, state, before.failures + 1, failure)


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
