"""The ledger of one request: one entry per started call, each with exactly one end."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from vsr.routing.budget import Price, Reservation
from vsr.routing.outcome import NOTHING_USED, Attempt, Cause, Outcome, Terminal, Usage
from vsr.routing.trace import Trace

if TYPE_CHECKING:
    from vsr.codec.chat_reply import Reply

_NANO_S = 1e-9


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """How good the graph has found a reply."""

    is_accepted: bool
    score: float | None = None
    threshold: float | None = None


class LedgerEntry(msgspec.Struct, eq=False, gc=False):
    """One call that was started."""

    model: str
    reservation: Reservation
    outcome: Outcome | None = None
    """None while the call is under way."""
    ordinal: int = 0
    """From 1, in the order of the starts."""
    step: str = ""
    """Path of the step that made it: ids, with the number of each round and branch."""
    started_at: float = 0.0
    """Monotonic seconds, as is `ended_at`."""
    ended_at: float | None = None
    settled: tuple[Reservation, ...] = ()
    """Of its earlier attempts, in order."""
    is_refused: bool = False
    """Whether the budget refused one attempt more."""
    price: Price | None = None
    """Of its model; None where it has none, or the call is a plain request's."""
    error: str = ""
    """Code of its failure; empty where there is none, or it was cancelled."""
    reply: "Reply | None" = None
    """What it brought, where it succeeded and its step waited for it."""
    verdict: Verdict | None = None
    """Of its reply, where the graph judges it."""
    trace: Trace | None = None
    """Its part of the request's trace; None where nothing is traced."""
    tries: Sequence[Attempt] = ()
    """Its attempts so far, where its step waits for it; `outcome` has all of them in the end."""

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that are known: those reported, or none if it surely did nothing."""
        return self._used_from(0)

    @property
    def last_usage(self) -> Usage | None:
        """Return the same of what `reservation` was made for: the last attempt, if it began."""
        return self._used_from(len(self.settled))

    def _used_from(self, first: int) -> Usage | None:
        outcome = self.outcome
        if outcome is None or outcome.usage is not None:
            return None if outcome is None else outcome.usage
        if outcome.terminal is Terminal.SUCCEEDED:
            return None
        is_zero = all(each.is_known_zero for each in outcome.attempts[first:])
        return NOTHING_USED if is_zero else None

    def close(self, outcome: Outcome) -> bool:
        """Record how the call ended; later calls change nothing and return False."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        return True


class VerifierCall(msgspec.Struct, eq=False, gc=False):
    """One question to a service that judges and is no model; no budget knows of it."""

    kind: str
    """`http` or `runtime`."""
    step: str
    behind: int
    """How many calls to models had been started before it."""
    started_at: float
    """Monotonic seconds, as is `ended_at`."""
    ended_at: float | None = None
    terminal: Terminal | None = None
    """None while it is under way."""
    cause: Cause | None = None
    error: str = ""
    """As of a call."""


class Ledger(msgspec.Struct, eq=False, gc=False):
    """The calls of one request in the order in which they were started."""

    entries: list[LedgerEntry] = []
    watch: Callable[[LedgerEntry], None] | None = None
    """Told of every start and every end; None where nobody wants to know."""
    verifier_calls: list[VerifierCall] | None = None
    """None where there were none."""
    timers: int = 0
    """How many the run has set; see `untied_s`."""

    def open(self, model: str, reservation: Reservation) -> LedgerEntry:
        """Enter a call that is about to be made."""
        entries = self.entries
        entry = LedgerEntry(model, reservation, None, len(entries) + 1)
        entries.append(entry)
        return entry

    def judge(self, reply: object, verdict: Verdict) -> None:
        """Note how good a reply was found; nothing where no call here has brought it."""
        for entry in reversed(self.entries):
            if entry.reply is not None and entry.reply is reply:
                entry.verdict = verdict
                return

    def tell(self, entry: LedgerEntry) -> None:
        """Tell the watch that a call has been started, or has ended."""
        if self.watch is not None:
            self.watch(entry)

    def untied_s(self, duration_s: float) -> float:
        """Return how long a new timer of the run is to last: so many nanoseconds more.

        Those that are set together for the same time then end in the order in which they were
        set. If they ended at one instant, the event loop would shuffle what follows them.
        """
        self.timers += 1
        return duration_s + (self.timers - 1) * _NANO_S

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Return the attempts of all calls that have ended, in the order of the calls."""
        outcomes = [entry.outcome for entry in self.entries if entry.outcome is not None]
        return tuple(attempt for outcome in outcomes for attempt in outcome.attempts)

    @property
    def usage(self) -> Usage | None:
        """Return what all calls have used; None where that of one is not known."""
        prompt = completion = 0
        for entry in self.entries:
            used = entry.usage
            if used is None:
                return None
            prompt += used.prompt_tokens
            completion += used.completion_tokens
        return Usage(prompt, completion)

    @property
    def open_entries(self) -> list[LedgerEntry]:
        """Return the calls that have not ended."""
        return [entry for entry in self.entries if entry.outcome is None]
