"""A drain on sockets, in this process, with a grace short enough to wait for."""

import pytest
import trio
import trio.testing

from tests.e2e.standalone import start_standalone, until
from tests.e2e.wire import BrokenAnswer, chat, connect, post
from vsr.demo.script import Script
from vsr.demo.server import CallEnd

PATIENCE_S = 10
GRACE_S = 0.3
FORCED_S = 2.5
"""What ending by force may take on top."""


async def test_drain_waits_for_a_stream_and_no_longer(nursery: trio.Nursery) -> None:
    """It is over as soon as the last stream is whole, long before its grace."""
    served = await start_standalone(nursery, Script(chunks=20, chunk_interval_s=0.02))

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(post(chat(stream=True)))
        await client.first_byte()
        nursery.start_soon(served.router.server.drain)
        answer = await client.answer()
        rest = await client.rest()
        await until(lambda: served.router.server.open_connections == 0)

    assert answer is not None
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert rest == b""


async def test_drain_cuts_off_what_outlasts_its_grace(nursery: trio.Nursery) -> None:
    """The client sees a broken stream, and the backend's call ends, too."""
    served = await start_standalone(nursery, Script(chunks=10_000, chunk_interval_s=0.01))

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(post(chat(stream=True)))
        await client.first_byte()
        nursery.start_soon(served.router.server.drain, GRACE_S)
        with pytest.raises(BrokenAnswer):
            await client.answer()
        await until(lambda: served.small.calls[0].end is not None)

    assert served.small.calls[0].end is CallEnd.PEER_GONE
    lines = await served.log_lines()
    assert [(line["outcome"], line["cause"]) for line in lines] == [("cancelled", "drain")]


async def test_drain_is_bounded_with_a_client_that_never_reads(nursery: trio.Nursery) -> None:
    """A write that nobody takes does not hold the process up."""
    served = await start_standalone(nursery, Script(chunks=100_000, piece_bytes=1000))

    with trio.fail_after(PATIENCE_S):
        with await connect(served.port, receive_buffer_bytes=4096) as client:
            await client.send(post(chat(stream=True)))
            await until(lambda: bool(served.small.calls and served.small.calls[0].bytes_sent))
            with trio.fail_after(GRACE_S + FORCED_S):
                await served.router.server.drain(GRACE_S)

            assert served.router.server.open_connections == 0
        await until(lambda: served.clusters.connections_in_use == 0)


async def test_drain_answers_a_probe_that_was_under_way(nursery: trio.Nursery) -> None:
    """Its head had begun to arrive: it is told that the Router is not ready, and closed."""
    served = await start_standalone(nursery, Script())

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(b"GET /rea")
        await until(lambda: served.router.server.open_connections == 1)
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.start_soon(served.router.server.drain)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await client.send(b"dy HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = await client.answer()
        rest = await client.rest()

    assert answer is not None
    assert (answer.status, answer.body) == (503, b'{"status":"not_ready"}')
    assert rest == b""


async def test_drain_lets_a_request_that_was_arriving_finish(nursery: trio.Nursery) -> None:
    """It is under way from its first byte, and its connection closes behind the answer."""
    served = await start_standalone(nursery, Script())
    request = post(chat("x" * 10_000))

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(request[:5000])
        await until(lambda: served.router.server.open_connections == 1)
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.start_soon(served.router.server.drain)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await client.send(request[5000:])
        answer = await client.answer()
        rest = await client.rest()

    assert answer is not None
    assert (answer.status, answer.fields["connection"]) == (200, "close")
    assert rest == b""


async def test_drain_serves_no_request_behind_the_one_under_way(nursery: trio.Nursery) -> None:
    """A pipelined request was not begun, so it is its client's to repeat elsewhere."""
    served = await start_standalone(nursery, Script(latency_s=0.2))

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(post(chat("first")) + post(chat("second")))
        await until(lambda: len(served.small.calls) == 1)
        nursery.start_soon(served.router.server.drain)
        answer = await client.answer()
        rest = await client.rest()

    assert answer is not None
    assert answer.status == 200
    assert rest == b""
    assert len(served.small.calls) == 1
