"""A compiled list of steps, and how it runs."""

from collections.abc import Mapping
from typing import Literal, Protocol, cast

import attrs
import msgspec

from vsr.codec.chat_reply import ReplyUsage
from vsr.errors import (
    DeadlineExceeded,
    GraphFailed,
    UpstreamAnswerTooLarge,
    UpstreamFailure,
    VsrError,
)
from vsr.graph.account import Account
from vsr.graph.bind import Fields
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound, Constant, Static
from vsr.graph.kinds import Kind
from vsr.graph.run import TailCall
from vsr.graph.suspend.record import Keeps
from vsr.graph.suspend.tool_ids import PendingToolCalls
from vsr.graph.suspend.waiting import ResumeFailed, Waiting
from vsr.graph.text import TextTemplate
from vsr.graph.value import Failure

OnError = Literal["fail", "skip", "value"]
FAIL = Constant("fail", str)


class Answer(msgspec.Struct, frozen=True):
    """What a graph answers its client; see `graph.nodes.respond`."""

    status: int
    body: bytes
    """A chat completion, or an event stream if `is_stream`."""
    is_stream: bool = False
    value: object = None
    """What was answered with, for a graph that runs inside another one."""
    model: str = ""
    models_used: tuple[str, ...] = ()
    iterations: int = 0
    usage: ReplyUsage = ReplyUsage()
    is_exhausted: bool = False
    """Whether the budget ended the graph before its last step."""


class Broken(msgspec.Struct, frozen=True):
    """What a list of steps comes to when a `break` left it."""


class Suspension(msgspec.Struct, frozen=True):
    """What a list of steps comes to when a call waits for the client's tools."""

    path: str
    """Of the call."""
    messages: msgspec.Raw
    """JSON array that it was made with."""
    pending: PendingToolCalls
    answer: Answer
    """For the client."""
    account: Account
    """Of the run before the call."""


BROKEN = Broken()
OF_GROUPS = frozenset({"graph", "group"})
"""Stages of deadlines that are not those of one call."""
_FLOW = (Answer, TailCall, Broken, Suspension)
"""Values that end a list of steps, and those around it."""


def is_flow(value: object) -> bool:
    """Return whether `value` ends the list of steps that it came from."""
    return isinstance(value, _FLOW)


class Node(Protocol):
    """One step's behaviour: configuration but no state, since two requests may run it at once."""

    async def run(self, ctx: NodeContext, /) -> object:
        """Return the step's value; the annotation of what is returned is the step's type.

        What a resumed run takes from the record of the one before says `keeps`, a class variable:
        the `value`, as by default, only a `failure`, or `nothing`; then the step runs again.

        Raises:
            VsrError: the step failed.
        """
        ...


@attrs.frozen
class CompiledStep:
    """One step that is ready to run."""

    id: str
    """Authored, or its place in the list."""
    type: str
    is_named: bool
    """Whether later steps see its value."""
    node: Fields
    on_error: Bound = FAIL
    """A word of `OnError`."""
    error: TextTemplate | None = None
    kind: Kind = attrs.field(default=object, eq=False)
    """Type of what its node brings."""

    async def run(self, ctx: NodeContext) -> object:
        """Return the step's value, or what stands for it where it failed and the graph goes on.

        Raises:
            VsrError: it failed, and nothing stands for it.
        """
        run = ctx.run
        here = ctx.at(self.id)
        watch = run.watch
        if watch is not None:
            watch.began(here.path, self.type)
        try:
            if run.waiting is None:
                value = await cast("Node", self.node.build(ctx.scope)).run(here)
            else:
                value = await self._run_or_recall(here, run.waiting)
        except ResumeFailed:
            raise
        except VsrError as error:
            value = self._instead(error, ctx)
        if watch is not None:
            watch.ended(here.path, value)
        return value

    async def _run_or_recall(self, here: NodeContext, waiting: Waiting) -> object:
        """Return what a run before this one has kept; else run the node and keep what counts."""
        record, path = waiting.record, here.path
        keeps: Keeps = getattr(self.node.cls, "keeps", "value")
        if path in record.failures:
            raise record.failures[path].error()
        if keeps == "value" and record.has(path):
            return record.value(path, self.kind)
        try:
            value = await cast("Node", self.node.build(here.scope)).run(here)
        except VsrError as error:
            if keeps != "nothing":
                record.note_failure(path, error)
            raise
        if keeps == "value" and not is_flow(value):
            record.note(path, value)
        return value

    def _instead(self, error: VsrError, ctx: NodeContext) -> object:
        told = error
        if self.error is not None:
            cause = {"cause": cause_of(error)}
            told = GraphFailed(self.error.render(ctx.scope, cause), status=error.status)
            told.code = error.code  # type: ignore[misc]  # of this one alone
            told.headers = error.headers  # type: ignore[misc]  # of this one alone
        bound = self.on_error
        word = bound.value if isinstance(bound, Constant) else bound.evaluate(ctx.scope)
        if word == "skip":
            return None
        failure = Failure(cause_of(told), error.code)
        if word == "value":
            return failure
        if ctx.run.watch is not None:
            ctx.run.watch.ended(ctx.at(self.id).path, failure)
        if told is error:
            raise error
        raise told from error


@attrs.frozen
class Block:
    """A list of steps."""

    steps: tuple[CompiledStep, ...]
    kind: Kind = attrs.field(default=type(None), eq=False)
    """Type of its last step's value."""
    names: Mapping[str, Static] = attrs.field(factory=dict, eq=False)
    """What its end sees."""

    async def run(self, ctx: NodeContext) -> object:
        """Return the last step's value, or what ended the list before.

        Raises:
            VsrError: a step failed.
        """
        value: object = None
        names = ctx.scope.names
        for step in self.steps:
            value = await step.run(ctx)
            if is_flow(value):
                return value
            if step.is_named:
                names[step.id] = value
        return value


def cause_of(error: VsrError) -> str:
    """Return what a step's failure says of its cause: of a call, that it is one.

    Source: looper-algorithms 19, "call".
    """
    if isinstance(error, UpstreamAnswerTooLarge):
        return f"failed to read response: {error}"
    if isinstance(error, DeadlineExceeded) and error.stage in OF_GROUPS:
        return str(error)
    return f"request failed: {error}" if isinstance(error, UpstreamFailure) else str(error)


def always_ends(step: CompiledStep) -> bool:
    """Return whether nothing behind `step` in its list is ever reached."""
    own = getattr(step.node.cls, "always_ends", None)
    return own is not None and bool(own(step.node.bound))


def ends(block: Block) -> bool:
    """Return whether `block` never runs to its end."""
    return any(always_ends(step) for step in block.steps)
