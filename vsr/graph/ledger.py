"""The ledger of one request: one entry per started call, each with exactly one end."""

import msgspec

from vsr.routing.budget import Reservation
from vsr.routing.outcome import Outcome


class LedgerEntry(msgspec.Struct, eq=False, gc=False):
    """One call that was started."""

    model: str
    reservation: Reservation
    outcome: Outcome | None = None
    """None while the call is under way."""

    def close(self, outcome: Outcome) -> bool:
        """Record how the call ended; later calls change nothing and return False."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        return True


class Ledger(msgspec.Struct, eq=False, gc=False):
    """The calls of one request in the order in which they were started."""

    entries: list[LedgerEntry] = []

    def open(self, model: str, reservation: Reservation) -> LedgerEntry:
        """Enter a call that is about to be made."""
        entry = LedgerEntry(model, reservation)
        self.entries.append(entry)
        return entry

    @property
    def open_entries(self) -> list[LedgerEntry]:
        """Return the calls that have not ended."""
        return [entry for entry in self.entries if entry.outcome is None]
