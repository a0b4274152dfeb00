"""What a node sees of the request that runs it."""

from collections.abc import Callable

import attrs
import msgspec
import trio

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply, read_reply
from vsr.deadline import Deadline
from vsr.errors import CallFailed, DeadlineExceeded, VsrError
from vsr.graph.account import BestReply, Counted
from vsr.graph.ending import Ending
from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import GraphRun, TailCall
from vsr.graph.scope import Scope
from vsr.graph.value import Inputs
from vsr.resources.reliability import CallOverride
from vsr.routing.outcome import Attempt, Cause, Outcome, Terminal, Usage
from vsr.routing.plan import Hop
from vsr.routing.ports import CallAnswer, Journal

_OK = 200
_MAX_COUNTED_BYTES = 8_192


class CallOptions(msgspec.Struct, frozen=True):
    """How one call is made, beside what it asks."""

    timeout_s: float | None = None
    reliability: CallOverride | None = None
    is_streaming: bool = False
    """Whether the backend is asked for a stream, which is collected."""
    counted: tuple[Counted, ...] = ("usage", "models_used", "iterations")
    is_answer: bool = True
    """Whether its reply answers what the client asked."""


class NodeContext(msgspec.Struct, gc=False):
    """One step's place in a run; nodes reach the world through it alone."""

    run: GraphRun
    scope: Scope
    ending: Ending
    """Of the innermost group of steps that can be ended before its time."""
    path: str = ""
    """Of the step: ids, with the number of each round and branch."""
    started: Callable[[], None] | None = None
    """Tells the parallel step around that this branch has begun, and the next one may."""

    @property
    def inputs(self) -> Inputs:
        """Return what pure extensions may know of the request.

        Raises:
            RuntimeError: the run was made for tail calls only, see `GraphRun`.
        """
        inputs = self.run.inputs
        if inputs is None:
            raise RuntimeError("this run has tail calls only")
        return inputs

    def at(self, step: str) -> "NodeContext":
        """Return the context of a step inside this one's."""
        path = f"{self.path}/{step}" if self.path else step
        return NodeContext(self.run, self.scope, self.ending, path, self.started)

    def inside(
        self,
        names: dict[str, object] | None = None,
        *,
        number: int | None = None,
        ending: Ending | None = None,
        started: Callable[[], None] | None = None,
    ) -> "NodeContext":
        """Return the context of a list of steps inside this step.

        Args:
            names: that the list sees beside what this step sees.
            number: of the round or branch, from 0.
            ending: of the list, if it can be ended by itself.
            started: see the field.
        """
        path = self.path if number is None else f"{self.path}[{number}]"
        return NodeContext(
            self.run,
            self.scope.inner(names),
            ending or self.ending,
            path,
            started or self.started,
        )

    def note_start(self) -> None:
        """Let the next branch begin: what this one does first is under way, in its turn."""
        if self.started is not None:
            self.started()

    def deadline_after(self, timeout_s: float | None) -> Deadline:
        """Return the run's deadline, or the one so many seconds from now if it is earlier."""
        if not timeout_s:
            return self.run.deadline
        own = Deadline.after(trio.current_time(), self.run.ledger.untied_s(timeout_s))
        return own.narrowed(self.run.deadline)

    async def may_start(self) -> None:
        """Let nothing begin any more in a run, or a group of its steps, that has ended.

        Raises:
            DeadlineExceeded: the deadline has passed in this very moment.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.run.deadline.has_passed(trio.current_time()):
            raise DeadlineExceeded

    def end_of(self, error: BaseException) -> tuple[Terminal, Cause | None]:
        """Return how a call of this step has ended, which `error` has just ended."""
        if _is_cancellation(error):
            now = trio.current_time()
            cause = self.ending.reason(self.run.tasks.cause, now) or Cause.LOST
            return Terminal.TIMED_OUT if cause is Cause.DEADLINE else Terminal.CANCELLED, cause
        if isinstance(error, DeadlineExceeded):
            return Terminal.TIMED_OUT, Cause.DEADLINE
        return Terminal.FAILED, None

    def hand_out(self, model: str, body: ChatBody, reliability: CallOverride | None) -> TailCall:
        """Reserve for a call and leave it to the adapter to make it, stream and all.

        Raises:
            BudgetExhausted: the budget refuses; no call may be made.
        """
        run = self.run
        if run.hops is None:
            return TailCall(model, run.open_call(model), reliability)
        hop = run.hops.open(
            model, body, reliability=reliability, is_bounded=run.budget.needs_bounds
        )
        entry = run.open_hop(model, hop, self.path)
        entry.started_at, entry.trace = trio.current_time(), run.trace
        run.ledger.tell(entry)
        return TailCall(model, entry, reliability, body, hop)

    async def call(self, model: str, body: ChatBody, options: CallOptions) -> Reply:
        """Call `model` and wait for the whole answer.

        Raises:
            BudgetExhausted, DeadlineExceeded: no call was made.
            CallFailed, UpstreamFailure: it got no usable answer; its ledger entry says how.
            RuntimeError: the run was made for tail calls only, see `GraphRun`.
        """
        run = self.run
        if run.hops is None or run.caller is None:
            raise RuntimeError("this run has tail calls only")
        await self.may_start()
        body = body.with_stream(is_streaming=options.is_streaming)
        hop = run.hops.open(
            model, body, reliability=options.reliability, is_bounded=run.budget.needs_bounds
        )
        entry = run.open_hop(model, hop, self.path)
        run.account.begin(model, options.counted)
        entry.started_at = trio.current_time()
        run.ledger.tell(entry)
        self.note_start()
        hop.call.model, hop.call.spend = model, HopSpend(run, entry, hop)
        deadline = self.deadline_after(options.timeout_s)
        entry.trace = None if run.trace is None else run.trace.branch()
        journal, begun = Journal(trace=entry.trace), _Begun(run, entry, self)
        entry.tries = journal.attempts
        try:
            answer = await run.caller.call(
                hop.call, deadline, limit_bytes=run.max_answer_bytes, journal=journal
            )
            chat = _usable(hop, answer)
            reply = read_reply(model, chat, is_stream=options.is_streaming)
        except BaseException as error:
            begun.failed(error, tuple(journal.attempts))
            raise
        begun.succeeded(reply, answer.attempts)
        run.account.add(model, reply.usage, options.counted)
        if run.keeps_best and options.is_answer and (reply.content.strip() or reply.has_tool_calls):
            run.keep_best(BestReply(reply, entry.ordinal))
        return reply


@attrs.frozen(eq=False)
class _Begun:
    """A call that is in the ledger, and has to end there."""

    run: GraphRun
    entry: LedgerEntry
    ctx: NodeContext

    def succeeded(self, reply: Reply, attempts: tuple[Attempt, ...]) -> None:
        used = reply.usage
        usage = None if used is None else Usage(used.prompt_tokens, used.completion_tokens)
        self.entry.reply = reply
        self._close(Outcome(Terminal.SUCCEEDED, None, _OK, usage, attempts))

    def failed(self, error: BaseException, attempts: tuple[Attempt, ...]) -> None:
        terminal, cause = self.ctx.end_of(error)
        status = error.backend_status if isinstance(error, CallFailed) else None
        self.entry.error = code_of(error)
        self._close(Outcome(terminal, cause, status, attempts=attempts))

    def _close(self, outcome: Outcome) -> None:
        self.entry.ended_at = trio.current_time()
        self.run.close_call(self.entry, outcome)


def code_of(error: BaseException) -> str:
    """Return a failure's code; empty for a cancellation, and a fixed one for a bug."""
    if isinstance(error, VsrError):
        return error.code
    return "" if _is_cancellation(error) else VsrError.code


def _is_cancellation(error: BaseException) -> bool:
    """Return whether `error` is a cancellation, or what a nursery makes of several."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_cancellation(each) for each in error.exceptions)
    return isinstance(error, trio.Cancelled)


def _usable(hop: Hop, answer: CallAnswer) -> bytes:
    """Return a whole answer as a chat completion.

    Raises:
        CallFailed: its status says that it is none; of its body only the size is told.
        AnswerNotTranslatable: it is none in the backend's protocol.
    """
    if answer.status == _OK:
        return hop.read(answer.headers, answer.body)
    size = min(len(answer.body), _MAX_COUNTED_BYTES)
    is_cut = "true" if len(answer.body) > _MAX_COUNTED_BYTES else "false"
    raise CallFailed(
        f"request failed with status {answer.status} (error_body_bytes={size}, truncated={is_cut})",
        backend_status=answer.status,
    )


class HopSpend(msgspec.Struct, gc=False):
    """Reserves for every further attempt of one call; see `routing.budget.Spend`."""

    run: GraphRun
    entry: LedgerEntry
    hop: Hop

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Reserve for one attempt more."""
        return self.run.reopen_hop(self.entry, self.hop, is_known_zero=is_known_zero)
