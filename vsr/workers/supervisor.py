"""The supervisor's side: what its workers serve, taken over by all of them together."""

from collections.abc import Iterable
from pathlib import Path

import attrs
import msgspec
import trio

from vsr.config.attempt import Reason, Stage, reasons_of
from vsr.config.parts import parts_of
from vsr.config.restart import only_by_restart
from vsr.config.slicing import in_slices
from vsr.errors import ConfigRejected
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import Tracing
from vsr.slices import Sliced
from vsr.workers.activation import Activation, Outcome, Refusal
from vsr.workers.asking import Asking
from vsr.workers.crew import Crew, Member, Spawn, WorkersFailed
from vsr.workers.fleet import Fleet, Phase, Slot, WorkerStatus
from vsr.workers.merge import Merged
from vsr.workers.messages import (
    METRICS,
    Agreed,
    Answered,
    Commit,
    Committed,
    Discard,
    Drain,
    End,
    Family,
    Part,
    Prepare,
    Refused,
    Renew,
    Report,
    Sample,
    Start,
    Word,
)
from vsr.workers.outbox import Outbox
from vsr.workers.sockets import ListeningSockets, SocketChange
from vsr.workers.unshared import unshared
from vsr.workers.word import VersionWord, make_word_memory

PREPARE_S = 60.0
"""As long as compiling may take; a worker that has not answered by then hangs."""
DRAIN_S = 30.0
"""A worker's own drain is bounded, and shorter."""
_COMMIT_S = 5.0
"""What workers get to take over listeners; requests see the version at once."""
_WORKER_UP = "llm_worker_up"
_FAMILIES = msgspec.msgpack.Decoder(tuple[Family, ...])


class _Candidate(msgspec.Struct, frozen=True):
    """What a worker on trial begins with."""

    parts: tuple[bytes, ...]
    change: SocketChange


@attrs.define(eq=False)
class Supervisor:
    """Implements `config.lifecycle.Installation` for several processes."""

    folder: Path
    sockets: ListeningSockets
    word: VersionWord
    snapshot: Snapshot = attrs.field(repr=False)
    """That serves."""
    tracing: Tracing | None
    """That the workers were started with."""
    fleet: Fleet
    crew: Crew = attrs.field(init=False)
    asking: Asking = attrs.field(init=False)
    _parts: tuple[bytes, ...] = attrs.field(repr=False)
    """Of the snapshot that serves, for workers to come."""
    _candidate: "_Candidate | None" = attrs.field(default=None, init=False, repr=False)
    """Of the activation that is on, for a worker on trial."""
    _uncommitted: set[int] = attrs.field(factory=set, init=False)
    """Who has not said yet that it has taken over the last version."""
    _metrics: Merged = attrs.field(factory=Merged, init=False)

    @classmethod
    def open(  # what a process is told, and what starts others
        cls,
        size: int,
        snapshot: Snapshot,
        version: int,
        folder: Path,
        spawn: Spawn,
        sockets: ListeningSockets,
    ) -> "Supervisor":
        """Bind the listeners of `snapshot` for so many workers; `run` starts them.

        Raises:
            ConfigRejected: a listener cannot be bound, or there is none, or workers would each keep
                to themselves what a client can notice.
        """
        problems = unshared(snapshot)
        if problems:
            raise ConfigRejected(problems)
        change = sockets.prepare(snapshot.listeners)
        try:
            change.open()
        except ConfigRejected:
            change.close()
            raise
        sockets.commit(change)
        opened = cls(
            folder.absolute(),
            sockets,
            VersionWord(make_word_memory(version)),
            snapshot,
            snapshot.tracing,
            Fleet.of(size, version),
            tuple(parts_of(snapshot)),
        )
        opened.crew = Crew(opened.fleet, spawn, opened._brief, opened._heed, opened._mourn)
        opened.asking = Asking(opened.crew)
        return opened

    @property
    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Return what is known of each worker."""
        return self.fleet.statuses

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return why these workers cannot take `snapshot`."""
        problems = unshared(snapshot)
        apart = reasons_of(ConfigRejected(problems), Stage.VALIDATE) if problems else ()
        return (*only_by_restart(snapshot, self.tracing), *apart)

    async def prepare(self, snapshot: Snapshot, version: int) -> "PreparedFleet":
        """Let every worker build and warm `snapshot`.

        Raises:
            ConfigRejected: a listener cannot be bound, or a worker refuses the configuration.
            VsrError: a worker fails otherwise.
        """
        change = self.sockets.prepare(snapshot.listeners)
        try:
            parts = await in_slices(_collected(snapshot))
            self._candidate = _Candidate(parts, change)
            activation = self.fleet.begin(version)
            try:
                await self._ask(activation, parts, change)
            except BaseException:
                self._abort(activation)
                raise
        except BaseException:
            change.close()
            raise
        return PreparedFleet(self, snapshot, activation, parts, change)

    async def _ask(
        self, activation: Activation, parts: tuple[bytes, ...], change: SocketChange
    ) -> None:
        sockets = [(place, sock.fileno()) for place, sock in change.new.items()]
        for serial in activation.waiting:
            outbox = self.crew.members[serial].outbox
            outbox.put_sockets(sockets)
            for part in parts:
                outbox.put(Part(part))
            outbox.put(Prepare(activation.attempt, activation.version))
        self.crew.tell()  # somebody may be wanted on trial
        if not await self._has_ended(activation) and self._end_beginners(activation):
            await self._has_ended(activation)
        if activation.outcome is Outcome.OPEN:
            self._kill(activation.waiting)
            activation.give_up(Refusal(text=f"a worker has not built it within {PREPARE_S:g} s"))
        if activation.outcome is Outcome.REFUSED:
            raise _error_of(activation)

    async def _has_ended(self, activation: Activation) -> bool:
        with trio.move_on_after(PREPARE_S):
            await self.crew.until(lambda: activation.outcome is not Outcome.OPEN)
        return activation.outcome is not Outcome.OPEN

    def _end_beginners(self, activation: Activation) -> bool:
        """End those that hang with the version that serves; return whether nobody else hangs."""
        members = self.crew.members
        stuck = {each for each in activation.waiting if each in members}
        beginners = {
            each
            for each in stuck
            if members[each].slot.phase is Phase.STARTING and each != activation.trial
        }
        self._kill(beginners)
        return stuck == beginners

    def _kill(self, serials: Iterable[int]) -> None:
        for serial in serials:
            if serial in self.crew.members:
                self.crew.members[serial].process.kill()

    def _abort(self, activation: Activation) -> None:
        self.fleet.abort()
        self._candidate = None
        self.crew.order(Discard(activation.attempt))
        if activation.trial is not None:
            self._kill([activation.trial])
        self.crew.tell()

    def commit(self, prepared: "PreparedFleet") -> None:
        """Let every worker serve what is prepared, in one step.

        Raises:
            VsrError: no worker that has built it is left, or another process has come to listen
                where this one would.
        """
        activation = prepared.activation
        if activation.outcome is not Outcome.AGREED:
            raise _error_of(activation)
        prepared.change.open()
        self._parts, self.snapshot, self._candidate = prepared.parts, prepared.snapshot, None
        self._uncommitted = set(activation.agreed)
        self.word.store(self.fleet.commit())
        # Who has come to one that is gone is served by the workers; nobody else comes there.
        self.sockets.commit(prepared.change)
        for serial in activation.agreed:
            self.crew.members[serial].outbox.put(Commit(activation.attempt))
        self.crew.tell()

    async def taken_over(self) -> None:
        """Wait until every worker that is left has taken over what was committed."""
        with trio.CancelScope(shield=True, relative_deadline=_COMMIT_S):
            await self.crew.until(lambda: not self._uncommitted & set(self.crew.members))

    async def run(  # noqa: ASYNC128  # `Crew.run` does
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep workers going until they are drained; see `Crew.run`."""
        await self.crew.run(task_status=task_status)

    async def drain(self) -> None:
        """Let every worker drain, and end those that take too long."""
        self.fleet.is_ending = True
        self.sockets.close()
        self.crew.order(Drain())
        self.crew.tell()
        with trio.move_on_after(DRAIN_S):
            await self.crew.until(lambda: self.fleet.has_ended)
            return
        self.crew.kill_all()
        await self.crew.until(lambda: self.fleet.has_ended)

    def force_end(self) -> None:
        """End every request under way."""
        self.crew.order(End())

    def renew_certificates(self) -> None:
        """Let every worker load them anew."""
        self.crew.order(Renew())

    async def metrics(self) -> tuple[Family, ...]:
        """Return the metrics of all workers as one, as far as they tell them in time."""
        answers = await self.asking.ask(METRICS)
        told = {worker: _FAMILIES.decode(answer) for worker, answer in answers.told.items()}
        return (*self._metrics.merge(told), _worker_up(told, answers.missing))

    def _brief(self, outbox: Outbox) -> None:
        """Tell a worker that begins what it is to serve."""
        parts, sockets = self._parts, dict(self.sockets.bound)
        start = Start(self.fleet.version, str(self.folder))
        activation, candidate = self.fleet.activation, self._candidate
        if activation is not None and candidate is not None:  # it is on trial
            parts = candidate.parts
            sockets = {
                place: sock for place, sock in sockets.items() if place not in candidate.change.gone
            } | candidate.change.new
            start = Start(activation.version, str(self.folder), activation.attempt)
        outbox.put(Word(), [self.word.descriptor])
        outbox.put_sockets([(place, sock.fileno()) for place, sock in sockets.items()])
        for part in parts:
            outbox.put(Part(part))
        self.asking.brief(outbox)
        outbox.put(start)

    def _heed(self, member: Member, report: Report) -> None:
        activation = self.fleet.activation
        serial = member.slot.serial
        match report:
            case Committed():
                self._uncommitted.discard(serial)
            case Answered():
                self.asking.heed(member, report)
            case Agreed() if activation is not None and report.attempt == activation.attempt:
                activation.agree(serial, report.reused)
            case Refused() if activation is not None and report.attempt == activation.attempt:
                activation.refuse(serial, Refusal(report.problems, report.text))
            case _:
                pass  # an answer that came too late

    def _mourn(self, slot: Slot) -> None:
        self._metrics.end(slot.worker)


@attrs.define(eq=False)
class PreparedFleet:
    """Implements `config.lifecycle.Prepared`."""

    supervisor: Supervisor
    snapshot: Snapshot
    activation: Activation
    parts: tuple[bytes, ...] = attrs.field(repr=False)
    change: SocketChange
    _is_committed: bool = attrs.field(default=False, init=False)

    @property
    def reused(self) -> tuple[str, ...]:
        """Return the components that every worker keeps."""
        return self.activation.reused or ()

    async def commit(self) -> None:
        """Serve it everywhere: by one store, then by what follows from it."""
        self.supervisor.commit(self)
        self._is_committed = True
        await self.supervisor.taken_over()

    async def discard(self) -> None:
        """Give up what was built."""
        if not self._is_committed:
            self.change.close()
            self.supervisor._abort(self.activation)  # noqa: SLF001  # as one
        await trio.lowlevel.cancel_shielded_checkpoint()


def _worker_up(told: Iterable[int], missing: Iterable[int]) -> Family:
    """Return who told its metrics, and who did not."""
    up = {**dict.fromkeys(told, 1.0), **dict.fromkeys(missing, 0.0)}
    samples = (
        Sample(_WORKER_UP, {"worker": str(worker)}, value) for worker, value in sorted(up.items())
    )
    return Family(_WORKER_UP, "1 if a worker told its metrics in time.", "gauge", tuple(samples))


def _collected(snapshot: Snapshot) -> Sliced[tuple[bytes, ...]]:
    parts = []
    for part in parts_of(snapshot):
        parts.append(part)
        yield
    return tuple(parts)


def _error_of(activation: Activation) -> ConfigRejected | WorkersFailed:
    refusal = activation.refusal or Refusal(text="no worker is there to serve the configuration")
    if refusal.problems:
        return ConfigRejected(refusal.problems)
    return WorkersFailed(refusal.text)
