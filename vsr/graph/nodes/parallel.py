"""Node type `parallel`: run branches side by side, optionally until `first_k` succeed."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Annotated, ClassVar, Literal

import attrs
import msgspec
import trio

from vsr.deadline import NO_DEADLINE
from vsr.errors import DeadlineExceeded, GraphFailed, VsrError
from vsr.graph.bind import SCOPE, SECONDS, kind_of
from vsr.graph.block import Block, Node, cause_of, is_flow
from vsr.graph.context import NodeContext
from vsr.graph.ending import Ending
from vsr.graph.env import Bound, Constant, Env, Known, Static, known_of, name_faults
from vsr.graph.kinds import Kind, item_of, united
from vsr.graph.late import SUBJECT, Predicate
from vsr.graph.ledger import Verdict
from vsr.graph.suspend.record import Keeps
from vsr.graph.value import BranchOutcome, Failure
from vsr.graph.worst import Estimator, Paths
from vsr.graph.worst_call import is_unbounded
from vsr.graph.worst_parallel import side_by_side
from vsr.registry import Extension
from vsr.routing.outcome import Cause

_LATE = "context deadline exceeded"


def _inside(env: Env, bound: Mapping[str, Bound]) -> Env:
    """Return what a branch sees: its item and its number."""
    names: dict[str, Static] = {}
    zone = env.zone + 1
    over, times = bound.get("over"), bound.get("times")
    if over is not None and not (isinstance(over, Constant) and over.value is None):
        kind, known = item_of(kind_of(over)) or object, known_of(over).item()
        names[_word(bound, "as_", "item")] = Static(kind, zone=zone, known=known)
    if times is not None or over is not None:
        names[_word(bound, "index", "index")] = Static(int, zone=zone, known=Known(is_given=True))
    inner = env.with_names(names)
    return attrs.evolve(inner, zone=zone, in_loop=False, may_respond=False, may_suspend=False)


def _word(bound: Mapping[str, Bound], field: str, default: str) -> str:
    found = bound.get(field)
    is_text = isinstance(found, Constant) and isinstance(found.value, str)
    return str(found.value) if is_text and isinstance(found, Constant) else default


def _judged(env: Env, bound: Mapping[str, Bound]) -> Env:
    """Return what the success predicate sees: the branch's value."""
    return env.with_names({SUBJECT: Static(_branch_kind(bound))})


def _branch_kind(bound: Mapping[str, Bound]) -> Kind:
    blocks: list[Block] = []
    for name in ("do", "branches"):
        found = bound.get(name)
        if isinstance(found, Constant) and isinstance(found.value, Block):
            blocks.append(found.value)
        elif isinstance(found, Constant) and isinstance(found.value, tuple):
            blocks += found.value
    return united([block.kind for block in blocks])


@attrs.frozen
class ParallelNode:
    """Runs branches side by side; its value is their outcomes in declared order."""

    keeps: ClassVar[Keeps] = "failure"
    over: Sequence[object] | None = None
    """One branch per item."""
    times: int | None = None
    as_: str = "item"
    index: str = "index"
    """Name of the branch's number, from 0."""
    branches: tuple[Block, ...] = attrs.field(default=(), metadata={SCOPE: _inside})
    do: Block | None = attrs.field(default=None, metadata={SCOPE: _inside})
    """What each branch of `over` or `times` does."""
    max_items: int | None = None
    """The most branches; needed where a result says how many there are. More of them fail."""
    max_concurrency: int | None = None
    """None or 0: all at once."""
    first_k: int | None = None
    """How many successes are enough; the other branches are then cancelled. None or 0: all."""
    success: Predicate | None = attrs.field(default=None, metadata={SCOPE: _judged})
    """What a branch's value must be to count; None: there is one."""
    stagger: Annotated[float | None, SECONDS] = None
    """Time between two starts; the next branch begins at once when all before it have failed."""
    timeout: Annotated[float | None, SECONDS] = None
    on_timeout: Literal["partial", "fail"] = "fail"
    """`partial`: go on with what has come."""
    on_error: Literal["fail", "skip", "fail_after_all"] = "fail"
    """`fail`: the first failure ends all branches; `fail_after_all`: the failure of the first
    branch that has one, when all have ended; `skip`: a failure is an outcome like others."""

    def __attrs_post_init__(self) -> None:
        """Check that it says what the branches are, once."""
        given = (self.over is not None, self.times is not None, bool(self.branches))
        if sum(given) != 1:
            raise ValueError("give one of over, times and branches")
        if (self.do is None) is not bool(self.branches):
            raise ValueError("give `do` with over or times, and none with branches")

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with what says how many branches there are, and with their names."""
        del env
        yield from name_faults((_word(bound, "as_", "item"), _word(bound, "index", "index")))
        if is_unbounded(bound, ("over", "times")):
            yield "a result says how many branches there are: give the most in `max_items`"

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return the worst case of all branches, however many successes are enough."""
        return Paths(side_by_side(bound, estimator))

    @staticmethod
    def result_kind(bound: Mapping[str, Bound]) -> Kind:
        """Return the type of the step's value."""
        branch = _branch_kind(bound)
        return tuple[BranchOutcome[branch], ...]  # type: ignore[valid-type]  # known only now

    async def run(self, ctx: NodeContext) -> tuple[BranchOutcome[object], ...]:
        """Return the outcomes in declared order.

        Raises:
            GraphFailed: there are more branches than `max_items`.
            VsrError: of a branch, where the step says that this is its own failure.
            DeadlineExceeded: the group's timeout passed, and it says `fail`.
        """
        kept = self._kept(ctx)
        if kept is not None:
            return await self._run_again(ctx, kept)
        timeout_s = ctx.run.ledger.untied_s(self.timeout) if self.timeout else None
        deadline = NO_DEADLINE.after(trio.current_time(), timeout_s)
        ending = Ending(deadline_at=deadline.at, outer=ctx.ending)
        group = _Group(self, ctx, ending, self._arms())
        with trio.CancelScope(deadline=deadline.at) as scope:
            ending.scope = scope
            async with trio.open_nursery() as nursery:
                await group.start_all(nursery)
        if group.failure is not None:
            raise group.failure
        is_late = scope.cancelled_caught and ending.cause is None
        if is_late and self.on_timeout == "fail":
            raise DeadlineExceeded("group")
        if not is_late and self.on_error == "fail_after_all" and group.errors:
            raise group.errors[min(group.errors)]
        if ctx.run.waiting is not None:
            ranks = tuple(outcome.rank for outcome in group.outcomes)
            ctx.run.waiting.record.note(ctx.path, _Ends(ranks, is_late))
        return _told(group.outcomes, is_late=is_late)

    def _kept(self, ctx: NodeContext) -> "_Ends | None":
        waiting = ctx.run.waiting
        if waiting is None or not waiting.record.has(ctx.path):
            return None
        kept = waiting.record.value(ctx.path, _Ends)
        return kept if isinstance(kept, _Ends) else None

    async def _run_again(
        self, ctx: NodeContext, kept: "_Ends"
    ) -> tuple[BranchOutcome[object], ...]:
        """Return the outcomes of a run before this one: branches that had ended end again.

        One after the other, as they had; nothing that they asked is asked again.
        """
        arms = self._arms()
        outcomes = [BranchOutcome[object](index) for index in range(len(arms))]
        ended = [index for index, rank in enumerate(kept.ranks) if rank is not None]
        for index in sorted(ended, key=lambda index: kept.ranks[index] or 0):
            block, names = arms[index]
            value, failure = None, None
            try:
                value = await block.run(ctx.inside(dict(names), number=index))
            except VsrError as error:
                failure = Failure(str(error), error.code)
            outcomes[index] = BranchOutcome(index, value, failure, kept.ranks[index])
        return _told(outcomes, is_late=kept.is_late)

    def _arms(self) -> list[tuple[Block, dict[str, object]]]:
        if self.do is None:
            return [(block, {}) for block in self.branches]
        count = self.times or 0 if self.over is None else len(self.over)
        if self.max_items is not None and count > self.max_items:
            raise GraphFailed(f"there are {count} branches, more than {self.max_items}")
        if self.over is not None:
            return [
                (self.do, {self.as_: item, self.index: at}) for at, item in enumerate(self.over)
            ]
        return [(self.do, {self.index: at}) for at in range(count)]


class _Ends(msgspec.Struct, frozen=True):
    """How the branches ended: what a second run of them would not tell."""

    ranks: tuple[int | None, ...]
    is_late: bool
    """Whether the group's time passed."""


def _told(
    outcomes: Sequence[BranchOutcome[object]], *, is_late: bool
) -> tuple[BranchOutcome[object], ...]:
    """Return the outcomes; where time passed, that is the failure of those which had not ended."""
    if not is_late:
        return tuple(outcomes)
    late = Failure(_LATE, DeadlineExceeded.code, Cause.DEADLINE)
    return tuple(
        BranchOutcome(outcome.index, None, late) if outcome.is_lost else outcome
        for outcome in outcomes
    )


@attrs.define(eq=False)
class _Group:
    """The branches of one run of the node."""

    node: ParallelNode
    ctx: NodeContext
    ending: Ending
    arms: Sequence[tuple[Block, dict[str, object]]]
    outcomes: list[BranchOutcome[object]] = attrs.field(init=False)
    errors: dict[int, VsrError] = attrs.field(factory=dict, init=False)
    failure: VsrError | None = attrs.field(default=None, init=False)
    """What ended the group before its time."""
    running: int = attrs.field(default=0, init=False)
    ended: int = attrs.field(default=0, init=False)
    successes: int = attrs.field(default=0, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    @outcomes.default
    def _make_outcomes(self) -> list[BranchOutcome[object]]:
        return [BranchOutcome(index) for index in range(len(self.arms))]

    async def start_all(self, nursery: trio.Nursery) -> None:
        """Start the branches in declared order, each when its turn has come."""
        most = self.node.max_concurrency or len(self.arms)
        for index in range(len(self.arms)):
            while self.running >= most:
                await self._change()
            if index and self.node.stagger:
                await self._pause(self.node.stagger)
            self.running += 1
            # Trio shuffles ready tasks: starting one by one keeps ordinals and reservations in
            # declared order.
            await nursery.start(self._run_branch, index)
        # If all have ended, or are being ended, what comes behind this step may be what its branch
        # does first.
        if self.running and self.ending.cause is None:
            self.ctx.note_start()

    async def _pause(self, stagger_s: float) -> None:
        """Wait for the next start; for nothing, when no branch is left that may succeed."""
        with trio.move_on_after(self.ctx.run.ledger.untied_s(stagger_s)):
            while self.running or self.successes:
                await self._change()

    async def _change(self) -> None:
        self.ctx.note_start()
        await self._changed.wait()

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _run_branch(  # noqa: ASYNC128  # `started` does, in the first step that waits
        self, index: int, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        started = _Once(task_status)
        block, names = self.arms[index]
        ctx = self.ctx.inside(dict(names), number=index, ending=self.ending, started=started)
        try:
            value = await block.run(ctx)
            if is_flow(value):
                raise GraphFailed("a branch cannot end the graph")  # refused when compiled
            test = self.node.success
            is_success = test is None or test.holds(value, self.ctx.scope, self.ctx.inputs)
            if test is not None:
                self.ctx.run.ledger.judge(value, Verdict(is_success))
            self._end(index, value, is_success=is_success)
        except VsrError as error:
            self._fail(index, error)
        finally:
            self.running -= 1
            self._note()
            started()

    def _end(self, index: int, value: object, *, is_success: bool) -> None:
        self.outcomes[index] = BranchOutcome(index, value, None, self.ended)
        self.ended += 1
        self.successes += is_success
        if self._is_enough():
            self._stop()

    def _fail(self, index: int, error: VsrError) -> None:
        failure = Failure(cause_of(error), error.code)
        self.outcomes[index] = BranchOutcome(index, None, failure, self.ended)
        self.ended += 1
        self.errors[index] = error
        if self.node.on_error == "fail" and self.failure is None and not self._is_enough():
            self.failure = error
            self._stop()

    def _stop(self) -> None:
        """End the branches that are left, unless all of the group is being ended already."""
        earlier = self.ending.reason(self.ctx.run.tasks.cause, trio.current_time())
        self.ending.end(earlier or Cause.LOST)

    def _is_enough(self) -> bool:
        return bool(self.node.first_k) and self.successes >= (self.node.first_k or inf)


@attrs.define(eq=False)
class _Once:
    """Lets the next branch start, once."""

    _status: trio.TaskStatus[None]
    _is_done: bool = attrs.field(default=False, init=False)

    def __call__(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._status.started()


PARALLEL = Extension[Node](name="parallel", config=ParallelNode)
