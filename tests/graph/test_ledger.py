"""The ledger of one request."""

from vsr.graph.ledger import Ledger
from vsr.routing.budget import Reservation
from vsr.routing.outcome import Cause, Outcome, Terminal, Usage


def test_entries_stand_in_the_order_of_their_start() -> None:
    """Whatever the order of their ends."""
    ledger = Ledger()
    first = ledger.open("alpha", Reservation("alpha", 10))
    second = ledger.open("beta", Reservation("beta", 20))
    assert ledger.open_entries == [first, second]

    second.close(Outcome(Terminal.SUCCEEDED, status=200))

    assert ledger.open_entries == [first]
    first.close(Outcome(Terminal.FAILED))
    assert ledger.open_entries == []
    assert ledger.entries == [first, second]
    assert [entry.model for entry in ledger.entries] == ["alpha", "beta"]


def test_call_has_exactly_one_end() -> None:
    """The first one."""
    gone = Outcome(Terminal.CANCELLED, Cause.CLIENT_GONE)
    entry = Ledger().open("alpha", Reservation("alpha", 10))

    results = [entry.close(gone), entry.close(Outcome(Terminal.SUCCEEDED)), entry.close(gone)]

    assert results == [True, False, False]
    assert entry.outcome is gone


def test_entries_are_told_apart_by_identity() -> None:
    """Two calls to one model are two calls."""
    ledger = Ledger()
    reservation = Reservation("alpha", 10)

    assert ledger.open("alpha", reservation) != ledger.open("alpha", reservation)


def test_who_watches_is_told_of_starts_and_ends() -> None:
    """In their order, with the entry as it is by then; nobody need watch."""
    told: list[tuple[int, bool]] = []
    ledger = Ledger(watch=lambda each: told.append((each.ordinal, each.outcome is None)))
    entry = ledger.open("alpha", Reservation("alpha", 10))

    ledger.tell(entry)
    entry.close(Outcome(Terminal.SUCCEEDED))
    ledger.tell(entry)
    Ledger().tell(entry)

    assert told == [(1, True), (1, False)]


def test_usage_of_all_calls_is_known_where_that_of_each_is() -> None:
    """A call under way, or a backend that does not say, leaves the sum unknown."""
    ledger = Ledger()
    assert ledger.usage == Usage(0, 0)

    first = ledger.open("alpha", Reservation("alpha", 10))
    assert ledger.usage is None
    first.close(Outcome(Terminal.SUCCEEDED, usage=Usage(1, 2)))
    assert ledger.usage == Usage(1, 2)
    ledger.open("beta", Reservation("beta", 10)).close(Outcome(Terminal.SUCCEEDED))
    assert ledger.usage is None


def test_call_that_was_never_sent_has_surely_used_nothing() -> None:
    """Its deadline had passed before its first attempt."""
    entry = Ledger().open("alpha", Reservation("alpha", 10))

    entry.close(Outcome(Terminal.TIMED_OUT, Cause.DEADLINE))

    assert entry.usage == Usage(0, 0)
