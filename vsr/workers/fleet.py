"""Who works: slots, the processes in them, and the activation that is on."""

from enum import StrEnum

import attrs
import msgspec

from vsr.workers.activation import Activation, Outcome
from vsr.workers.backoff import Backoff


class Phase(StrEnum):
    """What a slot's process does."""

    STARTING = "starting"
    SERVING = "serving"
    ENDED = "ended"
    """It is started again when its time has come."""


class WorkerStatus(msgspec.Struct, frozen=True):
    """What is known of one slot."""

    worker: int
    """From 1."""
    phase: Phase
    pid: int
    """0 until the first start."""
    version: int
    """That it serves, or served last."""
    restarts: int
    started_at: float
    """Monotonic seconds."""


@attrs.define(eq=False)
class Slot:
    """Has one process at a time."""

    worker: int
    backoff: Backoff
    serial: int = 0
    """Of its process, by which that is told from earlier ones."""
    phase: Phase = Phase.ENDED
    pid: int = 0
    starts: int = 0
    started_at: float = 0.0
    due_at: float = 0.0
    """When it may be started."""
    version: int = 0


@attrs.define(eq=False)
class Fleet:
    """Decides who may be started, and when a version may be committed; holds no clock.

    No process begins while an activation is on, so that each knows of the version that serves when
    it begins, and of every later one; but one on trial with the version that is to be activated.
    """

    version: int
    """That serves."""
    slots: tuple[Slot, ...]
    activation: Activation | None = attrs.field(default=None, init=False)
    is_ending: bool = attrs.field(default=False, init=False)
    _serials: int = attrs.field(default=0, init=False)
    _attempts: int = attrs.field(default=0, init=False)

    @classmethod
    def of(cls, size: int, version: int) -> "Fleet":
        """Return one whose slots are all to be started."""
        return cls(version, tuple(Slot(at + 1, Backoff()) for at in range(size)))

    @property
    def statuses(self) -> tuple[WorkerStatus, ...]:
        """Return what is known, slot by slot."""
        return tuple(
            WorkerStatus(
                slot.worker,
                slot.phase,
                slot.pid,
                slot.version,
                max(0, slot.starts - 1),
                slot.started_at,
            )
            for slot in self.slots
        )

    @property
    def is_serving(self) -> bool:
        """Return whether every slot's process serves."""
        return all(slot.phase is Phase.SERVING for slot in self.slots)

    @property
    def has_ended(self) -> bool:
        """Return whether no process is left."""
        return all(slot.phase is Phase.ENDED for slot in self.slots)

    def may_start(self, slot: Slot) -> bool:
        """Return whether its process may begin as far as the others are concerned."""
        may_begin = self.activation is None or self.activation.wants_trial
        return may_begin and not self.is_ending and slot.phase is Phase.ENDED

    @property
    def wants_trial(self) -> bool:
        """Return whether a process is to begin on trial, however soon after its last end."""
        return self.activation is not None and self.activation.wants_trial

    def start(self, slot: Slot, pid: int, *, now: float) -> None:
        """Note that a process begins; it `may_start`.

        It begins with the version that serves, amid an activation on trial with that one's.
        """
        self._serials += 1
        if self.activation is not None:
            self.activation.join(self._serials)
        slot.serial, slot.phase, slot.pid = self._serials, Phase.STARTING, pid
        slot.starts += 1
        slot.started_at, slot.version = now, self.version

    def ready(self, slot: Slot) -> None:
        """Note that its process serves."""
        slot.phase = Phase.SERVING

    def end(self, slot: Slot, *, now: float) -> float:
        """Note that its process has ended; return how long the next one has to wait."""
        was_ready, slot.phase = slot.phase is Phase.SERVING, Phase.ENDED
        if self.activation is not None:
            self.activation.lose(slot.serial, was_ready=was_ready)
        delay_s = slot.backoff.delay_s(now - slot.started_at)
        slot.due_at = now + delay_s
        return delay_s

    def begin(self, version: int) -> Activation:
        """Begin to activate `version` on every process there is; none is on, and it is newer."""
        assert self.activation is None  # noqa: S101  # see above
        assert version > self.version  # noqa: S101  # see above
        self._attempts += 1
        there = (slot.serial for slot in self.slots if slot.phase is not Phase.ENDED)
        self.activation = Activation.of(self._attempts, version, there)
        return self.activation

    def commit(self) -> int:
        """End the activation, which is agreed on; return the version, which serves from now on."""
        activation = self.activation
        assert activation is not None  # noqa: S101  # see above
        assert activation.outcome is Outcome.AGREED  # noqa: S101  # see above
        self.activation, self.version = None, activation.version
        for slot in self.slots:
            if slot.serial in activation.agreed:
                slot.version = self.version
        return self.version

    def abort(self) -> None:
        """End the activation without effect."""
        self.activation = None
