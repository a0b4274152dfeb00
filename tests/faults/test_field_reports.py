"""What went wrong in systems like this one, where no other test stands for it."""

import sys
from collections import Counter
from types import FrameType

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd
from tests.engine.stepped_backend import Act
from tests.engine.test_fallback import ERROR, FINE, HUNG
from tests.engine.test_fallback import start as start_models
from tests.engine.wired import whole
from tests.fakes.router import clusters_of
from tests.faults.moments import RecordingEngine
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    SILENT,
    STREAM,
    Play,
    Scene,
    failing,
    start_scene,
    streaming,
)
from vsr.routing.outcome import TransportFact

EJECTS = "consecutive_5xx: 1, base_ejection_time: 10s, max_ejection_percent: 50"


async def test_first_failure_stays_in_the_journal_of_a_request_that_another_model_served(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R3: the candidate's answer does not hide what happened before it."""
    models = await start_models(nursery)
    engine = RecordingEngine(models.router.generation.engine)
    models.router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest

    status, called = await models.answer(whole(503, ERROR), [Act.RESET], FINE)

    assert (status, called) == (200, ["alpha", "beta", "gamma"])
    outcome = engine.plans[0].settlement.outcome
    assert outcome is not None
    assert [(each.cluster, each.status, each.error) for each in outcome.attempts] == [
        ("alpha", 503, ""),
        ("beta", None, "upstream_reset"),
        ("gamma", 200, ""),
    ]


async def test_request_that_fell_back_is_one_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R10: one log line, one settlement; calls stand in it, each ended once."""
    models = await start_models(nursery)
    engine = RecordingEngine(models.router.generation.engine)
    models.router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest
    models.play(whole(503, ERROR), whole(502, ERROR), FINE)

    got = await models.ask()

    [plan], [line] = engine.plans, await models.router.log()
    assert plan.settlement.outcome is not None
    assert not plan.finish(plan.settlement.outcome), "settled once, and not again"
    assert (line["model"], line["attempts"], line["outcome"]) == ("gamma", 3, "succeeded")
    assert line["prompt_tokens"] is not None
    assert got.line(b"x-vsr-selected-model") == b"gamma"
    assert got.line(b"x-vsr-fallback-path") == b"alpha,beta,gamma"
    entries = engine.entries()
    ends = [entry.outcome.terminal for entry in entries if entry.outcome is not None]
    assert ends == ["failed", "failed", "succeeded"]
    assert all(entry.reservation.is_settled for entry in entries)
    used = [attempt.usage for attempt in plan.settlement.outcome.attempts]
    assert used[:2] == [None, None], "what a failed call used is unknown, not nothing"
    assert used[2] is not None
    assert sum(await models.held()) == 0


async def test_retries_leave_an_endpoint_that_was_just_ejected_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R12: first A, then only B, however much A weighs; A again after its time."""
    retries = "retry_count: 3, retry_on: 5xx, retry_back_off_base: 1ms"
    scene = await start_scene(
        nursery,
        f"{retries}, {EJECTS}",
        [failing(503), OK],
        [failing(503), failing(503), OK],
        weights=[50, 1],
    )
    await scene.ask()
    while scene.order[0] == 1:
        await trio.sleep(60)  # what was ejected is back
        scene.replay()
        await scene.ask()

    assert scene.order == [0, 1, 1, 1]
    assert scene.journal()[-1].status == 200
    await trio.sleep(5)
    scene.calls.clear()
    for _ in range(5):
        await scene.ask()
    assert set(scene.order) == {1}
    await trio.sleep(20)
    for _ in range(60):
        await scene.ask()
    assert Counter(scene.order)[0] > 40
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["buffered", "streamed"])
@pytest.mark.parametrize("is_deaf", [False, True])
async def test_backend_that_accepts_and_says_nothing_is_passed_over_in_time(
    *,
    is_deaf: bool,
    body: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report T2: the first-byte timeout ends it, and the next model answers."""
    models = await start_models(
        nursery, "enabled: true, triggers: [timeout]", alpha="first_byte_timeout: 2s"
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    models.play([head, Act.HANG] if is_deaf else HUNG, FINE)

    got = await models.router.ask(body)

    assert (got.status, got.end, trio.current_time()) == (200, AnswerEnd.WHOLE, 2)
    assert got.line(b"x-vsr-fallback-path") == b"alpha,beta"
    assert sum(await models.held()) == 0


async def test_stall_behind_a_token_frees_everything_for_the_next_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report T1: with one slot only, the call that waits behind a stall is served in time."""
    stalled: Play = (*streaming()[:1], Act.HANG)
    scene = await start_scene(nursery, "idle_timeout: 3s, max_connections: 1", [stalled, OK])
    first = await scene.begin(STREAM)
    await trio.sleep(1)

    got = await scene.ask()

    assert (got.status, trio.current_time()) == (200, 3)
    assert first.is_gone
    assert scene.journal(0)[0].stage == "idle"
    assert await scene.held() == NOTHING


async def _burst(scene: Scene, calls: int) -> list[int]:
    """Send calls at one instant; return how many each backend got."""
    async with trio.open_nursery() as clients:
        for _ in range(calls):
            clients.start_soon(scene.ask)
    found = Counter(scene.order)
    return [found[number] for number in range(len(scene.backends))]


@pytest.mark.parametrize("policy", ["least_request", "p2c_ewma"])
async def test_load_counts_from_the_pick_on(
    policy: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O5: heads are slow, and still a burst does not go to one endpoint."""
    slow: Play = (5.0, *OK)
    scene = await start_scene(nursery, f"lb_policy: {policy}", [slow], [slow], [slow])

    shares = await _burst(scene, 90)

    assert sum(shares) == 90
    assert max(shares) - min(shares) <= 6
    assert await scene.held() == NOTHING


async def test_health_checks_cost_no_tokens(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O4: ten idle minutes, and no backend was asked for anything but its health."""
    checks = "health_check_path: /health, health_check_interval: 1s"
    scene = await start_scene(nursery, checks, [OK], [failing(500)], health=[OK, failing(503)])

    await trio.sleep(600)

    assert scene.calls == []
    asked = [check.head.target for each in scene.backends for check in each.checks]
    assert len(asked) >= 20
    assert set(asked) == {b"/health"}
    assert {len(check.body) for each in scene.backends for check in each.checks} == {0}


async def test_rest_of_a_cancelled_spike_does_not_linger(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report T3: many wait in line and go; the next calls are all served, at once."""
    limits = "max_connections: 4, max_pending: 200, max_requests: 1000"
    scene = await start_scene(nursery, limits, [*[SILENT] * 4, OK])
    clients = [await scene.begin(STREAM) for _ in range(100)]
    held = await scene.held()
    assert (held["active"], held["waiting"]) == (4, 96)

    for client in clients:
        client.close()

    assert await scene.held() == NOTHING
    answers = [(await scene.ask()).status for _ in range(20)]
    assert (answers, trio.current_time()) == ([200] * 20, 0)
    assert len(scene.calls) == 24
    facts = {attempt.fact for number in range(100) for attempt in scene.journal(number)}
    assert facts == {TransportFact.REQUEST_WRITTEN}
    assert clusters_of(scene.generations[0]).idle_connections == 1


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ((Act.CLOSE,), b"connection closed inside the response body"),
        ((Act.RESET,), b"connection reset inside the response body"),
    ],
    ids=["closed", "reset"],
)
async def test_answer_that_is_shorter_than_declared_says_so(
    rest: Play, reason: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report X6: a 502 that tells what is wrong, and the connection is not used again."""
    short: Play = (reply(200, b"{}").replace(b"content-length: 2", b"content-length: 3"), 0.1)
    scene = await start_scene(nursery, "", [(*short, *rest), OK])

    got = await scene.ask()

    assert (got.status, reason in got.body) == (502, True)
    assert (await scene.ask()).status == 200
    assert scene.backends[0].accepted == 2
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("gap_s", [0.0, 0.1], ids=["at once", "later"])
async def test_answer_that_is_longer_than_declared_spoils_no_other(
    gap_s: float, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report X6: what is declared is the answer; what follows is nobody's."""
    surplus = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nforeign"
    long: Play = (reply(200, b"{}"), gap_s, surplus) if gap_s else (reply(200, b"{}") + surplus,)
    scene = await start_scene(nursery, "", [long, OK])

    got = await scene.ask()
    await trio.sleep(1)

    assert (got.status, got.body) == (200, b"{}")
    assert (await scene.ask()).body == b"{}"
    assert scene.backends[0].accepted == 2
    assert await scene.held() == NOTHING


async def _calls_made(scene: Scene, *, at_once: int, rounds: int) -> float:
    """Return the Python calls that a request takes, on average."""
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        del frame, argument
        made += event == "call"

    sys.setprofile(count)
    try:
        for _ in range(rounds):
            async with trio.open_nursery() as clients:
                for _ in range(at_once):
                    clients.start_soon(scene.ask)
    finally:
        sys.setprofile(None)
    return made / at_once / rounds


async def test_request_costs_the_same_among_many(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report L2: nothing looks through all connections, or all who wait for one."""
    scene = await start_scene(nursery, "max_connections: 50", [(0.1, *OK)])
    await _burst(scene, 100)

    alone = await _calls_made(scene, at_once=1, rounds=20)
    among_many = await _calls_made(scene, at_once=200, rounds=1)

    assert among_many < 1.3 * alone
