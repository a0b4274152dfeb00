"""Drain of HTTP/2 connections: told ahead, nothing under way is lost, and it ends."""

import pytest
import trio
import trio.testing
from hyperframe.frame import GoAwayFrame

from tests.gateway.h2_running import STREAM, WHOLE, connect, start
from vsr.demo.script import Script
from vsr.gateway.h2_connection import DRAIN_ANSWER_S
from vsr.gateway.serve import DRAIN_GRACE_S
from vsr.http.h2_frames import ErrorCode

LAST_STREAM = 2**31 - 1


async def test_streams_under_way_finish(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """All of them, whole; then the drain ends at once, not at its limit."""
    router, _ = await start(nursery, Script(chunks=20, chunk_interval_s=1))
    client = await connect(nursery, router)
    answers = [await client.request(STREAM) for _ in range(20)]
    await trio.sleep(5)

    await router.router.server.drain()

    assert 20 < trio.current_time() < DRAIN_GRACE_S
    await trio.testing.wait_all_tasks_blocked()
    assert all(answer.is_whole for answer in answers)
    assert all(answer.body.endswith(b"data: [DONE]\n\n") for answer in answers)
    assert client.goaways == [(LAST_STREAM, ErrorCode.NO_ERROR), (39, ErrorCode.NO_ERROR)]
    assert client.closed.is_set()
    assert await router.held() == (0, 0)
    assert {line["outcome"] for line in await router.log()} == {"succeeded"}


async def test_request_that_crosses_with_the_drain_is_served_and_a_later_one_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Until the client tells that it knows; refused streams may be repeated elsewhere."""
    router, _ = await start(nursery, Script(latency_s=5))
    client = await connect(nursery, router)
    await client.request(WHOLE)
    await trio.testing.wait_all_tasks_blocked()
    server = router.router.server
    nursery.start_soon(server.drain)
    crossing = await client.request(WHOLE)
    await trio.testing.wait_all_tasks_blocked()

    late = await client.request(WHOLE)
    await late.done.wait()
    await client.closed.wait()

    assert late.reset == ErrorCode.REFUSED_STREAM
    assert crossing.is_whole
    assert trio.current_time() == pytest.approx(5)


@pytest.mark.parametrize("answers", [True, False])
async def test_idle_connection_is_closed(
    *, answers: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once if the client answers, soon if it does not."""
    router, _ = await start(nursery)
    client = await connect(nursery, router, answers=answers)
    await client.ask(WHOLE)

    await router.router.server.drain()

    assert trio.current_time() == pytest.approx(0 if answers else DRAIN_ANSWER_S)
    await trio.testing.wait_all_tasks_blocked()
    assert client.goaways[-1] == (1, ErrorCode.NO_ERROR)
    assert client.closed.is_set()


async def test_connection_that_has_said_nothing_is_closed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody knows yet what it would speak."""
    router, _ = await start(nursery)
    connection = await router.connect()
    await trio.testing.wait_all_tasks_blocked()

    await router.router.server.drain()

    assert trio.current_time() == 0
    assert connection.is_gone


async def test_drain_that_runs_out_of_patience_ends_streams(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that never answers and a client that never reads are cut off."""
    router, _ = await start(nursery, Script(latency_s=1000), reliability="{total_timeout: 0s}")
    client = await connect(nursery, router)
    answer = await client.request(WHOLE)
    await trio.sleep(1)

    await router.router.server.drain()
    await client.closed.wait()

    assert trio.current_time() == pytest.approx(1 + DRAIN_GRACE_S)
    assert not answer.is_whole
    assert await router.held() == (0, 0)
    (line,) = await router.log()
    assert (line["outcome"], line["cause"]) == ("cancelled", "drain")


async def test_client_that_leaves_politely_gets_its_answers(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its GOAWAY says that it opens no more; then the connection is closed."""
    router, _ = await start(nursery, Script(latency_s=5))
    client = await connect(nursery, router)
    answer = await client.request(WHOLE)

    await client.send(GoAwayFrame(0, last_stream_id=0, error_code=0))
    await client.closed.wait()

    assert answer.is_whole
    assert trio.current_time() == pytest.approx(5)
    assert router.router.server.open_connections == 0
