"""The part of the request phase in which a graph answers for a decision."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import attrs
import msgspec
import trio

from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.stream_to_anthropic import ChatStreamToAnthropic
from vsr.codec.chat_body import read_body
from vsr.deadline import Deadline
from vsr.engine.decision_graph import DecisionGraph
from vsr.engine.endpoints import Protocol
from vsr.engine.graph_answer import STREAM, confidence_edits
from vsr.engine.graph_progress import watch_progress
from vsr.engine.graph_record import GraphRecord
from vsr.engine.hop import EngineHop, SessionHops
from vsr.engine.request_phase import as_chat
from vsr.engine.response_phase import error_body
from vsr.engine.suspended_runs import Stay, principal_key
from vsr.errors import BudgetExhausted, GraphFailed, InvalidRequest, RoutingFailed, VsrError
from vsr.graph.block import Answer, Suspension, cause_of
from vsr.graph.budget import Budget
from vsr.graph.executor import execute
from vsr.graph.ledger import Ledger
from vsr.graph.run import GraphRun, TailCall
from vsr.graph.timeline import Timeline
from vsr.graph.value import Inputs
from vsr.routing.effect import UNCHANGED, Effect, HeaderEdit, ImmediateResponse
from vsr.routing.execution import GraphFailure

if TYPE_CHECKING:
    from vsr.engine.session import RoutingSession

_JSON = HeaderEdit(b"content-type", b"application/json")
_DONE = b"data: [DONE]\n\n"


async def answer_by_graph(
    session: "RoutingSession", tell: Callable[[str], None] | None = None
) -> Effect:
    """Run the graph of the session's decision.

    Args:
        session: whose decision is answered for by a graph.
        tell: gets a text for each step and call that begins or ends; None where nobody listens.

    Returns:
        The answer, or nothing where the graph hands out its last call: the session's tail then.

    Raises:
        VsrError: it failed, and the client is told as of any other failure.
    """
    target, chat = session.target, session.chat
    if target is None or target.graph is None or chat is None:
        raise RoutingFailed
    decided = target.graph
    session.tasks.end_at(inf)  # the graph has a deadline of its own
    run = _open_run(session, decided)
    session.run = run
    around = session.settings.surroundings
    record = session.graph = _open_record(session, decided, run)
    if around.on_run is not None:
        around.on_run(run)
    if tell is not None:
        watch_progress(run, tell)
    began_at = around.monotonic()
    try:
        value = await _run(session, decided, run)
    except VsrError as error:
        record.failure, record.ended_at = GraphFailure.of(error), trio.current_time()
        if not decided.is_looper or _is_told_as_it_is(error):
            raise
        return _looper_failure(decided, error, session.endpoint.protocol)
    finally:
        session.note_usage(run.ledger.usage)
    if isinstance(value, TailCall):
        return _hand_out(session, value)
    record.answer, record.ended_at = value, trio.current_time()
    told = _Told(decided, run, value, int((around.monotonic() - began_at) * 1000))
    return _answered(session, told)


def _open_record(session: "RoutingSession", decided: DecisionGraph, run: GraphRun) -> GraphRecord:
    """Return the record of a run that begins, whose steps are watched from now on."""
    run.watch = timeline = Timeline(trio.current_time)
    return GraphRecord(
        run,
        decided.told_name,
        decided.label,
        trio.current_time(),
        session.settings.surroundings.on_execution,
        nodes=decided.nodes,
        timeline=timeline,
    )


async def _run(
    session: "RoutingSession", decided: DecisionGraph, run: GraphRun
) -> Answer | TailCall:
    around = session.settings.surroundings
    if decided.identity is None or around.keeper is None:
        _answer_conditions(session, run)
        value = await execute(decided.graph, run)
        if isinstance(value, Suspension):
            raise RoutingFailed  # unreachable: a run without a keeper fails in its step
        return value
    owner = principal_key(session.request.principal)
    identity = msgspec.structs.replace(decided.identity, principal=owner)
    begin = partial(_answer_conditions, session)
    return await Stay(decided.graph, identity, around.keeper, around.unix, begin).run(run)


def _answer_conditions(session: "RoutingSession", run: GraphRun) -> None:
    """Let the conditions of a run that begins know what they ask of the client's request.

    Raises:
        VsrError: that cannot be known.
    """
    verdict, inputs = session.verdict, run.inputs
    if verdict is not None and verdict.conditions is not None and inputs is not None:
        run.inputs = attrs.evolve(inputs, signals=verdict.conditions.find())


def _open_run(session: "RoutingSession", decided: DecisionGraph) -> GraphRun:
    request, settings = session.request, session.settings
    chat, ports = session.chat, session.ports
    if chat is None:
        raise RoutingFailed
    graph, around = decided.graph, settings.surroundings
    draft = as_chat(session.endpoint, request, chat)
    body = read_body(draft.body() or draft.envelope.body)
    timeout_s = graph.timeout_s or request.timeout_s
    return GraphRun(
        tasks=session.tasks,
        deadline=Deadline.after(request.received_at, timeout_s),
        budget=Budget(graph.limits),
        ledger=Ledger(),
        prompt=chat,
        hops=SessionHops(
            request, decided.model, around.unix, decided.static_headers, graph.is_strict
        ),
        caller=None if ports is None else ports.caller,
        runtime=around.runtime,
        fetch=None if ports is None else ports.fetch,
        inputs=Inputs(body),
        max_answer_bytes=decided.max_answer_bytes,
        unix=around.unix,
        trace=session.trace,
    )


def _hand_out(session: "RoutingSession", tail: TailCall) -> Effect:
    """Let the session go on with the graph's last call."""
    hop = tail.hop
    if not isinstance(hop, EngineHop) or hop.target is None:
        raise RoutingFailed
    session.tail, session.target, session.outgoing = tail, hop.target, hop.outgoing
    return UNCHANGED


class _Told(msgspec.Struct, frozen=True):
    """What the client is told of a run."""

    decided: DecisionGraph
    run: GraphRun
    answer: Answer
    latency_ms: int


def _answered(session: "RoutingSession", told: _Told) -> Effect:
    answer = told.answer
    body = answer.body
    if session.endpoint.protocol is Protocol.ANTHROPIC:
        if answer.is_stream:
            stream = ChatStreamToAnthropic(model=answer.model)
            body = stream.feed(_with_usage(answer)) + stream.close()
        else:
            body = chat_response_to_anthropic(body, model=answer.model).body
    edits = [
        STREAM if answer.is_stream else _JSON,
        *told.decided.edits,
        HeaderEdit(b"x-vsr-selected-model", answer.model.encode()),
        *confidence_edits(session),
    ]
    if session.is_debugging:
        edits += [*_debug_edits(told), *session.debug_edits()]
    return Effect(immediate=ImmediateResponse(answer.status, tuple(edits), body))


def _with_usage(answer: Answer) -> bytes:
    """Return a stream of chunks with its usage, which every stream of the Messages API tells.

    A chunk that says the same, for a client that asked for it, may stand before it.
    """
    chunk = msgspec.json.encode({"choices": (), "usage": answer.usage})
    return answer.body.removesuffix(_DONE) + b"data: " + chunk + b"\n\n" + _DONE


def _debug_edits(told: _Told) -> list[HeaderEdit]:
    """Return the diagnostic headers of a run. Source: looper-algorithms 4.1."""
    answer, decided = told.answer, told.decided
    usage = answer.usage
    counts = {
        b"latency-ms": told.latency_ms,
        b"prompt-tokens": usage.prompt_tokens,
        b"completion-tokens": usage.completion_tokens,
        b"total-tokens": usage.total_tokens,
        b"calls": 0 if decided.is_looper else len(told.run.ledger.entries),
    }
    exhausted = [(b"exhausted", b"budget")] if answer.is_exhausted else []
    lines = [
        *exhausted,
        (b"model", answer.model.encode()),
        (b"models-used", ",".join(answer.models_used).encode()),
        (b"iterations", b"%d" % answer.iterations),
        (b"algorithm", decided.algorithm.encode()),
        *((name, b"%d" % count) for name, count in counts.items() if count > 0),
    ]
    prefix = b"x-vsr-looper-" if decided.is_looper else b"x-vsr-graph-"
    return [HeaderEdit(prefix + name, value) for name, value in lines]


def _is_told_as_it_is(error: VsrError) -> bool:
    """Return whether a failure is the client's or the budget's, be it in the words of a step."""
    return isinstance(error, InvalidRequest) or error.code == BudgetExhausted.code


def _looper_failure(decided: DecisionGraph, error: VsrError, client: Protocol) -> Effect:
    """Return the answer to a failure, in the one form that the reference has for all of them.

    Source: looper-algorithms 4.5; a client of another protocol reads it in that protocol's form.
    """
    message = f"Looper execution failed: {cause_of(error)}"
    if client is Protocol.OPENAI:
        told = {"message": message, "type": "invalid_request_error", "param": None, "code": 500}
        body = msgspec.json.encode({"error": told})
    else:
        body = error_body(client, GraphFailed(message))
    return Effect(immediate=ImmediateResponse(500, (_JSON, *decided.failed_edits), body))
