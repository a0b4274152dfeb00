"""What bounds the attempts of a call: time, of one and of all, and room for retries."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, chat_body
from tests.engine.stepped_backend import EVENT_STREAM, Act
from tests.fakes.backend import start_backend
from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.scenes import (
    BODY,
    END_OF_STREAM,
    NOTHING,
    OK,
    RESET,
    SILENT,
    STREAM,
    Play,
    Scene,
    event,
    failing,
    start_scene,
    streaming,
)
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.network.memory import Fault as NetworkFault
from vsr.network.memory import MemoryNetwork
from vsr.routing.outcome import TransportFact

RETRIES = "retry_on: 5xx, retry_count: "
STOP = b"x-should-retry"
TIMED_OUT = b"upstream request timeout"


async def test_total_timeout_bounds_all_attempts_together(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Attempts that are cut off one after another end with it in a 504."""
    settings = RETRIES + "5, per_try_timeout: 1s, total_timeout: 3500ms"
    scene = await start_scene(nursery, settings, [SILENT], [SILENT])

    got = await scene.ask()

    assert (got.status, got.body) == (504, TIMED_OUT)
    assert trio.current_time() == pytest.approx(3.5)
    assert len(scene.calls) == 4
    assert [attempt.stage for attempt in scene.journal()] == ["per_try"] * 3 + ["total"]
    [line] = await scene.router.log()
    assert (line["response_flags"], line["attempts"]) == ("UT", 4)
    assert await scene.held() == NOTHING


async def test_no_attempt_begins_behind_the_total_timeout(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A wait that would end behind it is not begun: the client has the last answer at once."""
    settings = RETRIES + "5, retry_back_off_base: 1s, total_timeout: 2s"
    scene = await start_scene(nursery, settings, [failing(503)])

    for _ in range(40):
        begun_at, before = trio.current_time(), len(scene.calls)
        got = await scene.ask()

        calls = scene.times[before:]
        assert got.status == 503
        assert 1 <= len(calls) <= 6
        assert trio.current_time() == pytest.approx(calls[-1])
        assert calls[-1] < begun_at + 2
    counts = {len(scene.journal(at)) for at in range(40)}
    assert len(counts) > 1
    assert min(counts) < 6


@pytest.mark.parametrize(
    ("value", "bound", "shortest", "longest"),
    [
        (b"2", "retry_after_max: 2s", 2, 3),
        (b"3", "retry_after_max: 2s", 0, 0.025),
        (b"2", "retry_back_off_base: 25ms", 0, 0.025),
        (b"Wed, 21 Oct 2026 07:28:00 GMT", "retry_after_max: 9s", 0, 0.025),
    ],
    ids=["at the bound", "above it", "no bound", "a date"],
)
async def test_retry_after_is_obeyed_up_to_its_bound(
    value: bytes,
    bound: str,
    shortest: float,
    longest: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Never less than asked for, less than half of it more; otherwise the back-off decides."""
    plays = [failing(503, (b"retry-after", value)), OK] * 20
    scene = await start_scene(nursery, f"{RETRIES}1, {bound}", plays)

    for _ in range(20):
        assert (await scene.ask()).status == 200

    waits = [scene.times[at + 1] - scene.times[at] for at in range(0, 40, 2)]
    assert all(shortest - 1e-9 <= wait < longest for wait in waits)
    assert len(set(waits)) > 1


async def test_retry_after_beyond_the_total_timeout_is_not_waited_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The client gets the answer that asks for it, at once."""
    settings = RETRIES + "1, retry_after_max: 60s, total_timeout: 5s"
    scene = await start_scene(nursery, settings, [failing(503, (b"retry-after", b"30"))])

    got = await scene.ask()

    assert (got.status, got.line(b"retry-after")) == (503, b"30")
    assert (trio.current_time(), len(scene.calls)) == (0, 1)
    assert got.line(STOP) == b""


def silent_connect(scene: Scene) -> None:
    """Let the first backend not even accept."""
    scene.network.faults["b0.test"] = NetworkFault.SILENT


def no_reading(scene: Scene) -> None:
    """Let the first backend accept and never read."""
    scene.backends[0].reads = False


def nothing_else(scene: Scene) -> None:
    """Leave it to the play."""


STAGES = {
    "connecting": (silent_connect, TransportFact.NOT_CONNECTED),
    "writing": (no_reading, TransportFact.REQUEST_PARTLY_WRITTEN),
    "waiting": (nothing_else, TransportFact.REQUEST_WRITTEN),
}


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("stage", STAGES)
async def test_per_try_timeout_covers_everything_up_to_the_head(
    stage: str, retries: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The attempt is cut off there and then, its connection closed; the next one is whole."""
    arrange, fact = STAGES[stage]
    settings = f"retry_on: reset, retry_count: {retries}, per_try_timeout: 2s"
    scene = await start_scene(nursery, settings, [SILENT], [OK])
    arrange(scene)

    got = await scene.ask(chat_body("x" * 1_000_000, model="auto"))

    assert trio.current_time() == pytest.approx(2, abs=0.03)
    assert (got.status, got.body) == ((200, b"{}") if retries else (504, TIMED_OUT))
    first, *rest = scene.journal()
    assert (first.error, first.stage, first.fact) == ("deadline_exceeded", "per_try", fact)
    assert first.ended_at == pytest.approx(2)
    assert first.is_known_zero == (stage == "connecting")
    assert [attempt.status for attempt in rest] == [200] * retries
    assert scene.backends[0].gone_at == [pytest.approx(2)] * (stage != "connecting")
    assert await scene.held() == NOTHING


async def test_per_try_timeout_ends_with_the_head(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The body may take longer."""
    settings = "retry_on: reset, retry_count: 1, per_try_timeout: 2s"
    scene = await start_scene(nursery, settings, [(1.9, *streaming(3.0, 3.0))], [OK])

    got = await scene.ask(STREAM)

    assert (got.status, got.end, len(scene.calls)) == (200, AnswerEnd.WHOLE, 1)
    assert trio.current_time() == pytest.approx(7.9)


async def test_per_try_timeout_covers_the_first_byte_that_is_waited_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Though the head is there, it is not the client's yet."""
    settings = "retry_on: reset, retry_count: 1, per_try_timeout: 2s, first_byte_timeout: 5s"
    scene = await start_scene(nursery, settings, [(EVENT_STREAM, Act.HANG)], [streaming()])

    got = await scene.ask(STREAM)

    assert (got.status, got.end) == (200, AnswerEnd.WHOLE)
    assert scene.times == [0, pytest.approx(2, abs=0.03)]
    assert scene.journal()[0].stage == "per_try"


async def test_total_timeout_goes_before_that_of_one_try(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where both pass in one instant the call is over."""
    settings = "retry_on: reset, retry_count: 5, per_try_timeout: 2s, total_timeout: 2s"
    scene = await start_scene(nursery, settings, [SILENT])

    for _ in range(8):
        assert (await scene.ask()).status == 504

    assert trio.current_time() == pytest.approx(16)
    assert len(scene.calls) == 8
    assert {scene.journal(at)[0].stage for at in range(8)} == {"total"}


@pytest.mark.parametrize(
    ("play", "fact"),
    [
        (SILENT, TransportFact.REQUEST_WRITTEN),
        ((EVENT_STREAM, Act.HANG), TransportFact.HEAD_RECEIVED),
        ((1.0, EVENT_STREAM, 1.5, event("late")), TransportFact.HEAD_RECEIVED),
    ],
    ids=["no head", "a head alone", "a late first byte"],
)
async def test_first_byte_timeout_lasts_to_the_first_byte_of_the_body(
    play: Play,
    fact: TransportFact,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A head that is there already reaches no client: the attempt is repeated elsewhere."""
    settings = "retry_on: reset, retry_count: 1, first_byte_timeout: 2s"
    scene = await start_scene(nursery, settings, [play], [streaming()])

    got = await scene.ask(STREAM)

    assert (got.status, got.end) == (200, AnswerEnd.WHOLE)
    assert b"late" not in got.body
    assert scene.times == [0, pytest.approx(2, abs=0.03)]
    first, second = scene.journal()
    assert (first.stage, first.fact, first.status) == ("first_byte", fact, None)
    assert second.status == 200
    assert scene.backends[0].gone_at == [pytest.approx(2)]


IN_TIME: Play = (1.0, EVENT_STREAM, 0.9, event("first"), END_OF_STREAM)


@pytest.mark.parametrize(
    ("play", "at"),
    [(streaming(5.0), 5), (IN_TIME, 1.9), ((1.9, *OK), 1.9)],
    ids=["slow later", "in time", "whole at once"],
)
async def test_first_byte_timeout_ends_with_the_first_byte(
    play: Play, at: float, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What comes behind it may take its time."""
    settings = "retry_on: reset, retry_count: 1, first_byte_timeout: 2s"
    scene = await start_scene(nursery, settings, [play], [OK])

    got = await scene.ask(STREAM)

    assert (got.status, got.end, len(scene.calls)) == (200, AnswerEnd.WHOLE, 1)
    assert trio.current_time() == pytest.approx(at)


async def test_first_byte_timeout_begins_when_the_request_is_written(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Connecting, which may be slow, is not its business."""
    settings = "first_byte_timeout: 2s, connect_timeout: 5s"
    scene = await start_scene(nursery, settings, [OK])
    silent_connect(scene)

    got = await scene.ask()

    assert got.status == 503
    assert got.body.endswith(b"reset reason: connection timeout")
    assert trio.current_time() == pytest.approx(5)


async def ask_at_once(scene: Scene, count: int, body: bytes = BODY) -> list[Got]:
    """Send requests at once; return the answers in the order in which they came."""
    answers: list[Got] = []

    async def one() -> None:
        answers.append(await scene.ask(body))

    async with trio.open_nursery() as clients:
        for _ in range(count):
            clients.start_soon(one)
    return answers


ASKED_TO_WAIT = failing(503, (b"retry-after", b"1"))
"""So that all who may try again wait for at least a second."""


@pytest.mark.parametrize("limit", [0, 1, 3, 4])
async def test_retries_of_a_model_that_run_at_once_are_limited(
    limit: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Of four failing calls, those that find no slot end at once, with what they have."""
    settings = f"{RETRIES}1, retry_after_max: 1s, max_retries: {limit}"
    scene = await start_scene(nursery, settings, [ASKED_TO_WAIT])

    clients = [await scene.begin() for _ in range(4)]
    await trio.sleep(0.4)
    held = await scene.held()
    for client in clients:
        client.close()

    assert held == {**NOTHING, "slots": limit, "leases": limit}
    assert len(scene.calls) == 4
    assert await scene.held() == NOTHING


async def test_call_without_a_retry_slot_ends_with_what_it_has(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The fourth of four; its client is not told to stop, for nothing was repeated for it."""
    settings = f"{RETRIES}1, retry_after_max: 1s, max_retries: 3"
    scene = await start_scene(nursery, settings, [ASKED_TO_WAIT])

    answers = await ask_at_once(scene, 4)

    assert [got.status for got in answers] == [503] * 4
    assert [got.line(STOP) for got in answers] == [b"", b"false", b"false", b"false"]
    assert len(scene.calls) == 7
    assert sorted(line["attempts"] for line in await scene.router.log()) == [1, 2, 2, 2]
    assert await scene.held() == NOTHING


async def test_retry_slot_is_free_again_at_the_head_of_the_repeated_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A long answer does not keep others from trying again."""
    settings = RETRIES + "1, max_retries: 1"
    plays = [RESET, streaming(*[1.0] * 60), RESET, OK]
    scene = await start_scene(nursery, settings, plays)

    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(5)
    got = await scene.ask()

    assert (got.status, len(scene.calls)) == (200, 4)


@pytest.mark.parametrize(
    ("percent", "least", "repeated"),
    [(0, 1, 1), (0, 0, 0), (100, 0, 4), (25, 0, 2), (25, 3, 3)],
)
async def test_retry_budget_is_a_share_of_the_calls_under_way(
    percent: int,
    least: int,
    repeated: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Four failing calls beside eight streams; the budget takes the place of `max_retries`."""
    budget = f"retry_budget_percent: {percent}, retry_budget_min_concurrency: {least}"
    settings = f"{RETRIES}1, retry_after_max: 1s, max_retries: 0, {budget}"
    scene = await start_scene(nursery, settings, [*[streaming(60.0)] * 8, ASKED_TO_WAIT])
    for _ in range(8):
        nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)

    await ask_at_once(scene, 4)

    assert len(scene.calls) == 8 + 4 + repeated
    assert (await scene.held())["slots"] == 0


@pytest.mark.parametrize(("count", "told"), [(0, b""), (2, b"false")])
async def test_total_timeout_behind_several_attempts_ends_all_retries(
    count: int,
    told: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Official clients repeat a 504; what was repeated already they leave alone."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(fault=Fault.SILENCE))
    reliability = f"{{retry_count: {count}, retry_on: 5xx, per_try_timeout: 3s, total_timeout: 5s}}"
    if not count:
        reliability = "{total_timeout: 5s}"
    document = document_of(model_of(backend.port, reliability=reliability))
    router = await start_router(nursery, network, document)

    got = await router.ask(chat_body(model="auto"))

    assert (got.status, trio.current_time()) == (504, 5)
    assert got.line(b"x-should-retry") == told
