"""The routing core: drives a session through the request phases and applies what it answers."""

from collections.abc import Mapping
from functools import partial

from vsr.deadline import NO_DEADLINE
from vsr.engine.alternatives import SessionAlternatives
from vsr.engine.calls import call_of
from vsr.engine.endpoints import is_passed_on
from vsr.engine.entrypoint import compile_entrypoints
from vsr.engine.extensions import Extensions, Surroundings
from vsr.engine.graph_ahead import graph_ahead
from vsr.engine.model_list import render_model_list
from vsr.engine.renditions import SessionRenditions, renditions
from vsr.engine.request_phase import Outgoing
from vsr.engine.session import BYPASS, GRAPH_AHEAD, INFERENCE, RoutingSession, is_true
from vsr.engine.settings import Settings, compile_settings
from vsr.engine.target import Keystone, Target, Workshop
from vsr.errors import RoutingFailed
from vsr.graph.run import PLAIN_TAIL
from vsr.headers import Headers
from vsr.resources.snapshot import Snapshot
from vsr.routing.effect import (
    UNCHANGED,
    Effect,
    apply_body,
    apply_headers,
    render_immediate,
)
from vsr.routing.plan import Answer, Call, Plan, Settlement
from vsr.routing.ports import GraphPorts, Journal, Tasks
from vsr.routing.request import USER_KEY_HEADERS, Request
from vsr.routing.session import BodyMode
from vsr.slices import Sliced


class RoutingEngine:
    """Implements `routing.engine.Engine` for one configuration."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.may_wait = settings.entrypoints.is_learned
        self.ports: GraphPorts | None = None
        """The ways of graphs to the world; given once, by who knows them."""

    def open(self, request: Request, tasks: Tasks) -> RoutingSession:
        """Open a session for `request`."""
        return RoutingSession(self._settings, request, tasks, NO_DEADLINE, ports=self.ports)

    def passes_body(self, method: bytes, target: bytes, fields: Mapping[bytes, bytes]) -> bool:
        """Return whether nobody reads the body; see `routing.engine.Engine`."""
        may_bypass = self._settings.may_bypass and is_true(fields.get(BYPASS, b""))
        return is_passed_on(method, target, may_bypass=may_bypass)

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Run the request phases; see `routing.engine.Engine`."""
        session = self.open(request, tasks)
        plan = journal.plan = Plan(session, Settlement(session.finish))
        session.trace = journal.trace
        try:
            first, second = session.request_headers(), UNCHANGED
            if first.immediate is not None:
                plan.immediate = first.immediate
                return plan
            if request.body or session.endpoint in INFERENCE:
                waits = self._settings.may_wait or session.endpoint not in INFERENCE
                second = await session.judge() if waits else session.decide()
                if second is GRAPH_AHEAD:
                    note = partial(_note, plan, session, journal)
                    plan.ahead = graph_ahead(session, partial(_graph_plan, plan), note)
                    if plan.ahead is not None:
                        return plan
                    return _graph_plan(plan, session, await session.run_graph())
                if second.immediate is not None:
                    plan.immediate = second.immediate
                    return plan
            call = call_of(request, first, second)
            if session.tail is None:
                session.hand_out(call.route_key.decode("latin-1"))
            return _send(plan, session, call)
        finally:
            _note(plan, session, journal)

    def respond(self, plan: Plan, status: int, headers: Headers) -> BodyMode:
        """Run the response-header phase on `headers`, in place; see `routing.engine.Engine`."""
        session = plan.session
        effect = session.response_headers(status, headers)
        if effect.immediate is not None:
            plan.immediate = effect.immediate
            return BodyMode.REPLACED
        apply_headers(headers, effect, streaming=effect.stream_response)
        return session.body_mode

    async def respond_whole(self, plan: Plan, answer: Answer) -> Answer:
        """Run the response-body phase on a whole answer."""
        effect = await plan.session.response_body(answer.body, is_last=True)
        if effect.immediate is not None:
            status, lines = render_immediate(effect.immediate)
            return Answer(status, Headers(lines), effect.immediate.body)
        apply_headers(answer.headers, effect)
        return Answer(
            answer.status, answer.headers, apply_body(answer.headers, answer.body, effect)
        )


def compile_engine(
    snapshot: Snapshot,
    version: int,
    *,
    extensions: Extensions,
    surroundings: Surroundings,
) -> Sliced[RoutingEngine]:
    """Build the routing core of one configuration, in slices.

    Args:
        snapshot: what to route by.
        version: shown to clients as `x-vsr-config-version`.
        extensions: what the configuration may ask for.
        surroundings: what sessions see of the world; its time is shown in the model list.

    Raises:
        ConfigRejected: it asks for what there is not, or for what can't be done.
    """
    keystone = Keystone(version)
    workshop = Workshop(
        keystone,
        extensions.plugins,
        snapshot.settings.default_reasoning_effort,
        USER_KEY_HEADERS | snapshot.settings.key_headers,
    )
    entrypoints = yield from compile_entrypoints(snapshot, extensions, workshop)
    return RoutingEngine(
        compile_settings(
            keystone=keystone,
            entrypoints=entrypoints,
            plain=PLAIN_TAIL,
            model_list=render_model_list(snapshot, created=int(surroundings.unix())),
            surroundings=surroundings,
            may_bypass=snapshot.settings.may_skip_processing,
        )
    )


def _graph_plan(plan: Plan, session: RoutingSession, effect: Effect) -> Plan:
    """Say in a plan what a session's graph has come to."""
    plan.ahead = None
    if effect.immediate is not None:
        plan.immediate = effect.immediate
        return plan
    tail = session.tail
    if tail is None or tail.hop is None:
        raise RoutingFailed  # unreachable: a graph answers or hands out a call
    return _send(plan, session, tail.hop.call)


def _note(plan: Plan, session: RoutingSession, journal: Journal) -> None:
    """Keep what is known of a request's work before its call, however that ended."""
    plan.label = session.label
    if session.graph is not None:
        plan.failure = session.graph.failure
        journal.attempts += session.graph.run.ledger.attempts


def _send(plan: Plan, session: RoutingSession, call: Call) -> Plan:
    tail = session.tail
    if tail is not None:
        call.model = tail.model
        call.spend = session
    plan.call = call
    target = session.target
    if target is not None and (tail is None or tail.hop is None):
        call.policy = target.policy
        if tail is not None and tail.reliability is not None:
            call.policy = target.policy_with(tail.reliability)
        if target.variants:
            call.renditions = _first_renditions(session, target)
        if target.fallback is not None:
            plan.alternatives = SessionAlternatives(session, target.fallback)
    return plan


def _first_renditions(session: RoutingSession, target: Target) -> SessionRenditions | None:
    """Return the forms of the session's first call; None if the session has made none."""

    def commit(variant: Target, outgoing: Outgoing) -> None:
        session.target, session.outgoing = variant, outgoing

    if session.outgoing is None:
        return None
    return renditions(session, target, session.outgoing, commit)
