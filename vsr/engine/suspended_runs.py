"""Runs that wait for their client's tools: how one is put aside, and how it goes on.

Source of the rules: looper-algorithms 12.
"""

import functools
import importlib.metadata
import logging
from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec
import trio

from vsr.codec.chat_body import ChatBody, read_body
from vsr.engine.extensions import StateKeeper
from vsr.errors import DeadlineExceeded, InvalidRequest, RoutingFailed, VsrError
from vsr.graph.block import Answer, Suspension
from vsr.graph.compiled import CompiledGraph
from vsr.graph.executor import execute
from vsr.graph.run import GraphRun, TailCall
from vsr.graph.suspend.answers import check_answers, continued_messages, find_state_id
from vsr.graph.suspend.record import Record, decode_record
from vsr.graph.suspend.run import (
    RunIdentity,
    SuspendedCall,
    SuspendedRun,
    check_identity,
    not_found,
)
from vsr.graph.suspend.waiting import ResumedCall, Waiting
from vsr.graph.value import Inputs
from vsr.routing.request import Principal

_PUT_BACK_S = 0.25
"""How long a failed request waits until its run is back, so that a client that tries again at once
finds it. A store that takes longer is left to it."""
_LOST = "a run that waits for tools is lost"
_LATE = "a run that waits for tools is put back late: its store takes too long"
_STREAM_MEMBERS = ("stream", "stream_options")
_log = logging.getLogger("vsr.engine")


def identity_of(graph: CompiledGraph, decision: str) -> RunIdentity | None:
    """Return what a kept run of a decision's graph is known by, but for its principal.

    None where the graph never waits for tools.
    """
    if not graph.may_suspend:
        return None
    params = msgspec.json.encode(graph.params, enc_hook=_plain, order="deterministic")
    version = sha256(f"{_release()} {graph.hash}".encode()).hexdigest()
    return RunIdentity("", version, decision, msgspec.Raw(params))


class Stay(msgspec.Struct, frozen=True):
    """One request's graph, where it may wait for the client's tools."""

    graph: CompiledGraph
    identity: RunIdentity
    keeper: StateKeeper
    unix: Callable[[], float]
    begin: Callable[[GraphRun], None] = lambda _: None
    """Prepares a run that begins; may raise VsrError."""

    async def run(self, run: GraphRun) -> Answer | TailCall:
        """Run the graph, or go on with the run that the request's last tool messages belong to.

        A run that goes on and fails is kept as it was, so that a mended request may try again.
        The store has no more time than the run.

        Raises:
            DeadlineExceeded: the store takes too long.
            VsrError: the graph failed, or there is no such run, or it cannot go on like this.
        """
        inputs = run.inputs
        if inputs is None:
            raise RoutingFailed
        state_id = find_state_id(inputs.request.trailing_tool_messages)
        if state_id is None:
            self.begin(run)
            run.waiting = Waiting(Record(), self.keeper.draw)
            return await self._run_and_keep(run)
        kept = await self._take(run, state_id)
        if kept is None:
            raise not_found(state_id)
        try:
            check_identity(kept, self.identity)
            _restore(run, kept, inputs.request, self.keeper)
            return await self._run_and_keep(run)
        except BaseException:
            with trio.CancelScope(shield=True, relative_deadline=_PUT_BACK_S) as scope:
                await self._put_back(kept)
            if scope.cancelled_caught:
                _log.warning(_LATE)
            raise

    async def _take(self, run: GraphRun, state_id: str) -> SuspendedRun | None:
        with trio.CancelScope(deadline=run.deadline.at):
            return await self.keeper.store.take(state_id, now_unix_s=self.unix())
        raise DeadlineExceeded("graph")

    async def _run_and_keep(self, run: GraphRun) -> Answer | TailCall:
        value = await execute(self.graph, run)
        if not isinstance(value, Suspension):
            return value
        now_unix_s = self.unix()
        kept = _suspended(run, value, self.identity, now_unix_s)
        with trio.CancelScope(deadline=run.deadline.at) as scope:
            await self.keeper.store.put(kept, now_unix_s=now_unix_s)
            # A client that left meanwhile knows nothing of this state, and the one before must be
            # put back.
            await trio.lowlevel.checkpoint_if_cancelled()
        if scope.cancelled_caught:
            raise DeadlineExceeded("graph")
        return value.answer

    async def _put_back(self, kept: SuspendedRun) -> None:
        try:
            await self.keeper.store.put_back(kept, now_unix_s=self.unix())
        except VsrError:
            _log.exception(_LOST)


def principal_key(principal: Principal) -> str:
    """Return what tells one principal from all others."""
    return msgspec.json.encode([principal.tenant, principal.id]).decode()


def _restore(run: GraphRun, kept: SuspendedRun, request: ChatBody, keeper: StateKeeper) -> None:
    """Let `run` go on where `kept` stopped, with the tools' answers that `request` ends with.

    Raises:
        GraphFailed: the answers are not those that are waited for.
    """
    call = kept.call
    answers = check_answers(request.trailing_tool_messages, kept.state_id, call.pending)
    messages = continued_messages(call.messages, call.assistant, answers)
    rounds = (*call.tool_rounds, call.pending)
    resumed = ResumedCall(call.path, kept.state_id, call.seq, messages, rounds)
    run.waiting = Waiting(decode_record(kept.finished), keeper.draw, resumed)
    run.counts = kept.account.copy()
    if kept.account.best is not None:  # its calls are numbered from 1 again
        run.best = msgspec.structs.replace(kept.account.best, ordinal=0)
    first = _first_request(kept, request)
    run.inputs = Inputs(first, kept.seed, is_resumed=True, signals=kept.signals)


def _first_request(kept: SuspendedRun, request: ChatBody) -> ChatBody:
    """Return the request that began the run; how it is answered is for the new one to say."""
    try:
        first = read_body(bytes(kept.request))
    except InvalidRequest as error:
        raise not_found(kept.state_id) from error
    first = first.without(*_STREAM_MEMBERS)
    for name in _STREAM_MEMBERS:
        if name in request.members:
            first = first.with_member(name, request.members[name])
    return first


def _suspended(
    run: GraphRun, value: Suspension, identity: RunIdentity, now_unix_s: float
) -> SuspendedRun:
    if run.waiting is None or run.inputs is None:
        raise RoutingFailed
    pending = value.pending
    return SuspendedRun(
        state_id=pending.state_id,
        created_unix_s=now_unix_s,
        identity=identity,
        seed=run.inputs.seed,
        request=msgspec.Raw(run.inputs.request.encode()),
        finished=run.waiting.record.encode(),
        account=msgspec.structs.replace(value.account, best=run.best),
        call=SuspendedCall(
            path=value.path,
            messages=value.messages,
            assistant=pending.assistant,
            pending=pending.tool_call_ids,
            seq=pending.next_seq,
            tool_rounds=pending.reply.tool_rounds,
        ),
        signals=run.inputs.signals,
    )


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


@functools.cache
def _release() -> str:
    """Return the release: another one may write prompts in other words."""
    try:
        return importlib.metadata.version("vllm-sr")
    except importlib.metadata.PackageNotFoundError:
        return ""
