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
    before it was ready has no say; whoever dies while it builds the version refuses it: that may
    be what it died of. A refusal is final.
    """

    attempt: int
    version: int
    refusal: Refusal | None = attrs.field(default=None, init=False)
    reused: tuple[str, ...] | None = attrs.field(default=None, init=False)
    _waiting: set[int]
    _agreed: set[int] = attrs.field(factory=set, init=False)

    @classmethod
    def of(cls, attempt: int, version: int, workers: Iterable[int]) -> "Activation":
        """Begin one that `workers` take part in."""
        return cls(attempt, version, set(workers))

    @property
    def outcome(self) -> Outcome:
        """Return what it comes to by now."""
        if self.refusal is not None:
            return Outcome.REFUSED
        if self._waiting:
            return Outcome.OPEN
        return Outcome.AGREED if self._agreed else Outcome.REFUSED

    @property
    def waiting(self) -> frozenset[int]:
        """Return who has not answered."""
        return frozenset(self._waiting)

    @property
    def agreed(self) -> frozenset[int]:
        """Return who has agreed and is there."""
        return frozenset(self._agreed)

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
        self._agreed.discard(worker)
        if worker in self._waiting:
            self._waiting.remove(worker)
            if was_ready:
                self.give_up(Refusal(text="a worker ended while it built the configuration"))
        if not self._waiting and not self._agreed:
            self.give_up(Refusal(text="no worker is left to serve the configuration"))

    def give_up(self, refusal: Refusal) -> None:
        """Refuse it for a reason that no worker has given."""
        if self.refusal is None:
            self.refusal = refusal
