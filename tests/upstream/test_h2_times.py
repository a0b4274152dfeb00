"""Silence over HTTP/2: timeouts, dead connections, and what was written by then."""

import pytest
import trio
import trio.testing

from tests.fakes.h2_backend import (
    EVENT,
    OK,
    STREAM_HEAD,
    Act,
    Head,
    Play,
    Reset,
)
from tests.upstream.h2_scene import BODY, NOTHING, STREAM, start_h2_scene
from vsr.routing.outcome import TransportFact

WRITTEN = TransportFact.REQUEST_WRITTEN
TIMEOUTS = "total_timeout: 50s, idle_timeout: 7s, per_try_timeout: 20s, first_byte_timeout: 9s"


@pytest.mark.parametrize(
    ("play", "body", "at", "status"),
    [
        ((Act.HANG,), BODY, 9, 504),
        ((STREAM_HEAD, 8.0, EVENT, Act.HANG), STREAM, 15, 200),
        ((STREAM_HEAD, Act.HANG), STREAM, 9, 504),
        ((STREAM_HEAD, EVENT, *[6.0, EVENT] * 20), STREAM, 50, 200),
        ((Head(103), 5.0, Head(103), 5.0, OK[0]), BODY, 9, 504),
    ],
    ids=["silent", "idle", "first byte", "total", "informational"],
)
async def test_timeouts_are_those_of_http_1(
    play: Play,
    body: bytes,
    at: float,
    status: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The stream is reset at that instant; the connection stays with the backend's others."""
    scene = await start_h2_scene(nursery, play, reliability=TIMEOUTS)

    got = await scene.ask(body)
    await trio.testing.wait_all_tasks_blocked()

    assert got.status == status
    assert trio.current_time() == pytest.approx(at)
    [call] = scene.backend.calls
    assert call.reset == 8
    assert call.reset_at == pytest.approx(at)
    assert scene.backend.open_sessions == 1
    assert await scene.held() == NOTHING


async def test_per_try_timeout_is_retried_on_the_same_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A slow call says nothing against the connection, which answers pings."""
    scene = await start_h2_scene(
        nursery, (Act.HANG,), OK, reliability="per_try_timeout: 5s, retry_count: 1, retry_on: 5xx"
    )

    got = await scene.ask()
    await trio.sleep(10)
    again = await scene.ask()

    assert (got.status, again.status) == (200, 200)
    assert len(scene.backend.sessions) == 1
    assert scene.session.pings == 1


async def test_connection_that_does_not_answer_a_ping_gets_no_more_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend whose host is gone without a word would swallow every call otherwise."""
    scene = await start_h2_scene(nursery, (Act.HANG,), OK, reliability="total_timeout: 5s")
    other = await scene.begin()
    lost = scene.session
    lost.h2.receive_data = lambda _: []  # type: ignore[method-assign, assignment]  # is deaf now
    client = await scene.begin()
    await trio.sleep(3)
    client.close()
    await trio.sleep(1)
    at_once = await scene.begin()
    early = len(scene.backend.sessions)

    await trio.sleep(1.5)
    got = await scene.ask()
    await other.receive()
    await at_once.receive()

    assert (early, got.status, len(scene.backend.sessions)) == (1, 200, 2)
    assert await scene.held() == NOTHING
    assert lost.is_closed


async def test_dead_connection_without_streams_is_closed_by_the_next_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It would stay for ever otherwise."""
    scene = await start_h2_scene(nursery, (Act.HANG,), OK)
    client = await scene.begin()
    lost = scene.session
    lost.h2.receive_data = lambda _: []  # type: ignore[method-assign, assignment]  # is deaf now
    client.close()
    await trio.sleep(3)

    got = await scene.ask()
    await scene.held()

    assert (got.status, len(scene.backend.sessions), lost.is_closed) == (200, 2, True)


LARGE = b'{"x":"%b"}' % (b"y" * 200_000)


@pytest.mark.parametrize(("reads", "fact"), [(False, 2), (True, WRITTEN)])
async def test_reset_says_how_much_of_the_request_was_written(
    reads: bool,  # noqa: FBT001  # a column
    fact: TransportFact,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A part, where windows kept the rest back: retries by `reset-before-request` look at it."""
    scene = await start_h2_scene(
        nursery,
        (1.0, Reset(2)),
        OK,
        is_early=True,
        gives_credit=reads,
        reliability="retry_count: 1, retry_on: reset-before-request",
    )

    attempts = await scene.failing(LARGE)

    assert attempts[0].fact == fact
    assert len(attempts) == (1 if reads else 2)


async def test_first_byte_timeout_begins_with_the_written_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not while the backend takes its time to read."""
    scene = await start_h2_scene(
        nursery, (Act.HANG,), gives_credit=False, reliability="first_byte_timeout: 4s"
    )
    ended: list[float] = []

    async def call() -> None:
        await scene.failing(LARGE)
        ended.append(trio.current_time())

    nursery.start_soon(call)
    await trio.sleep(10)
    scene.session.h2.increment_flow_control_window(1_000_000)
    scene.session.h2.increment_flow_control_window(1_000_000, 1)
    await scene.session.flush()
    await trio.sleep(10)

    assert ended == pytest.approx([14])
