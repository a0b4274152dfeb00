"""Slots, processes and activations under every order of events."""

from collections import deque
from collections.abc import Sequence

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vsr.workers.activation import Activation, Outcome, Refusal
from vsr.workers.fleet import Fleet, Phase, Slot

SIZE = 3
WORKERS = st.integers(0, SIZE - 1)


@attrs.define
class Process:
    """What a worker does, without what takes time: orders in, reports out, both in turn."""

    serves: int
    orders: deque[Sequence[object]] = attrs.field(factory=deque)
    reports: deque[Sequence[object]] = attrs.field(factory=deque)
    built: int = 0


class Workers(RuleBasedStateMachine):
    """A supervisor that does as its fleet says, and processes that answer, refuse and die.

    The word is read by every request; orders and reports arrive in turn but at any time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet.of(SIZE, 1)
        self.word = 1
        self.processes: list[Process | None] = [None] * SIZE
        self.seen = 1
        self.now = 0.0

    def _slot(self, at: int) -> Slot:
        return self.fleet.slots[at]

    @rule(at=WORKERS)
    def start(self, at: int) -> None:
        """Start a process with what serves, if that may be."""
        if self.fleet.may_start(self._slot(at)):
            self.fleet.start(self._slot(at), 100 + at, now=self.now)
            process = self.processes[at] = Process(0)
            activation = self.fleet.activation
            if activation is None:
                process.orders.append(("start", self.fleet.version))
            else:
                assert activation.trial == self._slot(at).serial
                process.orders.append(("prepare", activation.attempt, activation.version))

    @rule(at=WORKERS, is_well=st.booleans())
    def work(self, *, at: int, is_well: bool) -> None:
        """Let a process carry out one order."""
        process = self.processes[at]
        if process is None or not process.orders:
            return
        match process.orders.popleft():
            case ("start", int(version)):
                process.serves = version
                process.reports.append(("ready",))
            case ("prepare", attempt, int(version)):
                process.built = version if is_well else 0
                process.reports.append(("agreed" if is_well else "refused", attempt))
            case ("discard",):
                process.built = 0
            case ("commit",):
                is_on_trial = not process.serves
                self._admit(process)
                if is_on_trial:
                    process.reports.append(("ready",))

    @rule(at=WORKERS)
    def hear(self, at: int) -> None:
        """Let one report of a process arrive."""
        process, slot, activation = self.processes[at], self._slot(at), self.fleet.activation
        if process is None or not process.reports:
            return
        match process.reports.popleft():
            case ("ready",):
                self.fleet.ready(slot)
            case (word, attempt) if activation is not None and activation.attempt == attempt:
                if word == "agreed":
                    activation.agree(slot.serial)
                else:
                    activation.refuse(slot.serial, Refusal(text="bad"))

    @rule(at=WORKERS)
    def die(self, at: int) -> None:
        """Kill a process."""
        if self.processes[at] is not None:
            self.processes[at] = None
            self.now += 1.0
            assert self.fleet.end(self._slot(at), now=self.now) >= 0

    @precondition(lambda self: self.fleet.activation is None)
    @rule()
    def begin(self) -> None:
        """Begin to activate the next version."""
        activation = self.fleet.begin(self.fleet.version + 1)
        for slot, process in zip(self.fleet.slots, self.processes, strict=True):
            if process is not None:
                assert slot.serial in activation.waiting
                process.orders.append(("prepare", activation.attempt, activation.version))

    @precondition(lambda self: self.fleet.activation is not None)
    @rule(is_wanted=st.booleans())
    def conclude(self, *, is_wanted: bool) -> None:
        """Do what the activation comes to, or give it up, even where all have agreed."""
        activation = self.fleet.activation
        assert activation is not None
        if activation.outcome is Outcome.AGREED and is_wanted:
            self._commit(activation)
        elif activation.outcome is Outcome.REFUSED or not is_wanted:
            self.fleet.abort()
            for at, slot in enumerate(self.fleet.slots):
                if slot.serial == activation.trial:
                    self.die(at)
            self._tell_all("discard")

    def _commit(self, activation: Activation) -> None:
        for slot, process in zip(self.fleet.slots, self.processes, strict=True):
            if process is not None:
                assert slot.serial in activation.agreed
                assert process.built == activation.version
        before, self.word = self.word, self.fleet.commit()
        assert self.word == before + 1
        self._tell_all("commit")

    def _tell_all(self, order: str) -> None:
        for process in self.processes:
            if process is not None:
                process.orders.append((order,))

    @rule(at=WORKERS)
    def ask(self, at: int) -> None:
        """Send a request to a process that serves: it never sees a version older than one seen."""
        process = self.processes[at]
        if process is not None and process.serves:
            self._admit(process)
            assert process.serves >= self.seen
            self.seen = process.serves

    @invariant()
    def all_serve_one_version(self) -> None:
        """Whoever is asked now serves what the word says, or can do so at once."""
        for process in self.processes:
            if process is not None and process.serves:
                assert self.word in {process.serves, process.built}
        assert self.fleet.version == self.word

    def _admit(self, process: Process) -> None:
        if process.serves != self.word and process.built == self.word:
            process.serves, process.built = process.built, 0
        assert process.serves == self.word


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_status_tells_of_every_slot() -> None:
    """Restarts do not count the first start, and a slot without a process keeps its last one."""
    fleet = Fleet.of(2, 5)
    first, second = fleet.slots
    fleet.start(first, 10, now=1.0)
    fleet.ready(first)
    fleet.start(second, 11, now=1.0)
    fleet.end(second, now=2.0)
    fleet.start(second, 12, now=3.0)
    fleet.end(second, now=4.0)

    one, two = fleet.statuses

    assert (one.worker, one.phase, one.pid, one.version, one.restarts) == (
        1,
        Phase.SERVING,
        10,
        5,
        0,
    )
    assert (two.worker, two.phase, two.pid, two.restarts) == (2, Phase.ENDED, 12, 1)
    assert not fleet.is_serving
    assert not fleet.has_ended
    assert second.due_at == 4.5
