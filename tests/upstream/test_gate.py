"""The circuit breaker through the whole Router: who waits, who is served next, who is refused."""

from contextlib import suppress
from itertools import count

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, chat_body
from tests.demo.raw_client import ask as ask_on
from tests.faults.test_every_step import AfterStep
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    SILENT,
    STREAM,
    failing,
    start_scene,
    streaming,
)
from vsr.errors import UpstreamOverflow
from vsr.network.memory import Fault as NetworkFault
from vsr.network.memory import MemoryConnection
from vsr.network.port import ConnectionBroken
from vsr.resources.reliability import BreakerLimits
from vsr.upstream.gate import Gate
from vsr.upstream.policy.breaker import Breaker

OVERFLOW = b"upstream connect error or disconnect/reset before headers. reset reason: overflow"


async def test_waiters_are_served_in_the_order_of_their_arrival(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One at a time; a newcomer does not overtake in the gap between two."""
    scene = await start_scene(nursery, "max_connections: 1", [(1.0, *OK)])
    done: list[int] = []

    async def one(number: int) -> None:
        await trio.sleep(number / 10)
        assert (await scene.ask(chat_body(f"call {number}", model="auto"))).status == 200
        done.append(number)

    async with trio.open_nursery() as clients:
        for number in range(8):
            clients.start_soon(one, number)
        # Comes in the instant in which the first slot is given back.
        clients.start_soon(one, 10)

    assert done == [*range(8), 10]
    asked = [call.body.partition(b"call ")[2].partition(b'"')[0] for call in scene.calls]
    assert asked == [b"%d" % each for each in done]
    assert scene.times == pytest.approx([*range(9)])
    assert await scene.held() == NOTHING


async def test_overflow_is_a_local_reply_that_says_so(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever finds the line full is told at once; those in line are served."""
    scene = await start_scene(nursery, "max_connections: 1, max_pending: 2", [(5.0, *OK)])
    for _ in range(3):
        nursery.start_soon(scene.ask)
    await trio.sleep(1)
    assert (await scene.held())["waiting"] == 2

    got = await scene.ask()

    assert trio.current_time() == 1
    assert (got.status, got.end, got.body) == (503, AnswerEnd.WHOLE, OVERFLOW)
    assert got.line(b"x-envoy-overloaded") == b"true"
    assert got.line(b"content-type") == b"text/plain"
    [line] = await scene.router.log()
    assert (line["response_flags"], line["outcome"], line["attempts"]) == ("UO", "failed", 0)
    await trio.sleep(15)
    assert len(scene.calls) == 3
    assert [each["response_code"] for each in await scene.router.log()] == [503, 200, 200, 200]


async def test_attempts_beyond_max_requests_do_not_even_wait(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The limit of what runs comes before the line."""
    settings = "max_connections: 2, max_requests: 2, max_pending: 100"
    scene = await start_scene(nursery, settings, [SILENT])
    for _ in range(2):
        nursery.start_soon(scene.ask)
    await trio.sleep(1)

    got = await scene.ask()

    assert (got.status, got.body) == (503, OVERFLOW)
    assert len(scene.calls) == 2


async def test_waiter_is_served_when_a_streamed_body_ends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not at its head: the slot is the whole answer's."""
    scene = await start_scene(nursery, "max_connections: 1", [streaming(3.0, 4.0), OK])
    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)

    got = await scene.ask()

    assert got.status == 200
    assert scene.times == [0, pytest.approx(7)]


def door(reliability: str) -> str:
    """Return an entrypoint `door` with settings of its own, as lines of a document."""
    decision = "{name: d, modelRefs: [{model: alpha}]}"
    entry = f"{{model_names: [door], recipe: r, reliability: {{{reliability}}}}}"
    return f"recipes: [{{name: r, routing: {{decisions: [{decision}]}}}}]\nentrypoints: [{entry}]"


async def test_total_timeout_ends_the_wait_for_a_slot(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A 504 at that moment; the place in line is given up, and nothing was sent."""
    more = door("total_timeout: 4s, retry_count: 3, retry_on: 5xx")
    plays = [streaming(30.0), OK]
    scene = await start_scene(nursery, "max_connections: 1", plays, more=more)
    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)

    got = await scene.ask(chat_body(model="door"))

    assert (got.status, got.body) == (504, b"upstream request timeout")
    assert trio.current_time() == pytest.approx(5)
    held = await scene.held()
    assert (held["waiting"], held["active"], held["leases"]) == (0, 1, 1)
    [line] = await scene.router.log()
    assert (line["response_flags"], line["outcome"], line["attempts"]) == ("UT", "timed_out", 0)
    assert (await scene.ask()).status == 200
    assert len(scene.calls) == 2


async def test_wait_for_a_slot_is_no_part_of_the_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The time for one try begins when its endpoint is chosen."""
    settings = "max_connections: 1, per_try_timeout: 2s"
    scene = await start_scene(nursery, settings, [streaming(9.0), (1.5, *OK)])
    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)

    got = await scene.ask()

    assert got.status == 200
    assert trio.current_time() == pytest.approx(10.5)
    [attempt] = scene.journal()
    assert attempt.started_at == pytest.approx(9)


async def test_slot_of_a_short_answer_is_free_before_a_slow_client_has_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend is done; that its client does not read keeps nobody waiting."""
    large = reply(200, b"x" * 200_000)
    scene = await start_scene(nursery, "max_connections: 1", [(large,), OK])
    slow = await scene.begin()
    await trio.sleep(1)

    got = await scene.ask()

    assert (got.status, trio.current_time()) == (200, 1)
    slow.close()


async def test_failed_attempt_gives_its_slot_to_a_waiter(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """While its call waits to try again, which is behind the waiter then."""
    later = failing(503, (b"retry-after", b"3"))
    settings = "max_connections: 1, retry_count: 1, retry_on: 5xx, retry_after_max: 9s"
    scene = await start_scene(nursery, settings, [(1.0, *later), streaming(30.0), OK])
    first, second = chat_body("first", model="auto"), chat_body("second", model="auto", stream=True)
    nursery.start_soon(scene.ask, first)
    await trio.sleep(0.5)
    nursery.start_soon(scene.ask, second)
    await trio.sleep(60)

    assert [b"first" in call.body for call in scene.calls] == [True, False, True]
    assert scene.times == [0, pytest.approx(1), pytest.approx(31)]
    assert await scene.held() == NOTHING


async def test_overflow_of_a_retry_says_that_it_was_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Text and header are those of any last failure of several."""
    later = failing(503, (b"retry-after", b"3"))
    settings = (
        "max_connections: 1, max_pending: 1, retry_count: 1, retry_on: 5xx, retry_after_max: 9s"
    )
    scene = await start_scene(nursery, settings, [later, SILENT])
    answers: list[Got] = []

    async def first() -> None:
        answers.append(await scene.ask())

    nursery.start_soon(first)
    await trio.sleep(1)
    for _ in range(2):
        nursery.start_soon(scene.ask)
    await trio.sleep(9)

    [got] = answers
    retried = OVERFLOW.replace(b"reset reason", b"retried and the latest reset reason")
    assert (got.status, got.body) == (503, retried)
    assert got.line(b"x-envoy-overloaded") == b"true"
    assert got.line(b"x-should-retry") == b"false"
    assert (await scene.held())["slots"] == 0


async def test_connection_that_fails_gives_its_slot_to_a_waiter(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At its timeout, one after another."""
    settings = "max_connections: 1, connect_timeout: 2s"
    scene = await start_scene(nursery, settings, [OK])
    scene.network.faults["b0.test"] = NetworkFault.SILENT
    for _ in range(3):
        nursery.start_soon(scene.ask)

    await trio.sleep(10)

    lines = await scene.router.log()
    assert [line["duration_ms"] for line in lines] == pytest.approx([2000, 4000, 6000])
    assert {line["response_flags"] for line in lines} == {"UF"}
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("leaves_first", [False, True])
async def test_slot_that_comes_as_its_waiter_gives_up_is_passed_on(
    leaves_first: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In one instant, in either order: the next one has it."""
    gate = Gate(Breaker(BreakerLimits(max_connections=1)))
    await gate.enter()
    scopes = [trio.CancelScope(), trio.CancelScope()]
    entered: list[int] = []

    async def wait(number: int) -> None:
        with scopes[number]:
            await gate.enter()
            entered.append(number)

    for number in range(2):
        nursery.start_soon(wait, number)
        await trio.testing.wait_all_tasks_blocked()

    steps = [gate.leave, scopes[0].cancel]
    for step in reversed(steps) if leaves_first else steps:
        step()
    await trio.testing.wait_all_tasks_blocked()

    assert entered == [1]
    assert (gate.breaker.active, gate.breaker.waiting) == (1, 0)
    gate.leave()
    assert gate.breaker.active == 0
    assert gate._waiters == {}


async def test_refused_caller_leaves_nothing_behind(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The line is as long as before."""
    gate = Gate(Breaker(BreakerLimits(max_connections=1, max_requests=1)))
    await gate.enter()

    with pytest.raises(UpstreamOverflow):
        await gate.enter()

    assert (gate.breaker.active, gate.breaker.waiting) == (1, 0)


async def _leave_line_behind_step(step: int) -> bool:
    """Let the first of two waiters leave behind a step; return whether it got that far."""
    async with trio.open_nursery() as nursery:
        scene = await start_scene(nursery, "max_connections: 1", [(0.1, *OK)])
        holder, waiter, last = [await scene.router.connect() for _ in range(3)]
        await trio.testing.wait_all_tasks_blocked()
        instrument = AfterStep(step, waiter.abort)
        answers: list[Got] = []

        async def ask(client: MemoryConnection) -> None:
            with suppress(ConnectionBroken):
                answers.append(await ask_on(client, BODY))

        nursery.start_soon(ask, holder)
        await trio.sleep(0.01)
        trio.lowlevel.add_instrument(instrument)
        nursery.start_soon(ask, waiter)
        await trio.sleep(0.01)
        nursery.start_soon(ask, last)
        await trio.sleep(1)
        trio.lowlevel.remove_instrument(instrument)

        assert sum(got.status == 200 for got in answers) >= 2
        assert await scene.held() == NOTHING
        nursery.cancel_scope.cancel()
    return instrument.count >= step


def test_waiter_may_leave_behind_any_step() -> None:
    """Nobody behind it is forgotten, and no slot is lost."""
    for step in count(1):
        lived = False
        for _ in range(3):
            clock = trio.testing.MockClock(autojump_threshold=0)
            lived |= trio.run(_leave_line_behind_step, step, clock=clock)
        if not lived:
            assert step > 10
            return
