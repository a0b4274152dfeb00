"""Node type `call`: ask one model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import attrs
import msgspec

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.errors import BudgetExhausted, GraphFailed, VsrError
from vsr.graph.account import Account, Counted
from vsr.graph.bind import SCOPE, SECONDS
from vsr.graph.block import Answer, Block, Node, Suspension, ends
from vsr.graph.context import CallOptions, NodeContext
from vsr.graph.edits import Edit, edited, placed
from vsr.graph.env import Bound, Constant, Deferred, Env, Static, known_of
from vsr.graph.kinds import Fit, Kind, fit
from vsr.graph.nodes.respond import RespondNode
from vsr.graph.run import TailCall
from vsr.graph.suspend.tool_ids import PendingToolCalls, new_state_id, suspend_reply
from vsr.graph.suspend.waiting import ResumedCall, ResumeFailed
from vsr.graph.value import ModelRef, Prompt
from vsr.graph.worst import Estimator, Paths
from vsr.graph.worst_call import ANY_MODEL, call_worst, named_in, named_models, names_in
from vsr.registry import Extension
from vsr.resources.reliability import CallOverride

_TAIL = Literal["tail"]
Allowed = str | ModelRef | None | tuple[str | ModelRef, ...]
_COUNTED: tuple[Counted, ...] = ("usage", "models_used", "iterations")


PENDING = "pending"


def _suspended(env: Env, bound: Mapping[str, Bound]) -> Env:
    """Return what the steps see that answer a client whose tools are called."""
    del bound
    inner = env.with_names({PENDING: Static(PendingToolCalls, zone=env.zone)})
    return attrs.evolve(inner, in_loop=False, may_suspend=False, may_hand_out=False)


def _word(bound: Mapping[str, Bound], field: str) -> object:
    found = bound.get(field)
    return found.value if isinstance(found, Constant) else None


@attrs.frozen
class CallNode:
    """Asks a model with the client's request, or with what `request` and `edits` make of it."""

    model: str | ModelRef
    request: ChatBody | Prompt | str | None = None
    """None: the client's request; a prompt or a text is put into it."""
    edits: tuple[Edit, ...] = ()
    timeout: Annotated[float | None, SECONDS] = None
    reliability: CallOverride | None = None
    """What is changed here of the timeouts and retries that the layers above leave."""
    stream: Literal["never", "collect", "follow", "tail"] = "never"
    """`collect`: the backend streams, and the step's value is the whole answer; `follow`: it does
    if the client wants a stream; `tail`: the graph ends here, and the answer goes to the client as
    it comes. That is known before the graph runs; the others may be found out while it does."""
    account: tuple[Counted, ...] = _COUNTED
    answers: bool | None = None
    """Whether its reply may answer the client where the budget ends the graph, see
    `limits.on_exhausted`; null: where it asks the client's own question."""
    on_tool_calls: Literal["return", "suspend"] = "return"
    """`suspend`: a reply that calls the client's tools ends the request; the next one, which has
    the tools' answers, goes on with this call."""
    on_suspend: Block | None = attrs.field(default=None, metadata={SCOPE: _suspended})
    """What the client is then answered, with the calls as `$pending`; None: the reply as it is."""
    max_tool_rounds: int = 32
    """How often the call may wait; a reply that wants it once more fails."""
    fallback: tuple[str | ModelRef, ...] = ()
    """Models that are asked in turn while none has given a usable answer; each is a call of its
    own in budget and ledger, with the same timeout. An exhausted budget ends it at once."""
    allow: tuple[Allowed, ...] | None = None
    """Models that `model` may be, in lists too; needed where a result names it. Others fail; `*`
    allows all."""

    @staticmethod
    def result_kind(bound: Mapping[str, Bound]) -> Kind:
        """Return the type of the step's value."""
        del bound
        return Reply

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with its model, its streaming, and its waiting for tools."""
        yield from _waiting_faults(env, bound)
        yield from _fallback_faults(bound)
        stream = bound.get("stream")
        if isinstance(stream, Deferred) and fit(_TAIL, stream.kind) is not Fit.NO:
            yield "stream may turn out as tail, and only what is known beforehand may say that"
        allowed = bound.get("allow")
        if not known_of(allowed).is_given:
            yield "allow comes from a result, and has to be known before the graph runs"
        elif not known_of(bound.get("model")).is_given and known_of(allowed).options == (None,):
            yield "a result names its model: list those that it may be in `allow`"

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return the worst case of one call."""
        worst = call_worst(named_models(bound), bound, estimator)
        for name in named_in(bound.get("fallback")):
            worst = worst.then(call_worst((name,), bound, estimator))
        return Paths(worst)

    async def run(self, ctx: NodeContext) -> Reply | TailCall | Suspension:
        """Make the call and wait for the whole answer, or hand it out.

        Raises:
            GraphFailed: it may not call this model, or nobody can keep the run for the tools.
            VsrError: the call failed.
        """
        model = self.model.called_name if isinstance(self.model, ModelRef) else self.model
        self._check_allowed(model)
        waiting = ctx.run.waiting
        resumed = None if waiting is None else waiting.resumed_at(ctx.path)
        body = self._body(ctx.inputs.request)
        if self.stream == "tail":
            await ctx.may_start()
            return ctx.hand_out(model, body, self.reliability)
        follows = self.stream == "follow" and ctx.inputs.request.is_streaming
        is_streaming = follows or self.stream == "collect"
        options = CallOptions(
            self.timeout, self.reliability, is_streaming, self.account, self._is_answer()
        )
        before = None if waiting is None else ctx.run.account.copy()
        if resumed is None:
            reply = await self._call(ctx, (model, *names_in(self.fallback)), body, options)
        else:
            body = body.with_member("messages", resumed.messages)
            reply = await _call_again(ctx, model, body, options, resumed)
        if self.on_tool_calls == "suspend" and reply.has_tool_calls:
            messages = body.members["messages"]
            return await self._suspend(ctx, reply, messages, before)
        return reply

    async def _call(
        self, ctx: NodeContext, models: Sequence[str], body: ChatBody, options: CallOptions
    ) -> Reply:
        """Return the first usable answer; the failure of the last model if there is none."""
        for model in models[:-1]:
            try:
                return await ctx.call(model, body, options)
            except BudgetExhausted:
                raise
            except VsrError:
                continue
        return await ctx.call(models[-1], body, options)

    def _is_answer(self) -> bool:
        if self.answers is not None:
            return self.answers
        return self.request is None and not any(edit.asks for edit in self.edits)

    def _check_allowed(self, model: str) -> None:
        allowed = None if self.allow is None else names_in(self.allow)
        if allowed is not None and model not in allowed and ANY_MODEL not in allowed:
            raise GraphFailed(f"request failed: the step does not allow the model {model}")

    async def _suspend(
        self, ctx: NodeContext, reply: Reply, messages: msgspec.Raw, before: Account | None
    ) -> Suspension:
        waiting = ctx.run.waiting
        if waiting is None or before is None:
            raise GraphFailed("this graph has nowhere to keep a run that waits for tools")
        resumed, rounds = waiting.resumed_at(ctx.path), len(reply.tool_rounds)
        if rounds >= self.max_tool_rounds:
            raise GraphFailed(f"a call had {rounds} rounds of tools and wants more")
        state_id = new_state_id(waiting.draw) if resumed is None else resumed.state_id
        seq = 0 if resumed is None else resumed.seq
        pending = suspend_reply(reply, state_id, seq, waiting.draw)
        # Each round has a path of its own, so that what it asks is not taken for an earlier one's.
        inside = ctx.inside({PENDING: pending}, number=rounds)
        answer: object
        if self.on_suspend is None:
            answer = await RespondNode(pending.reply).run(inside)
        else:
            answer = await self.on_suspend.run(inside)
        if not isinstance(answer, Answer):
            raise GraphFailed("on_suspend has no answer")  # refused when compiled
        return Suspension(ctx.path, messages, pending, answer, before)

    def _body(self, client: ChatBody) -> ChatBody:
        request = self.request
        if request is None:
            body = client
        else:
            body = request if isinstance(request, ChatBody) else placed(client, request)
        return edited(body, self.edits)


async def _call_again(
    ctx: NodeContext, model: str, body: ChatBody, options: CallOptions, resumed: ResumedCall
) -> Reply:
    """Return the reply to the tools' answers.

    Raises:
        ResumeFailed: there is none.
    """
    try:
        reply = await ctx.call(model, body, options)
    except VsrError as error:
        raise ResumeFailed(model, error) from error
    return msgspec.structs.replace(reply, tool_rounds=resumed.tool_rounds)


def _fallback_faults(bound: Mapping[str, Bound]) -> Iterator[str]:
    known = known_of(bound.get("fallback")) if "fallback" in bound else None
    if known is None:
        return
    if known.options is None and not known.is_given:
        yield "fallback comes from a result, and has to be known before the graph runs"
    if _word(bound, "stream") == "tail":
        yield "a call that is handed out has no fallback: say `stream: collect`"
    if _word(bound, "on_tool_calls") == "suspend":
        yield "a call that may wait for the client's tools has no fallback"


def _waiting_faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
    if _word(bound, "on_tool_calls") != "suspend":
        return
    if not env.may_suspend:
        yield "a branch of a parallel step cannot wait for the client's tools"
    if _word(bound, "stream") not in {None, "never"}:
        yield "a call that may wait for the client's tools cannot stream"
    block = bound.get("on_suspend")
    answer = block.value if isinstance(block, Constant) else None
    if isinstance(answer, Block) and not ends(answer):
        yield "on_suspend may come to its end without an answer"


CALL = Extension[Node](name="call", config=CallNode)
