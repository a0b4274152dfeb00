"""One activation on all workers: what each has said, and what it comes to."""

from collections.abc import Iterable
from enum import StrEnum

import attrs
import msgspec

from vsr.errors import Problem


class Outcome(StrEnum):
    """How far an activation has come."""

    OPEN = "open"
    """Somebody has not answered."""
    AGREED = "agreed"
    """Everybody who is there has built it: it may be committed."""
    REFUSED = "refused"


class Refusal(msgspec.Struct, frozen=True):
    """Why an activation cannot be."""

    problems: tuple[Problem, ...] = ()
    """Of the document; empty: it is not to blame."""
    text: str = ""


@attrs.define(eq=False)
class Activation:
    """Two-phase activation of one version. Workers are known by serial numbers, never used twice.

    It is agreed on once every worker that is there has agreed, and one at least. Whoever dies
    before it was ready has no say. A refusal is final.

    Where nobody is there to agree, or somebody dies who builds the version while it serves the one
    before, nothing is known yet: it may have died of either. Then a process on trial has the last
    word, which begins with the version and serves nobody; if that dies, it was the version.
    """

    attempt: int
    version: int
    refusal: Refusal | None = attrs.field(default=None, init=False)
    reused: tuple[str, ...] | None = attrs.field(default=None, init=False)
    _waiting: set[int]
    _agreed: set[int] = attrs.field(factory=set, init=False)
    trial: int | None = attrs.field(default=None, init=False)
    """The worker that is, or was, on trial."""
    _is_in_doubt: bool = attrs.field(default=False, init=False)

    @classmethod
    def of(cls, attempt: int, version: int, workers: Iterable[int]) -> "Activation":
        """Begin one that `workers` take part in."""
        return cls(attempt, version, set(workers))

    @property
    def outcome(self) -> Outcome:
        """Return what it comes to by now."""
        if self.refusal is not None:
            return Outcome.REFUSED
        return Outcome.OPEN if self._waiting or self.wants_trial else Outcome.AGREED

    @property
    def wants_trial(self) -> bool:
        """Return whether a process is to begin with the version, which then `join`s."""
        if self.refusal is not None or self.trial is not None:
            return False
        return self._is_in_doubt or not (self._waiting or self._agreed)

    @property
    def waiting(self) -> frozenset[int]:
        """Return who has not answered."""
        return frozenset(self._waiting)

    @property
    def agreed(self) -> frozenset[int]:
        """Return who has agreed and is there."""
        return frozenset(self._agreed)

    def join(self, worker: int) -> None:
        """Note that a worker begins with the version, on trial."""
        self.trial = worker
        self._waiting.add(worker)

    def agree(self, worker: int, reused: tuple[str, ...] = ()) -> None:
        """Note that a worker has built the version."""
        if worker in self._waiting:
            self._waiting.remove(worker)
            self._agreed.add(worker)
            # What one of them builds anew is not reused.
            seen = reused if self.reused is None else self.reused
            self.reused = tuple(each for each in seen if each in reused)

    def refuse(self, worker: int, refusal: Refusal) -> None:
        """Note that a worker cannot serve the version; the first refusal is the one that counts."""
        if worker in self._waiting:
            self._waiting.remove(worker)
            self.give_up(refusal)

    def lose(self, worker: int, *, was_ready: bool) -> None:
        """Note that a worker has died."""
        had_agreed = worker in self._agreed
        self._agreed.discard(worker)
        if worker in self._waiting:
            self._waiting.remove(worker)
            if worker == self.trial:
                self.give_up(Refusal(text="a worker ended while it built the configuration"))
            self._is_in_doubt |= was_ready
        if had_agreed and not self._waiting and not self._agreed:
            self.give_up(Refusal(text="no worker is left to serve the configuration"))

    def give_up(self, refusal: Refusal) -> None:
        """Refuse it for a reason that no worker has given."""
        if self.refusal is None:
            self.refusal = refusal
