"""The routing core: drives a session through the request phases and applies what it answers."""

from collections.abc import Callable

from vsr.deadline import Deadline
from vsr.decision.selection.selection import Selection
from vsr.engine.endpoints import Endpoint
from vsr.engine.entrypoint import compile_entrypoints
from vsr.engine.model_list import render_model_list
from vsr.engine.session import RoutingSession, Settings, compile_settings
from vsr.engine.target import Keystone
from vsr.graph.compile import PLAIN_STEPS, compile_graph
from vsr.graph.nodes.node import Node
from vsr.headers import Headers
from vsr.registry import Registry
from vsr.resources.snapshot import Snapshot
from vsr.routing.effect import UNCHANGED, ImmediateResponse, applied, apply_body, apply_headers
from vsr.routing.plan import UNROUTED, Call, Plan, Settlement
from vsr.routing.ports import Tasks
from vsr.routing.request import Request

_ROUTE_KEY = b"x-selected-model"


class RoutingEngine:
    """Implements `routing.engine.Engine` for one configuration."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def open(self, request: Request, tasks: Tasks) -> RoutingSession:
        """Open a session for `request`."""
        return RoutingSession(self._settings, request, tasks, Deadline())

    async def plan(self, request: Request, tasks: Tasks) -> Plan:
        """Run the request phases; see `routing.engine.Engine`."""
        session = self.open(request, tasks)
        try:
            return await _plan(session, request)
        except BaseException:
            session.close()
            raise

    def respond(self, plan: Plan, status: int, headers: Headers) -> None:
        """Run the response-header phase on `headers`, in place."""
        effect = plan.session.response_headers(status, headers)
        apply_headers(headers, effect, streaming=effect.stream_response)


def compile_engine(
    snapshot: Snapshot,
    version: int,
    *,
    nodes: Registry[Node],
    selections: Registry[Selection],
    clock: Callable[[], float],
    created: int,
) -> RoutingEngine:
    """Build the routing core of one configuration.

    Args:
        snapshot: what to route by.
        version: shown to clients as `x-vsr-config-version`.
        nodes: node types that graphs may use.
        selections: selection algorithms that decisions may use.
        clock: monotonic seconds.
        created: Unix seconds shown in the model list.
    """
    keystone = Keystone(version)
    return RoutingEngine(
        compile_settings(
            keystone=keystone,
            entrypoints=compile_entrypoints(snapshot, selections, keystone),
            plain=compile_graph("builtin/plain", PLAIN_STEPS, nodes, params=("model",)),
            model_list=render_model_list(snapshot, created=created),
            clock=clock,
        )
    )


async def _plan(session: RoutingSession, request: Request) -> Plan:
    first = session.request_headers()
    if first.immediate is not None:
        return _answer(session, first.immediate)
    second = UNCHANGED
    if request.body or session.endpoint is Endpoint.CHAT:
        second = await session.request_body()
        if second.immediate is not None:
            return _answer(session, second.immediate)
    headers, target = applied(request.headers, request.target, first, second)
    body = apply_body(headers, request.body, second)
    is_rerouted = first.reroutes or second.reroutes
    # Without a cleared route cache the client's own header stands, as it would in Envoy.
    route_key = (headers if is_rerouted else request.headers).get(_ROUTE_KEY)
    if session.tail is None:
        await session.hand_out(route_key.decode("latin-1"))
    call = Call(request.method, target, headers, body, route_key)
    return _send(session, call)


def _answer(session: RoutingSession, immediate: ImmediateResponse) -> Plan:
    return Plan(session, Settlement(session.finish), immediate=immediate)


def _send(session: RoutingSession, call: Call) -> Plan:
    if session.tail is not None:
        call.model = session.tail.model
        call.spend = session.budget
    label = UNROUTED if session.target is None else session.target.label
    return Plan(session, Settlement(session.finish), None, call, label)
