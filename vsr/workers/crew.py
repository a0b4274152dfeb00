"""The processes of a supervisor: started, listened to, waited for, started again."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import attrs
import msgspec
import trio

from vsr.errors import ConfigRejected, VsrError
from vsr.workers.channel import Channel
from vsr.workers.fleet import Fleet, Phase, Slot
from vsr.workers.messages import Ready, Refused, Report
from vsr.workers.outbox import Outbox

START_S = 60.0
"""As long as compiling may take; a worker that does not serve by then hangs."""
_REAP_S = 2.0
_log = logging.getLogger("vsr.workers")


class WorkerProcess(Protocol):
    """A process that was started to be a worker."""

    @property
    def pid(self) -> int:
        """Return its process id."""
        ...

    @property
    def channel(self) -> Channel[Report]:
        """Return our end of what connects us."""
        ...

    async def wait(self) -> int:
        """Wait for its end; return its status."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


Spawn = Callable[[int], Awaitable[WorkerProcess]]
"""Starts the process of a slot; `OSError` if there can be none."""


class WorkersFailed(VsrError):
    """The first workers do not serve."""


@attrs.frozen(eq=False)
class Member:
    """One process while it is there."""

    slot: Slot
    process: WorkerProcess
    outbox: Outbox = attrs.field(factory=Outbox)


@attrs.define(eq=False)
class Crew:
    """Keeps a process in every slot of a fleet."""

    fleet: Fleet
    spawn: Spawn
    brief: Callable[[Outbox], None]
    """Tells a process that begins what to serve."""
    heed: Callable[[Member, Report], None]
    """Takes what a process says once it serves."""
    mourn: Callable[[Slot], None]
    """Told of a slot whose process has ended."""
    members: dict[int, Member] = attrs.field(factory=dict, init=False)
    """By serial number."""
    failure: VsrError | None = attrs.field(default=None, init=False)
    """Why the first processes do not serve; later ones are started again."""
    _has_started: bool = attrs.field(default=False, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep processes going until the fleet has ended; started once all serve.

        Raises:
            ConfigRejected: the first of them refuse the configuration.
            WorkersFailed: they fail otherwise.
        """
        async with trio.open_nursery() as tasks:
            for slot in self.fleet.slots:
                tasks.start_soon(self._keep, slot)
            await self.until(lambda: self.failure is not None or self.fleet.is_serving)
            if self.failure is not None:
                self.kill_all()
                raise self.failure
            self._has_started = True
            task_status.started()
            await self.until(lambda: self.fleet.is_ending and self.fleet.has_ended)
            tasks.cancel_scope.cancel(reason="drained")

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what a process or its end brings about."""
        while not is_so():
            await self._changed.wait()

    def tell(self) -> None:
        """Let those look again who wait for something."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def order(self, message: msgspec.Struct) -> None:
        """Tell every process."""
        for member in self.members.values():
            member.outbox.put(message)

    def kill_all(self) -> None:
        """End every process at once."""
        for member in self.members.values():
            member.process.kill()

    async def _keep(self, slot: Slot) -> None:
        while not self.fleet.is_ending:
            await self._wait_for_turn(slot)
            try:
                process = await self.spawn(slot.worker)
            except OSError as error:
                delay_s = slot.backoff.delay_s(0.0)
                slot.due_at = trio.current_time() + delay_s
                self._fail(WorkersFailed(f"a worker cannot be started: {error.strerror}"))
                _log.error("worker %d cannot be started: %s", slot.worker, error.strerror)
                continue
            try:
                await self.until(lambda: self.fleet.may_start(slot) or self.fleet.is_ending)
                if not self.fleet.is_ending:
                    await self._live(Member(slot, process))
            finally:
                process.channel.close()  # it drains, if it is still there
                if self.fleet.is_ending or slot.phase is Phase.ENDED:
                    with trio.CancelScope(shield=True, relative_deadline=2 * _REAP_S):
                        await _reap(process)

    async def _wait_for_turn(self, slot: Slot) -> None:
        """Wait as long as the slot has to, unless a process is wanted on trial."""
        with trio.CancelScope(deadline=slot.due_at):
            await self.until(lambda: self.fleet.wants_trial)

    async def _live(self, member: Member) -> None:
        """Let a process work until it ends."""
        slot, process = member.slot, member.process
        self.fleet.start(slot, process.pid, now=trio.current_time())
        self.members[slot.serial] = member
        self.brief(member.outbox)
        try:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(member.outbox.run, process.channel)
                tasks.start_soon(self._limit_start, member)
                await self._listen(member)
                tasks.cancel_scope.cancel(reason="the worker has ended")
        finally:
            # In one step with what follows: whoever takes part in an activation is a member.
            del self.members[slot.serial]
            member.outbox.close()
        delay_s = self.fleet.end(slot, now=trio.current_time())
        self.mourn(slot)
        if not self.fleet.is_ending:
            text = "worker %d (pid %d) has ended; the next one is started in %g s"
            _log.error(text, slot.worker, process.pid, delay_s)
            self._fail(WorkersFailed("a worker has ended before all of them served"))
        self.tell()

    async def _listen(self, member: Member) -> None:
        while (received := await member.process.channel.receive()) is not None:
            report = received.message
            if isinstance(report, Ready):
                self.fleet.ready(member.slot)
                text = "worker %d (pid %d) serves version %d"
                _log.info(text, member.slot.worker, member.slot.pid, member.slot.version)
            elif isinstance(report, Refused) and not report.attempt:
                _log.error("worker %d cannot serve: %s", member.slot.worker, _text_of(report))
                self._fail(error_of(report))
            else:
                self.heed(member, report)
            self.tell()

    async def _limit_start(self, member: Member) -> None:
        await trio.sleep(START_S)
        if member.slot.phase is Phase.STARTING:
            _log.error("worker %d does not serve after %g s", member.slot.worker, START_S)
            member.process.kill()

    def _fail(self, failure: VsrError) -> None:
        if not self._has_started and self.failure is None:
            self.failure = failure
            self.tell()


async def _reap(process: WorkerProcess) -> None:
    """Wait for a process that is to be gone; end one that is not."""
    with trio.move_on_after(_REAP_S):
        await process.wait()
        return
    process.kill()
    await process.wait()


def error_of(refused: Refused) -> VsrError:
    """Return what a worker's refusal is to whoever asked."""
    if refused.problems:
        return ConfigRejected(refused.problems)
    return WorkersFailed(refused.text)


def _text_of(refused: Refused) -> str:
    return refused.text or "; ".join(str(problem) for problem in refused.problems)
