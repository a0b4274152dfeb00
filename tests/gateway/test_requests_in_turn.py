"""Requests in turn on one kept connection, by the real handler: each has an end of its own."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, ask, chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, clusters_of, document_of, model_of, start_router
from tests.faults.moments import request_of
from tests.gateway.h2_running import connect
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.errors import BudgetExhausted, VsrError
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.routing.engine import Engine
from vsr.routing.outcome import Cause, Outcome
from vsr.routing.plan import Plan
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request

BODY = chat_body(model="auto")
STREAM = chat_body(model="auto", stream=True)
UNKNOWN = chat_body(model="nope")
TOTAL_S, CHILD_S, TROUBLE_S = 20.0, 3.0, 0.5

Step = Callable[[Tasks], Awaitable[None]]


@attrs.define(eq=False)
class SteppingEngine:
    """Takes one step more per request before it plans; notes every plan's outcomes."""

    real: Engine
    steps: deque[Step] = attrs.field(factory=deque)
    causes: list[Cause | None] = attrs.field(factory=list)
    """Of each request's tasks when it began."""
    outcomes: list[Outcome] = attrs.field(factory=list)
    plans: int = 0

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Take the step, then plan."""
        self.causes.append(tasks.cause)
        if self.steps:
            await self.steps.popleft()(tasks)
        plan = await self.real.plan(request, tasks, journal)
        plan.settlement.on_finish(self.outcomes.append)
        self.plans += 1
        return plan

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


@attrs.define
class CountingAdmission:
    """Lets everything in; counts who is inside and who has left."""

    inside: int = 0
    left: int = 0

    def admit(self, request: Request) -> bool:
        """Let `request` in."""
        del request
        self.inside += 1
        return True

    def release(self, request: Request) -> None:
        """Let it out."""
        del request
        self.inside -= 1
        self.left += 1


async def _nothing(tasks: Tasks) -> None:  # noqa: ASYNC124  # its caller awaits it
    del tasks


async def _take_long(tasks: Tasks) -> None:
    del tasks
    await trio.sleep(5 * TOTAL_S)


async def _leave_a_child(tasks: Tasks) -> None:  # noqa: ASYNC124  # its caller awaits it
    tasks.start_soon(partial(trio.sleep, CHILD_S))


async def _leave_a_child_for_ever(tasks: Tasks) -> None:  # noqa: ASYNC124  # its caller awaits it
    tasks.start_soon(trio.sleep_forever)


async def _raise_soon() -> None:
    await trio.sleep(TROUBLE_S)
    raise LookupError


async def _fail_in_a_child(tasks: Tasks) -> None:
    tasks.start_soon(_raise_soon)
    await trio.sleep(10)


async def _fail(tasks: Tasks) -> None:
    del tasks
    await trio.sleep(TROUBLE_S)
    raise LookupError


async def _fail_beside_a_child(tasks: Tasks) -> None:
    tasks.start_soon(trio.sleep_forever)
    await trio.sleep(TROUBLE_S)
    raise LookupError


async def _refuse_beside_a_child(tasks: Tasks) -> None:
    tasks.start_soon(trio.sleep_forever)
    await trio.sleep(TROUBLE_S)
    raise BudgetExhausted


async def _raise_at_once() -> None:  # noqa: ASYNC124  # its caller awaits it
    raise LookupError


async def _fail_in_a_child_unseen(tasks: Tasks) -> None:
    tasks.start_soon(_raise_at_once)
    for _ in range(10):
        await trio.lowlevel.cancel_shielded_checkpoint()


@attrs.frozen
class Trouble:
    """A request that something happens to, and what becomes of it."""

    status: int
    outcome: str
    cause: str | None = None
    body: bytes = BODY
    step: Step = _nothing
    fault: Fault | int | None = None
    """What the backend does."""
    at_s: float = 0.0
    """When the next request can be served."""
    is_planned: bool = True
    asks_backend: bool = True


TROUBLES = {
    "none": Trouble(200, "succeeded"),
    "stream": Trouble(200, "succeeded", body=STREAM),
    "deadline": Trouble(504, "timed_out", "deadline", fault=Fault.SILENCE, at_s=TOTAL_S),
    "deadline of a body": Trouble(
        504, "timed_out", "deadline", fault=Fault.STALL_MIDSTREAM, at_s=TOTAL_S
    ),
    "reset": Trouble(503, "failed", fault=Fault.RESET_BEFORE_HEAD),
    "malformed": Trouble(502, "failed", fault=Fault.BAD_STATUS_LINE),
    "backend's error": Trouble(503, "failed", fault=Fault.STATUS),
    "refused by routing": Trouble(400, "failed", body=UNKNOWN, asks_backend=False),
    "child stays a while": Trouble(200, "succeeded", step=_leave_a_child, at_s=CHILD_S),
    "child stays": Trouble(200, "succeeded", step=_leave_a_child_for_ever, at_s=TOTAL_S),
    "child fails": Trouble(
        500, "failed", step=_fail_in_a_child, at_s=TROUBLE_S, is_planned=False, asks_backend=False
    ),
    "bug": Trouble(500, "failed", step=_fail, at_s=TROUBLE_S, is_planned=False, asks_backend=False),
    "bug beside a child": Trouble(
        500,
        "failed",
        step=_fail_beside_a_child,
        at_s=TROUBLE_S,
        is_planned=False,
        asks_backend=False,
    ),
    "refused beside a child": Trouble(
        429,
        "failed",
        step=_refuse_beside_a_child,
        at_s=TROUBLE_S,
        is_planned=False,
        asks_backend=False,
    ),
}


@attrs.define(eq=False)
class Stand:
    """A Router whose requests meet troubles, with one client."""

    router: RunningRouter
    engine: SteppingEngine
    admission: CountingAdmission
    client: MemoryConnection
    tasks_before: int

    async def check_nothing_is_held(self) -> None:
        """Check that no request is under way, here, at admission or as a task."""
        assert await self.router.held() == (0, 0)
        assert self.admission.inside == 0
        assert self.admission.left == len(self.engine.causes)
        # The client's own connection is one task; those to backends and at backends are others.
        idle = clusters_of(self.router.generation).idle_connections
        assert trio.lowlevel.current_statistics().tasks_living - idle <= self.tasks_before


async def _start(nursery: trio.Nursery, *troubles: Trouble) -> Stand:
    network = MemoryNetwork()
    faults = [trouble.fault for trouble in troubles if trouble.asks_backend]
    backend = await start_backend(nursery, network, Script(faults=(*faults, None, None, None)))
    ref = model_of(backend.port, reliability=f"{{total_timeout: {TOTAL_S}s}}")
    router = await start_router(nursery, network, document_of(ref))
    steps = deque(trouble.step for trouble in troubles)
    engine = SteppingEngine(router.generation.engine, steps)
    router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest
    admission = CountingAdmission()
    router.router.gateway.admission = admission
    client = await router.connect()
    await trio.testing.wait_all_tasks_blocked()
    before = trio.lowlevel.current_statistics().tasks_living
    return Stand(router, engine, admission, client, before)


@pytest.mark.parametrize("second", ["none", "stream", "deadline", "bug"])
@pytest.mark.parametrize("first", TROUBLES)
async def test_next_request_is_served_whatever_became_of_the_one_before(
    first: str,
    second: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On the same connection, with its own deadline, cause and end; nothing is held between."""
    caplog.set_level(logging.CRITICAL, "vsr.gateway")
    troubles = [TROUBLES[first], TROUBLES[second], TROUBLES["none"]]
    stand = await _start(nursery, *troubles)
    free_at = 0.0

    for number, trouble in enumerate(troubles):
        got = await ask(stand.client, trouble.body)
        free_at += trouble.at_s

        assert (got.end, got.status) == (AnswerEnd.WHOLE, trouble.status), number
        assert got.is_reusable
        assert trio.current_time() <= free_at + 0.001
        await trio.sleep(max(0, free_at - trio.current_time()) + 0.001)
        free_at = trio.current_time()
        await stand.check_nothing_is_held()

    assert stand.engine.causes == [None] * 3
    assert len(stand.engine.outcomes) == stand.engine.plans
    assert stand.engine.plans == sum(trouble.is_planned for trouble in troubles)
    lines = await stand.router.log()
    assert [(line["outcome"], line["cause"]) for line in lines] == [
        (trouble.outcome, trouble.cause) for trouble in troubles
    ]
    planned = [trouble for trouble in troubles if trouble.is_planned]
    assert [(each.terminal, each.cause) for each in stand.engine.outcomes] == [
        (trouble.outcome, trouble.cause) for trouble in planned
    ]


@pytest.mark.parametrize("name", TROUBLES)
async def test_request_behind_trouble_lasts_past_its_deadline(
    name: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its own work may take longer than the first one had in all."""
    caplog.set_level(logging.CRITICAL, "vsr.gateway")
    stand = await _start(nursery, TROUBLES[name], Trouble(200, "succeeded", fault=None))
    await ask(stand.client, TROUBLES[name].body)
    await trio.sleep(TOTAL_S - 5)
    stand.engine.steps.clear()
    stand.engine.steps.append(_take_long)

    got = await ask(stand.client, BODY)

    assert (got.end, got.status) == (AnswerEnd.WHOLE, 200)
    assert stand.engine.causes == [None, None]


@pytest.mark.parametrize("how", ["client leaves", "drain is forced", "server drains"])
@pytest.mark.parametrize("first", TROUBLES)
async def test_request_behind_trouble_may_be_ended(
    first: str,
    how: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """For its own cause, at once, once."""
    caplog.set_level(logging.CRITICAL, "vsr.gateway")
    stand = await _start(nursery, TROUBLES[first], TROUBLES["deadline"])
    await ask(stand.client, TROUBLES[first].body)
    await trio.sleep(max(0, TROUBLES[first].at_s - trio.current_time()) + 0.001)
    began_at = trio.current_time()

    await stand.client.send(request_of(BODY))
    await trio.sleep(1)
    if how == "client leaves":
        stand.client.close()
    elif how == "drain is forced":
        stand.router.router.server.force_end()
    else:
        await stand.router.router.server.drain(2)

    await stand.check_nothing_is_held()
    assert stand.router.router.server.open_connections == 0
    assert trio.current_time() - began_at <= 3.01
    last = (await stand.router.log())[-1]
    cause = "client_gone" if how == "client leaves" else "drain"
    assert (last["outcome"], last["cause"]) == ("cancelled", cause)
    assert stand.engine.outcomes[-1].cause == cause
    assert len(stand.engine.outcomes) == stand.engine.plans


async def test_failure_that_nothing_told_of_is_the_request_s_own(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A child that failed unseen must not be the end of the request that was pipelined behind."""
    unseen = Trouble(400, "failed", step=_fail_in_a_child_unseen, body=UNKNOWN, asks_backend=False)
    stand = await _start(nursery, unseen, TROUBLES["none"])

    await stand.client.send(request_of(UNKNOWN) + request_of(BODY))
    await trio.sleep(10)

    assert "LookupError" in caplog.text
    assert "connection failed" not in caplog.text
    lines = await stand.router.log()
    assert [line["response_code"] for line in lines] in ([400], [400, 200]), "not a 500"
    assert await stand.router.held() == (0, 0)


async def test_error_of_a_refusal_does_not_wait_for_children(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody needs the rest of a request's work once it has failed."""
    refused: type[VsrError] = BudgetExhausted
    stand = await _start(nursery, TROUBLES["refused beside a child"])

    got = await ask(stand.client, BODY)

    assert got.status == refused.status
    assert trio.current_time() == pytest.approx(TROUBLE_S)


async def test_version_may_change_between_two_requests_of_a_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A waiting connection holds no lease, and its next request gets the new one."""
    stand = await _start(nursery, TROUBLES["none"])
    old, router = stand.router.generation, stand.router
    await ask(stand.client, BODY)
    leases = old.leases
    port = clusters_of(old).cluster_for(b"alpha").cluster.endpoints[0].port

    new = router.activate(document_of(model_of(port)), 2)
    is_unused_at_once = old.on_unused is None
    got = await ask(stand.client, BODY)

    assert (leases, is_unused_at_once) == (0, True)
    assert got.line(b"x-vsr-config-version") == b"2"
    assert await router.held(old, new) == (0, 0)


@pytest.mark.parametrize("name", TROUBLES)
async def test_trouble_over_http2_ends_as_over_http1(
    name: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As soon, with the same status, and a request behind it on the connection is served."""
    caplog.set_level(logging.CRITICAL, "vsr.gateway")
    trouble = TROUBLES[name]
    stand = await _start(nursery, trouble, TROUBLES["none"])
    client = await connect(nursery, stand.router)

    got = await client.ask(trouble.body)
    answered_at = trio.current_time()
    await trio.sleep(max(0, trouble.at_s - answered_at) + 0.001)
    held = await stand.router.held()
    after = await client.ask(BODY)

    assert (got.status, got.is_whole, got.reset) == (trouble.status, True, None)
    assert answered_at <= trouble.at_s + 0.001
    assert held == (0, 0)
    assert (after.status, after.is_whole) == (200, True)
    lines = await stand.router.log()
    assert [(line["outcome"], line["cause"]) for line in lines] == [
        (trouble.outcome, trouble.cause),
        ("succeeded", None),
    ]
