"""What a node sees of the request that runs it."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import trio

from vsr.deadline import Deadline
from vsr.errors import BudgetExhausted, DeadlineExceeded, VsrError
from vsr.graph.budget import Budget
from vsr.graph.ledger import Ledger, LedgerEntry
from vsr.headers import Headers
from vsr.resources.reliability import CallOverride
from vsr.routing.outcome import NOTHING_USED, Cause, Outcome, Terminal
from vsr.routing.plan import Call
from vsr.routing.ports import Caller, Tasks


class Prompt(Protocol):
    """What a budget must know of a request."""

    @property
    def token_count(self) -> int:
        """Return an upper estimate of the prompt's tokens."""
        ...


class Reply(msgspec.Struct):
    """The value of a call step: what the backend answered."""

    status: int
    headers: Headers
    body: bytes


class TailCall(msgspec.Struct, gc=False):
    """The value of a graph that ends in a call which its adapter is to make."""

    model: str
    entry: LedgerEntry
    reliability: CallOverride | None = None
    """What the step changes of the call's policy."""


class NodeContext(msgspec.Struct, gc=False):
    """One request's run of one graph; nodes reach the world through it alone."""

    tasks: Tasks
    deadline: Deadline
    budget: Budget
    ledger: Ledger
    params: Mapping[str, str]
    """Values of the graph's parameters."""
    prompt: Prompt
    """The request, for its token estimate; asked only where a limit needs it."""
    output_bound_tokens: int = 0
    prepare: Callable[[str, CallOverride | None], Call] | None = None
    """Makes the wire request of a hop to a model, with what the step changes of the call's policy;
    None where the graph has tail calls only."""
    caller: Caller | None = None
    values: dict[str, object] = {}
    """Values of finished steps by step id."""

    def open_call(self, model: str) -> LedgerEntry:
        """Reserve for a call to `model` and enter it in the ledger.

        Raises:
            BudgetExhausted: the budget refuses; no call may be made.
        """
        prompt_bound = self.prompt.token_count if self.budget.needs_bounds else 0
        reservation = self.budget.admit(model, prompt_bound, self.output_bound_tokens)
        if reservation is None:
            raise BudgetExhausted
        return self.ledger.open(model, reservation)

    def reopen_call(self, entry: LedgerEntry, *, is_known_zero: bool) -> bool:
        """Reserve for one attempt more of the call in `entry`; False refuses it.

        What the attempt before may have used stays spent, unless it surely used nothing.
        """
        budget = self.budget
        budget.settle(entry.reservation, NOTHING_USED if is_known_zero else None)
        prompt_bound = self.prompt.token_count if budget.needs_bounds else 0
        reservation = budget.admit(entry.model, prompt_bound, self.output_bound_tokens)
        if reservation is None:
            return False
        entry.reservation = reservation
        return True

    def close_call(self, entry: LedgerEntry, outcome: Outcome) -> None:
        """Close `entry` and settle its reservation; only the first end of a call counts."""
        if entry.close(outcome):
            self.budget.settle(entry.reservation, outcome.usage)

    async def call(self, model: str, reliability: CallOverride | None = None) -> Reply:
        """Call `model` and wait for the whole answer.

        Args:
            model: alias.
            reliability: what the step changes of the call's policy.

        Raises:
            BudgetExhausted: no call was made.
            UpstreamFailure: the call failed; its ledger entry says how.
        """
        if self.prepare is None or self.caller is None:
            raise RuntimeError("this graph was compiled for tail calls only")
        entry = self.open_call(model)
        try:
            answer = await self.caller.call(self.prepare(model, reliability), self.deadline)
        except VsrError as error:
            timed_out = isinstance(error, DeadlineExceeded)
            terminal = Terminal.TIMED_OUT if timed_out else Terminal.FAILED
            self.close_call(entry, Outcome(terminal))
            raise
        except trio.Cancelled:
            self.close_call(entry, Outcome(Terminal.CANCELLED, self.tasks.cause or Cause.LOST))
            raise
        except BaseException:
            self.close_call(entry, Outcome(Terminal.FAILED))
            raise
        reply = Reply(*answer)
        self.close_call(entry, Outcome(Terminal.SUCCEEDED, status=reply.status))
        return reply
