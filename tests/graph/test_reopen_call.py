"""Reserving for one attempt more of a call, and what whole requests come to."""

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.demo.raw_client import chat_body
from tests.engine.stepped_backend import EVENT_STREAM, Act, chunk
from tests.engine.test_fallback import BUSY, HUNG, NAMES, REFUSED, start
from tests.engine.test_last_resort import RESORT
from tests.engine.wired import CHAT_PIECES
from tests.fakes.graph import FakePrompt, make_run
from vsr.graph.budget import UNLIMITED, Budget, Limits
from vsr.graph.ledger import Ledger
from vsr.routing.budget import Reservation
from vsr.routing.outcome import Attempt, Cause, Outcome, Terminal, TransportFact, Usage

BOUND = 30
"""Of each attempt: 10 tokens of prompt and 20 of output."""


class CountingBudget(Budget, eq=False):
    """Counts how often each reservation is settled."""

    settlements: list[Reservation] = msgspec.field(default_factory=list)

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Count and settle."""
        self.settlements.append(reservation)
        super().settle(reservation, usage)


@pytest.mark.parametrize(("is_known_zero", "price"), [(True, 0), (False, BOUND)])
def test_attempt_that_may_have_used_something_costs_what_was_reserved(
    *, is_known_zero: bool, price: int
) -> None:
    """One that surely did nothing is free; the next one is reserved for in either case."""
    budget = CountingBudget(Limits(max_tokens=100))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")
    first = entry.reservation

    assert run.reopen_call(entry, is_known_zero=is_known_zero)

    assert entry.reservation is not first
    assert (first.is_settled, first.used_tokens) == (True, 0 if is_known_zero else None)
    assert (entry.reservation.model, entry.reservation.tokens) == ("alpha", BOUND)
    assert (budget.spent_tokens, budget.reserved_tokens, budget.hops) == (price, BOUND, 2)
    assert (run.ledger.entries, entry.outcome) == ([entry], None)

    run.close_call(entry, Outcome(Terminal.SUCCEEDED, usage=Usage(5, 7)))

    assert (budget.spent_tokens, budget.reserved_tokens) == (price + 12, 0)
    assert budget.settlements == [first, entry.reservation]


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize(
    ("fact", "price"), [(TransportFact.CONNECTED, 0), (TransportFact.REQUEST_WRITTEN, BOUND)]
)
def test_last_attempt_that_did_nothing_is_free(
    fact: TransportFact, price: int, retries: int
) -> None:
    """As one is that another follows."""
    budget = Budget(Limits(max_tokens=100))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")
    before = (Attempt("alpha", "e", "a:1", 0.0, TransportFact.REQUEST_WRITTEN),) * retries
    for _ in before:
        assert run.reopen_call(entry, is_known_zero=False)

    last = Attempt("alpha", "e", "a:1", 1.0, fact)
    run.close_call(entry, Outcome(Terminal.FAILED, attempts=(*before, last)))

    assert (budget.spent_tokens, budget.reserved_tokens) == (retries * BOUND + price, 0)


def test_attempt_that_never_began_is_free() -> None:
    """It was reserved for, and its client left before."""
    budget = Budget(Limits(max_tokens=100))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")
    first = Attempt("alpha", "e", "a:1", 0.0, TransportFact.REQUEST_WRITTEN)
    assert run.reopen_call(entry, is_known_zero=False)

    run.close_call(entry, Outcome(Terminal.CANCELLED, Cause.CLIENT_GONE, attempts=(first,)))

    assert (budget.spent_tokens, budget.reserved_tokens) == (BOUND, 0)


def test_known_zero_attempts_leave_room_for_as_many_as_are_wanted() -> None:
    """Tokens are reserved once at a time, however often nothing was used."""
    budget = Budget(Limits(max_tokens=BOUND))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")

    assert all(run.reopen_call(entry, is_known_zero=True) for _ in range(5))
    assert not run.reopen_call(entry, is_known_zero=False)

    assert (budget.spent_tokens, budget.reserved_tokens, budget.hops) == (BOUND, 0, 6)


@pytest.mark.parametrize("is_known_zero", [True, False])
def test_hops_are_spent_by_every_attempt(*, is_known_zero: bool) -> None:
    """To the last one; an attempt that did nothing was a hop all the same."""
    budget = Budget(Limits(max_hops=3))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")

    got = [run.reopen_call(entry, is_known_zero=is_known_zero) for _ in range(3)]

    assert (got, budget.hops) == ([True, True, False], 3)


@pytest.mark.parametrize("is_known_zero", [True, False])
@pytest.mark.parametrize("usage", [None, Usage(1, 1)])
def test_refused_attempt_leaves_the_call_as_it_is(
    usage: Usage | None, *, is_known_zero: bool
) -> None:
    """It ends with what it has: its entry open until then, its one reservation settled already."""
    budget = Budget(Limits(max_hops=1, max_tokens=100))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")
    first = entry.reservation

    assert not run.reopen_call(entry, is_known_zero=is_known_zero)
    assert (entry.reservation, run.ledger.open_entries) == (first, [entry])
    run.close_call(entry, Outcome(Terminal.FAILED, usage=usage))

    assert entry.outcome == Outcome(Terminal.FAILED, usage=usage)
    price = 0 if is_known_zero else BOUND
    assert (budget.spent_tokens, budget.reserved_tokens, budget.hops) == (price, 0, 1)


def test_other_calls_of_the_request_are_not_touched() -> None:
    """A branch beside it has its own entry and reservation."""
    budget = Budget(Limits(max_tokens=3 * BOUND))
    run = make_run(budget=budget)
    other, entry = run.open_call("beta"), run.open_call("alpha")

    assert run.reopen_call(entry, is_known_zero=False)
    assert not run.reopen_call(entry, is_known_zero=False)

    assert not other.reservation.is_settled
    assert (budget.spent_tokens, budget.reserved_tokens) == (2 * BOUND, BOUND)


def test_overrun_refuses_further_attempts() -> None:
    """Also those of calls that are under way."""
    budget = Budget(Limits(max_tokens=1000))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")
    run.close_call(run.open_call("beta"), Outcome(Terminal.SUCCEEDED, usage=Usage(BOUND, 1)))

    assert not run.reopen_call(entry, is_known_zero=True)


def test_nothing_is_measured_without_a_limit_of_tokens() -> None:
    """An ordinary retry pays nothing for the budget."""
    prompt = FakePrompt()
    run = make_run(budget=Budget())
    run.prompt = prompt
    entry = run.open_call("alpha")

    assert run.reopen_call(entry, is_known_zero=False)
    assert (prompt.measured, entry.reservation.tokens) == (0, None)


@given(
    max_hops=st.none() | st.integers(1, 6),
    max_tokens=st.none() | st.integers(BOUND, 200),
    attempts=st.lists(st.booleans(), max_size=8),
    usage=st.none() | st.builds(Usage, st.integers(0, 10), st.integers(0, 20)),
)
def test_ceilings_hold_over_all_attempts_of_a_call(
    max_hops: int | None, max_tokens: int | None, attempts: list[bool], usage: Usage | None
) -> None:
    """Nothing stays reserved, and what was spent is the price of each attempt that was made."""
    budget = Budget(Limits(max_hops, max_tokens))
    run = make_run(budget=budget)
    entry = run.open_call("alpha")
    bound = 0 if max_tokens is None else BOUND
    price, hops, is_settled = 0, 1, False

    for is_known_zero in attempts:
        price += 0 if is_known_zero else bound
        fits = max_tokens is None or price + bound <= max_tokens
        wanted = fits and (max_hops is None or hops < max_hops)
        assert run.reopen_call(entry, is_known_zero=is_known_zero) is wanted
        hops += wanted
        is_settled = not wanted
        if is_settled:
            break
    made = [Attempt("alpha", "e", "a:1", 0.0, TransportFact.REQUEST_WRITTEN)] * hops
    run.close_call(entry, Outcome(Terminal.FAILED, usage=usage, attempts=tuple(made)))

    if not is_settled:
        price += bound if usage is None else usage.prompt_tokens + usage.completion_tokens
    assert (budget.spent_tokens, budget.reserved_tokens, budget.hops) == (price, 0, hops)
    assert max_tokens is None or budget.spent_tokens <= max_tokens


def keep_accounts(
    monkeypatch: pytest.MonkeyPatch, limits: Limits = UNLIMITED
) -> tuple[CountingBudget, Ledger]:
    """Return what the next request is accounted in."""
    budget, ledger = CountingBudget(limits), Ledger()
    monkeypatch.setattr("vsr.engine.session.Budget", lambda: budget)
    monkeypatch.setattr("vsr.engine.session.Ledger", lambda: ledger)
    return budget, ledger


async def test_chain_is_settled_once_and_logged_once(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line that counts every attempt; one reservation each, and all of them settled."""
    budget, ledger = keep_accounts(monkeypatch)
    retries = "retry_count: 1, retry_on: 5xx"
    models = await start(nursery, alpha=retries, gamma=retries)
    models.play(BUSY, BUSY, BUSY)

    await models.ask()

    [line] = await models.router.log()
    assert (line["attempts"], line["outcome"], line["model"]) == (5, "failed", "alpha")
    assert [entry.model for entry in ledger.entries] == list(NAMES)
    assert {entry.outcome.terminal for entry in ledger.entries if entry.outcome} == {
        Terminal.FAILED
    }
    assert (budget.hops, len(budget.settlements)) == (5, 5)
    assert len({id(each) for each in budget.settlements}) == 5
    assert await models.held() == [0] * 5


async def test_serving_model_is_accounted_what_it_used(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that failed nothing that anybody knows."""
    _, ledger = keep_accounts(monkeypatch)
    models = await start(nursery)
    await models.answer(BUSY)

    line = await models.last_log()

    assert (line["model"], line["prompt_tokens"], line["completion_tokens"]) == ("beta", 7, 3)
    ends = [(each.model, each.outcome and each.outcome.usage) for each in ledger.entries]
    assert ends == [("alpha", None), ("beta", Usage(7, 3))]


async def test_refusal_that_is_given_back_is_accounted_to_its_own_model(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not to the model that was asked last."""
    _, ledger = keep_accounts(monkeypatch)
    models = await start(nursery, "enabled: true, triggers: [content_refusal]")

    assert await models.answer(REFUSED, BUSY, BUSY) == (200, list(NAMES))

    await models.router.log()
    ends = [(each.model, each.outcome and each.outcome.usage) for each in ledger.entries]
    assert ends == [("alpha", Usage(7, 3)), ("beta", None), ("gamma", None)]


@pytest.mark.parametrize("stream", [False, True])
async def test_every_call_is_closed_when_the_client_leaves(
    *,
    stream: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a candidate is waited for, or behind the beginning of its answer."""
    budget, ledger = keep_accounts(monkeypatch, Limits(max_tokens=1000))
    models = await start(nursery)
    models.play(BUSY, [EVENT_STREAM, chunk(CHAT_PIECES[0]), Act.HANG] if stream else HUNG)
    body = chat_body(model="auto", stream=stream)

    await models.router.ask(body, patience_s=1)
    await models.router.log()

    ends = [each.outcome.terminal for each in ledger.entries if each.outcome]
    assert ends == [Terminal.FAILED, Terminal.CANCELLED]
    assert (budget.hops, budget.reserved_tokens) == (2, 0)
    assert len({id(each) for each in budget.settlements}) == len(budget.settlements) == 2


@pytest.mark.parametrize("resort", ["", f", {RESORT}"])
async def test_candidate_that_the_budget_refuses_is_not_called(
    resort: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first failure is the answer then, or the last resort."""
    _, ledger = keep_accounts(monkeypatch, Limits(max_hops=2))
    models = await start(nursery, f"enabled: true{resort}")

    got = await models.answer(BUSY, BUSY)

    assert got == (200 if resort else 503, ["alpha", "beta"])
    await models.router.log()
    assert [each.model for each in ledger.entries] == ["alpha", "beta"]
    ends = [each.outcome and each.outcome.terminal for each in ledger.entries]
    assert ends == [Terminal.FAILED, Terminal.FAILED]


@pytest.mark.parametrize("name", ["alpha", "beta"])
async def test_retry_that_the_budget_refuses_is_not_made(
    name: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call ends with what it has: of the first model, or of a candidate."""
    most = 2 if name == "alpha" else 3
    budget, _ = keep_accounts(monkeypatch, Limits(max_hops=most))
    models = await start(nursery, **{name: "retry_count: 5, retry_on: 5xx"})

    assert await models.answer(BUSY, BUSY) == (503, ["alpha", *[name] * (most - 1)])
    assert budget.hops == most
