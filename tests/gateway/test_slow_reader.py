"""Backpressure: a client that does not read stops its backend, and nothing piles up."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import document_of, model_of, read_large, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.script import Script
from vsr.network.memory import MemoryConnection, MemoryNetwork

STREAM = chat_body(model="auto", stream=True)
BUFFERS_BYTES = 1_000_000
"""More than all buffers between backend and client hold together, and far less than the stream."""


async def _send_stream_request(client: MemoryConnection) -> None:
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b"
        % (len(STREAM), STREAM)
    )


async def test_backend_of_a_silent_reader_stops(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After the buffers are full nothing grows; then every byte arrives, in order."""
    network = MemoryNetwork()
    script = Script(chunks=4000, piece_bytes=1000)
    backend = await start_backend(nursery, network, script)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    client = await router.connect()
    await _send_stream_request(client)
    sent: list[int] = []
    held: list[int] = []

    for _ in range(4):
        await trio.sleep(10)
        sent.append(backend.calls[0].bytes_sent)
        held.append(client.held_bytes)
    is_whole, body = await read_large(client)

    assert len(set(sent)) == 1
    assert len(set(held)) == 1
    assert 0 < sent[0] < BUFFERS_BYTES
    assert is_whole
    assert body.count(b"data: ") == 4000 + 3
    assert body.endswith(b"data: [DONE]\n\n")
    assert len(body) > 4 * BUFFERS_BYTES
    assert await router.held() == (0, 0)


async def test_large_buffered_answer_waits_for_its_reader(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A body with a length is not collected either beyond a bound."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"x" * 5_000_000)).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    client = await router.connect()
    await _send_stream_request(client)

    await trio.sleep(20)
    connection = backend.accepted[0]
    is_blocked = connection._writer is not None  # the port has no word for it
    is_whole, body = await read_large(client)

    assert is_blocked
    assert is_whole
    assert body == b"x" * 5_000_000


@pytest.mark.parametrize("pause_s", [1.0, 40.0])
async def test_idle_limit_does_not_run_while_the_reader_is_slow(
    pause_s: float, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend is not silent, it is not asked: a reader slower than the limit gets all."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(chunks=600, piece_bytes=1000))
    reliability = "{idle_timeout: 5s, total_timeout: 0s}"
    document = document_of(model_of(backend.port, reliability=reliability))
    router = await start_router(nursery, network, document)
    client = await router.connect()
    await _send_stream_request(client)
    data = b""

    while not data.endswith(b"0\r\n\r\n"):
        await trio.sleep(pause_s)
        data += await client.receive()

    assert data.count(b"data: ") == 603


async def test_slow_reader_slows_nobody_else(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Each connection has its own buffers."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(chunks=2000, piece_bytes=1000))
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    stuck = [await router.connect() for _ in range(20)]
    for client in stuck:
        await _send_stream_request(client)
    await trio.testing.wait_all_tasks_blocked()

    got = await router.ask(STREAM)

    assert (got.end, trio.current_time()) == (AnswerEnd.WHOLE, 0)
    for client in stuck:
        client.close()
    assert await router.held() == (0, 0)
    assert backend.open_connections == 1
