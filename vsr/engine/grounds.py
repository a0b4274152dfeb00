"""Why and how a session has routed its request: what is kept of it for operators who ask."""

from typing import TYPE_CHECKING

import msgspec

from vsr.decision.evaluate import Verdict
from vsr.engine.target import Choice, Target
from vsr.graph.budget import Budget
from vsr.graph.ledger import Ledger
from vsr.routing.evidence import Evidence
from vsr.routing.execution import Execution

if TYPE_CHECKING:
    from vsr.engine.session import RoutingSession
    from vsr.graph.timeline import Timeline
    from vsr.routing.request_views import NodeView, RoutingView


class GraphGrounds(msgspec.Struct, frozen=True, gc=False):
    """The run of a decision's graph."""

    name: str
    nodes: "tuple[NodeView, ...]"
    timeline: "Timeline | None"
    started_at: float
    ended_at: float | None
    error: str
    execution: Execution | None
    """None while the request is under way."""


class SessionGrounds(msgspec.Struct, frozen=True, gc=False):
    """Implements `routing.session.Grounds` by what the session has anyway.

    Once the request has ended nothing in here leads to its body, its replies, or what serves.
    """

    asked: str | None
    """Model that the client named; None: not known yet, or nobody looks at it."""
    verdict: Verdict | None
    choice: Choice | None
    model: str | None
    path: tuple[str, ...]
    refusal: str
    ledger: Ledger | None
    budget: Budget | None
    graph: GraphGrounds | None = None

    def view(self, started_at: float, now: float) -> "RoutingView":
        """Return what operators see of it; see `routing.session.Grounds`."""
        # Loaded for who asks.
        from vsr.engine.grounds_view import routing_view  # noqa: PLC0415

        return routing_view(self, started_at, now)


def evidence_of(target: Target | None, verdict: Verdict | None) -> Evidence:
    """Return what was decided."""
    if target is None:
        return Evidence()
    choice = target.choice
    return Evidence(
        recipe=choice.recipe,
        decision=choice.decision,
        confidence=verdict.confidence if verdict and choice.decision else None,
        model=target.alias,
        selection_method=choice.method,
        reasoning_mode=choice.reasoning_mode,
        signals=verdict.signals if verdict else {},
    )


def grounds_of(session: "RoutingSession") -> SessionGrounds:
    """Return what is to be told of a session so far."""
    verdict, chat, run = session.verdict, session.chat, session.run
    target = session.target
    if verdict is not None and verdict.conditions is not None:
        verdict = msgspec.structs.replace(verdict, conditions=None)  # they have the request
    ledger = None if run is None else run.ledger
    graph = None
    if session.graph is not None:
        record = session.graph
        graph = GraphGrounds(
            record.algorithm,
            record.nodes,
            record.timeline,
            record.started_at,
            record.ended_at,
            "" if record.failure is None else record.failure.code,
            session.execution,
        )
        if session.execution is not None:
            ledger = _without_replies(record.run.ledger)
    return SessionGrounds(
        None if chat is None else chat.model,
        verdict,
        None if target is None else target.choice,
        None if target is None else target.alias,
        session.path,
        session.refusal,
        ledger,
        None if run is None else run.budget,
        graph,
    )


def _without_replies(ledger: Ledger) -> Ledger:
    entries = [
        msgspec.structs.replace(each, reply=None, trace=None, tries=()) for each in ledger.entries
    ]
    return Ledger(entries, None, ledger.verifier_calls)
