"""What a session has decided and its graph has done, in the shape that operators see; pure."""

import msgspec

from vsr.engine.grounds import GraphGrounds, SessionGrounds
from vsr.graph.budget import Budget
from vsr.graph.evidence import Ended, execution_of
from vsr.graph.ledger import Ledger, LedgerEntry
from vsr.graph.picture.signal_words import tree_words
from vsr.graph.timeline import Span, Timeline, cut_at, end_of
from vsr.routing.budget import Reservation
from vsr.routing.execution import MAX_ATTEMPTS, ExecutedCall, as_cost, cut
from vsr.routing.outcome import Attempt, Terminal
from vsr.routing.request_views import (
    CallView,
    DecisionView,
    GraphView,
    LedgerEntryView,
    LedgerView,
    ReservationView,
    RoutingView,
    SignalRule,
    State,
    StepView,
    ms,
    ms_of,
    try_view,
)

_SPAN_STATES: dict[str, State] = {
    "failed": "failed",
    "handed_out": "handed_out",
    "suspended": "suspended",
    "ended": "ended",
    "succeeded": "succeeded",
}


def routing_view(grounds: SessionGrounds, started_at: float, now: float) -> RoutingView:
    """Return what operators see; see `routing.session.Grounds`."""
    ledger, graph = grounds.ledger, grounds.graph
    return RoutingView(
        None if grounds.asked is None else cut(grounds.asked),
        _decision(grounds),
        _signals(grounds),
        grounds.path,
        None if graph is None or ledger is None else _graph(graph, ledger, started_at, now),
        None if ledger is None or grounds.budget is None else _ledger(ledger, grounds.budget),
    )


def _decision(grounds: SessionGrounds) -> DecisionView:
    verdict, choice = grounds.verdict, grounds.choice
    if choice is None:
        return DecisionView("undecided")
    # A graph calls models of its own choice.
    model, method = grounds.model, choice.method
    if grounds.graph is not None:
        model, method = None, "graph"
    decision = None if verdict is None else verdict.decision
    found = DecisionView(
        "model" if choice.recipe is None else "default",
        choice.recipe,
        choice.decision,
        method=method,
        model=model,
        reasoning_mode=choice.reasoning_mode,
    )
    if decision is None or verdict is None:
        return found
    return msgspec.structs.replace(
        found,
        because="decision",
        name=decision.name,
        rules=tree_words(decision.tree),
        matched=verdict.matched_rules,
        confidence=verdict.confidence,
        priority=decision.priority,
        tier=decision.tier,
    )


def _signals(grounds: SessionGrounds) -> tuple[SignalRule, ...]:
    matches = {} if grounds.verdict is None else grounds.verdict.matches
    return tuple(
        SignalRule(*label.partition(":")[::2], confidence) for label, confidence in matches.items()
    )


def _graph(graph: GraphGrounds, ledger: Ledger, start: float, now: float) -> GraphView:
    execution = graph.execution
    if execution is None:
        # Whatever is open counts as ended here, and is told as open below.
        ended = Ended(graph.name, Terminal.SUCCEEDED, None, graph.started_at, now)
        execution, state = execution_of(ledger, ended), _live_state(graph)
        ended_at = graph.ended_at
    else:
        state, ended_at = _state(execution.terminal), execution.ended_at
    is_over = graph.execution is not None
    models, verifiers = iter(ledger.entries), iter(ledger.verifier_calls or ())
    calls = []
    for call in execution.calls[:MAX_ATTEMPTS]:
        if call.evidence.model is None:
            is_open, tries = next(verifiers).terminal is None, call.tries
        else:
            entry = next(models)
            is_open = entry.outcome is None
            tries = tuple(entry.tries) if is_open else call.tries
        if is_open and not is_over:
            calls.append(_running(call, tries, start))
        else:
            calls.append(_call(call, start))
    timeline = graph.timeline
    end = execution.ended_at if is_over else None
    return GraphView(
        graph.name,
        state,
        graph.error or execution.error,
        ms_of(graph.started_at, start),
        ms(ended_at, start),
        graph.nodes,
        () if timeline is None else _steps(timeline, ledger, start, end),
        tuple(calls),
        0 if timeline is None else timeline.dropped,
        len(execution.calls) - len(calls),
    )


def _live_state(graph: GraphGrounds) -> State:
    if graph.error:
        return "failed"
    return "running" if graph.ended_at is None else "succeeded"


def _state(terminal: Terminal) -> State:
    return terminal.value


def _running(call: ExecutedCall, tries: tuple[Attempt, ...], start: float) -> CallView:
    evidence = call.evidence
    return CallView(
        evidence.ordinal,
        call.step,
        evidence.model,
        evidence.verifier_type,
        "running",
        None,
        ms_of(call.started_at, start),
        None,
        None,
        "",
        None,
        None,
        attempts=tuple(try_view(each, start, None) for each in tries),
    )


def _call(call: ExecutedCall, start: float) -> CallView:
    evidence, usage = call.evidence, call.evidence.usage
    return CallView(
        evidence.ordinal,
        call.step,
        evidence.model,
        evidence.verifier_type,
        _state(evidence.status),
        None if evidence.reason is None else evidence.reason.value,
        ms_of(call.started_at, start),
        ms_of(call.ended_at, start),
        call.status,
        call.error,
        None if usage is None else usage.prompt_tokens,
        None if usage is None else usage.completion_tokens,
        evidence.selected,
        evidence.accepted,
        evidence.score,
        evidence.threshold,
        tuple(try_view(each, start, call.ended_at) for each in call.tries),
    )


def _steps(
    timeline: Timeline, ledger: Ledger, start: float, end: float | None
) -> tuple[StepView, ...]:
    """Return the steps that have begun.

    Args:
        timeline: of the run.
        ledger: of the run.
        start: of the request.
        end: of the run; None while it goes on.
    """
    found = []
    for path, span in timeline.spans.items():
        state, ended_at = _span_state(span), span.ended_at
        if span.tail is not None:
            ended_at = end_of(span.tail)
            ended_at = end if ended_at is None else ended_at
        elif ended_at is None and end is not None:
            state, ended_at = "cancelled", cut_at(path, timeline, ledger.entries, end)
        code = "" if span.failure is None else span.failure.code
        found.append(
            StepView(
                path, span.type, state, ms_of(span.started_at, start), ms(ended_at, start), code
            )
        )
    return tuple(found)


def _span_state(span: Span) -> State:
    return _SPAN_STATES.get(span.status, "running")


def _ledger(ledger: Ledger, budget: Budget) -> LedgerView:
    limits = budget.limits
    return LedgerView(
        budget.hops,
        budget.reserved_tokens,
        budget.spent_tokens,
        as_cost(budget.reserved_nano_usd) or 0.0,
        as_cost(budget.spent_nano_usd) or 0.0,
        budget.is_overrun,
        limits.max_hops,
        limits.max_tokens,
        limits.max_prompt_tokens,
        limits.max_completion_tokens,
        as_cost(limits.max_cost_nano_usd),
        tuple(_entry(each) for each in ledger.entries[:MAX_ATTEMPTS]),
    )


def _entry(entry: LedgerEntry) -> LedgerEntryView:
    usage, price, outcome = entry.usage, entry.price, entry.outcome
    return LedgerEntryView(
        entry.ordinal,
        cut(entry.model),
        entry.step,
        "running" if outcome is None else _state(outcome.terminal),
        tuple(_reservation(each) for each in (*entry.settled, entry.reservation)),
        None if usage is None else usage.prompt_tokens,
        None if usage is None else usage.completion_tokens,
        None if price is None or usage is None else as_cost(price.of(usage)),
        None if price is None else price.currency,
        entry.is_refused,
    )


def _reservation(reservation: Reservation) -> ReservationView:
    return ReservationView(
        reservation.tokens,
        as_cost(reservation.cost_nano_usd),
        reservation.is_settled,
        reservation.used_tokens,
        as_cost(reservation.used_nano_usd),
    )
