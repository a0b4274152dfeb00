"""A session that answers each phase as a test says, and an engine that opens it."""

from collections.abc import Mapping

import attrs

from vsr.headers import Headers
from vsr.routing.effect import (
    UNCHANGED,
    Effect,
    ImmediateResponse,
    applied,
    apply_body,
    apply_headers,
)
from vsr.routing.evidence import Evidence
from vsr.routing.outcome import Usage
from vsr.routing.plan import Answer, Call, Plan, Settlement
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request
from vsr.routing.session import BodyMode, BodyStream, Grounds


@attrs.define
class Script:
    """What sessions answer, and what they were asked."""

    request_headers: Effect = UNCHANGED
    request_body: Effect = UNCHANGED
    response_headers: Effect = UNCHANGED
    response_body: Effect = UNCHANGED
    """Of a whole body; of a streamed one, each chunk is answered in upper case."""
    wants_response_body: bool = True
    bodies: list[bytes] = attrs.field(factory=list)
    """Request bodies as each request phase saw them."""
    closed: int = 0


@attrs.define
class ScriptedSession:
    """Implements `routing.session.Session`."""

    script: Script
    request: Request

    @property
    def wants_response_body(self) -> bool:
        """Return what the script says."""
        return self.script.wants_response_body

    @property
    def body_mode(self) -> BodyMode:
        """Return what follows from the script."""
        return BodyMode.WHOLE if self.script.wants_response_body else BodyMode.UNSEEN

    @property
    def stream(self) -> BodyStream | None:
        """Return None: streams go through `response_body` here."""
        return None

    @property
    def usage(self) -> Usage | None:
        """Return None: nothing is counted."""
        return None

    def watch(self, body: bytes) -> None:
        """Do nothing."""

    def request_headers(self) -> Effect:
        """Answer by the script."""
        self.script.bodies.append(self.request.body)
        return self.script.request_headers

    async def request_body(self) -> Effect:
        """Answer by the script."""
        return self.decide()

    def decide(self) -> Effect:
        """Answer by the script."""
        self.script.bodies.append(self.request.body)
        return self.script.request_body

    def response_headers(self, status: int, headers: Headers) -> Effect:
        """Answer by the script."""
        del status, headers
        return self.script.response_headers

    async def response_body(self, data: bytes, *, is_last: bool) -> Effect:
        """Answer by the script, or change the chunk; at the end of a stream add a mark."""
        if self.script.response_headers.stream_response:
            return Effect(body=b"<end>" if is_last else data.upper())
        return self.script.response_body

    @property
    def grounds(self) -> Grounds:
        """Nobody asks here."""
        raise NotImplementedError

    def evidence(self) -> Evidence:
        """Return something."""
        return Evidence(model="scripted")

    @property
    def execution(self) -> None:
        """Return None: no graph runs."""

    def close(self) -> None:
        """Count."""
        self.script.closed += 1


class ScriptedEngine:
    """Implements `routing.engine.Engine` by the rules of `routing.effect`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.may_wait = False

    def open(self, request: Request, tasks: Tasks) -> ScriptedSession:
        """Open a session."""
        del tasks
        return ScriptedSession(self.script, request)

    def passes_body(self, method: bytes, target: bytes, fields: Mapping[bytes, bytes]) -> bool:
        """Return False: scripts see every body."""
        del method, target, fields
        return False

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Run the request phases."""
        session = self.open(request, tasks)
        try:
            plan = journal.plan = await _plan(session, request)
        except BaseException:
            session.close()
            raise
        return plan

    def respond(self, plan: Plan, status: int, headers: Headers) -> BodyMode:
        """Run the response-header phase."""
        effect = plan.session.response_headers(status, headers)
        apply_headers(headers, effect, streaming=effect.stream_response)
        return plan.session.body_mode

    async def respond_whole(self, plan: Plan, answer: Answer) -> Answer:
        """Run the response-body phase."""
        effect = await plan.session.response_body(answer.body, is_last=True)
        apply_headers(answer.headers, effect)
        body = apply_body(answer.headers, answer.body, effect)
        return Answer(answer.status, answer.headers, body)


async def _plan(session: ScriptedSession, request: Request) -> Plan:
    settlement = Settlement(lambda _: session.close())
    effects = [session.request_headers()]
    if request.body and effects[0].immediate is None:
        effects.append(await session.request_body())
    answer = effects[-1].immediate
    if answer is not None:
        return Plan(session, settlement, immediate=answer)
    first, second = [*effects, UNCHANGED][:2]
    headers, target = applied(request.headers, request.target, first, second)
    is_rerouted = first.reroutes or second.reroutes
    route = (headers if is_rerouted else request.headers).get(b"x-selected-model")
    body = apply_body(headers, request.body, second)
    return Plan(session, settlement, call=Call(request.method, target, headers, body, route))


def refusal(status: int, body: bytes = b"") -> Effect:
    """Return an effect that answers at once."""
    return Effect(immediate=ImmediateResponse(status, body=body))
