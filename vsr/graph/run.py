"""One request's run of its graph: its limits, its ledger, and its ways to the world."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import msgspec
import msgspec.structs

from vsr.deadline import Deadline
from vsr.errors import BudgetExhausted
from vsr.graph.budget import Budget
from vsr.graph.ledger import Ledger, LedgerEntry
from vsr.resources.reliability import CallOverride
from vsr.routing.outcome import NOTHING_USED, Outcome
from vsr.routing.plan import Hop
from vsr.routing.ports import Caller, Fetch, Hops, Runtime, Tasks
from vsr.routing.trace import Trace

if TYPE_CHECKING:
    from vsr.codec.chat_body import ChatBody
    from vsr.graph.account import Account, BestReply
    from vsr.graph.suspend.waiting import Waiting
    from vsr.graph.value import Inputs

MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Of one call. Source: the reference's default."""


class Prompt(Protocol):
    """What a budget must know of a request."""

    @property
    def token_count(self) -> int:
        """Return an upper estimate of the prompt's tokens."""
        ...


class OpaquePrompt(msgspec.Struct):
    """The prompt of a request that routing does not read; a byte is at most one token."""

    token_count: int


class TailCall(msgspec.Struct, gc=False):
    """The value of a graph that ends in a call which its adapter is to make."""

    model: str
    entry: LedgerEntry
    reliability: CallOverride | None = None
    """What the step changes of the call's policy."""
    body: "ChatBody | None" = None
    """What is asked, where a graph has written it; None: the client's request as it is."""
    hop: Hop | None = None


class Watch(Protocol):
    """Told of every step; synchronous."""

    def began(self, path: str, kind: str) -> None:
        """Note that the step at `path`, of node type `kind`, begins."""
        ...

    def ended(self, path: str, value: object) -> None:
        """Note its value, or its `Failure`."""
        ...


class GraphRun(msgspec.Struct, gc=False):
    """What all steps of one run share."""

    tasks: Tasks
    deadline: Deadline
    budget: Budget
    ledger: Ledger
    prompt: Prompt
    """The client's request, for its token estimate; asked only where a limit needs it."""
    output_bound_tokens: int = 0
    hops: Hops | None = None
    """None where the graph has tail calls only, as `caller`."""
    caller: Caller | None = None
    runtime: Runtime | None = None
    fetch: Fetch | None = None
    """Asks a service that is no model; None where there is no way to one."""
    inputs: "Inputs | None" = None
    counts: "Account | None" = None
    """What its calls have used; None where nobody asks, as in a plain request."""
    max_answer_bytes: int = MAX_ANSWER_BYTES
    on_refusal: Callable[[], None] | None = None
    """Runs when the budget refuses a call: ends the whole graph where its limits say so."""
    was_refused: bool = False
    """Whether the budget has refused it a call."""
    keeps_best: bool = False
    """Whether it keeps the best reply, see `best_answer`."""
    best: "BestReply | None" = None
    """Of its calls, and of those of the graphs inside."""
    outer: "GraphRun | None" = None
    """Of the graph around, where there is one."""
    unix: Callable[[], float] = float
    """Now, in seconds since 1970, for what is shown to the client."""
    watch: Watch | None = None
    waiting: "Waiting | None" = None
    """None where the run cannot be suspended."""
    trace: Trace | None = None
    """The request's; None where nothing is traced."""

    @property
    def account(self) -> "Account":
        """Return what its calls have used so far."""
        if self.counts is None:
            from vsr.graph.account import Account  # noqa: PLC0415  # plain requests count nothing

            self.counts = Account()
        return self.counts

    def narrowed(self, deadline: Deadline, budget: Budget) -> "GraphRun":
        """Return the run of a graph inside this one: all is shared but its limits."""
        return msgspec.structs.replace(
            self,
            deadline=deadline,
            budget=budget,
            on_refusal=None,
            was_refused=False,
            best=None,
            outer=self,
            counts=self.account,
        )

    def keep_best(self, reply: "BestReply") -> None:
        """Keep a reply if its call began behind that of the one that is kept.

        Each graph around keeps its own: what is the best of one may be none of another's.
        """
        run: GraphRun | None = self
        while run is not None:
            if run.best is None or reply.ordinal > run.best.ordinal:
                run.best = reply
            run = run.outer

    def open_call(self, model: str) -> LedgerEntry:
        """Reserve for a call to `model` with the client's request, and enter it in the ledger.

        Raises:
            BudgetExhausted: the budget refuses; no call may be made.
        """
        prompt_bound = self.prompt.token_count if self.budget.needs_bounds else 0
        reservation = self.budget.admit(model, prompt_bound, self.output_bound_tokens)
        if reservation is None:
            raise BudgetExhausted
        return self.ledger.open(model, reservation)

    def open_hop(self, model: str, hop: Hop, path: str) -> LedgerEntry:
        """Reserve for a call of the step at `path`, and enter it in the ledger.

        Raises:
            BudgetExhausted: the budget refuses; no call may be made.
        """
        reservation = self.budget.admit(
            model, hop.prompt_bound_tokens, hop.output_bound_tokens, hop.price
        )
        if reservation is None:
            self._end_refused()
            raise BudgetExhausted
        entry = self.ledger.open(model, reservation)
        entry.step, entry.price = path, hop.price
        return entry

    def _end_refused(self) -> None:
        """End the graphs whose budgets have just refused a call, where their limits say so."""
        run: GraphRun | None = self
        while run is not None:
            if run.budget.is_refusing:
                run.was_refused = True
                if run.on_refusal is not None:
                    run.on_refusal()
            run = run.outer

    def reopen_call(self, entry: LedgerEntry, *, is_known_zero: bool) -> bool:
        """Reserve for one attempt more of the call in `entry`; False refuses it.

        What the attempt before may have used stays spent, unless it surely used nothing.
        """
        budget = self.budget
        budget.settle(entry.reservation, NOTHING_USED if is_known_zero else None)
        prompt_bound = self.prompt.token_count if budget.needs_bounds else 0
        reservation = budget.admit(entry.model, prompt_bound, self.output_bound_tokens)
        if reservation is None:
            entry.is_refused = True
            return False
        entry.settled += (entry.reservation,)
        entry.reservation = reservation
        return True

    def reopen_hop(self, entry: LedgerEntry, hop: Hop, *, is_known_zero: bool) -> bool:
        """Do the same for a call that a step makes itself."""
        budget = self.budget
        budget.settle(entry.reservation, NOTHING_USED if is_known_zero else None)
        reservation = budget.admit(
            entry.model, hop.prompt_bound_tokens, hop.output_bound_tokens, hop.price
        )
        if reservation is None:
            entry.is_refused = True
            self._end_refused()
            return False
        entry.settled += (entry.reservation,)
        entry.reservation = reservation
        return True

    def close_call(self, entry: LedgerEntry, outcome: Outcome) -> None:
        """Close `entry` and settle its reservation; only the first end of a call counts."""
        if entry.close(outcome):
            self.budget.settle(entry.reservation, entry.last_usage)
            self.ledger.tell(entry)

    def close_tail(self, tail: TailCall, outcome: Outcome) -> None:
        """Close the entry of a call that the Router made, with the end of the whole request.

        That has the attempts of the calls before, too; they stand in those calls' own entries.
        """
        if tail.hop is not None:
            attempts = outcome.attempts[len(self.ledger.attempts) :]
            outcome = msgspec.structs.replace(outcome, attempts=attempts)
        self.close_call(tail.entry, outcome)


@attrs.frozen
class PlainTail:
    """The one call of a plain request's graph, which its adapter is to make."""

    reliability: CallOverride | None = None

    def hand_out(self, run: GraphRun, model: str) -> TailCall:
        """Reserve for the call to `model`, and leave it to the adapter.

        Raises:
            BudgetExhausted: the budget refuses; no call may be made.
        """
        return TailCall(model, run.open_call(model), self.reliability)


PLAIN_TAIL: Final = PlainTail()
"""What the graph of plain requests compiles to: see `graph.graph.PLAIN`."""
